//! Worker-specific queues: a file is on one machine, so the steps that need it must run there. Each
//! machine takes work from the common queue and from its own; the first step returns the name of
//! the machine's queue, and the next step is sent there.

use abide::{Worker, prelude::*, testing::TestEnvironment};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

const ANY_MACHINE: &str = "machines";

/// A file on the disk of one machine.
#[derive(Clone, Serialize, Deserialize)]
struct LocalFile {
    path: String,
    /// The queue that only this machine serves.
    queue: String,
}

/// The activities of one machine. It runs two workers with them: one for the common queue and one
/// for its own.
#[derive(Clone)]
struct Machine {
    name: &'static str,
    news: mpsc::UnboundedSender<String>,
}

#[activities]
impl Machine {
    /// Any machine can do this.
    #[activity]
    async fn download(&self, film: String) -> LocalFile {
        // The receiver is gone when the program ends.
        let _ended = self.news.send(format!("{} has downloaded {film}", self.name));
        LocalFile { path: format!("{}:/tmp/{film}", self.name), queue: self.queue() }
    }

    /// Only the machine that has the file can do this.
    #[activity]
    async fn cut(&self, file: LocalFile) -> Result<String, ActivityError> {
        match file.path.starts_with(self.name) {
            true => Ok(format!("{} was cut", file.path)),
            false => Err(ActivityError::new("the file is on another machine").non_retryable()),
        }
    }
}

impl Machine {
    fn queue(&self) -> String {
        format!("{ANY_MACHINE}/{}", self.name)
    }
}

#[workflow]
async fn film(ctx: &Context, film: String) -> abide::Result<String> {
    loop {
        let download = ctx.activity(Machine::download, &film).queue(ANY_MACHINE);
        let file = download.await?;
        let cut = ctx.activity(Machine::cut, &file).queue(file.queue);
        match cut.schedule_to_start(minutes(5)).await {
            // No worker took it in time: the machine is gone, and the file with it. Try again
            // on another machine.
            Err(Error::Activity(failed)) if failed.failure.error_type() == GONE => {}
            done => return done,
        }
    }
}

/// Error type of that failure.
const GONE: &str = "Timeout:ScheduleToStart";

#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    let env = TestEnvironment::with(|worker| worker.workflow::<film>()).await?;
    let client = env.client();

    // This machine is switched off right after its first download.
    let film = film::start(&client, "film-1", "first.mp4").await?;
    let (news, mut downloads) = mpsc::unbounded_channel();
    let north = Machine { name: "north", news: news.clone() };
    let worker = Worker::new(&client).queue(ANY_MACHINE).activities(north);
    println!("{}", worker.run_until(downloads.recv()).await?.unwrap_or_default());

    // This one stays.
    let south = Machine { name: "south", news };
    env.worker(|worker| worker.queue(ANY_MACHINE).activities(south.clone())).await?;
    env.worker(|worker| worker.queue(south.queue()).activities(south.clone())).await?;
    println!("{}", film.result().await?);

    let film = film::start(&client, "film-2", "second.mp4").await?;
    println!("{}", film.result().await?);
    Ok(())
}
