//! Worker-specific queues: a file is on one machine, so the steps that need it must run there. Each
//! machine takes work from the common queue and from one of its own; the first step tells which machine
//! it was, and the next step goes to that machine's queue.

use std::time::Duration;

use abide::{Worker, embedded::Embedded, prelude::*};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

/// The queue of all machines.
const ANY_MACHINE: &str = "machines";

/// A file on the disk of one machine.
#[derive(Clone, Serialize, Deserialize)]
struct LocalFile {
    path: String,
    /// The queue that only this machine serves.
    queue: String,
}

/// The activities of one machine.
#[derive(Clone)]
struct Machine {
    name: &'static str,
    downloads: mpsc::UnboundedSender<()>,
}

#[activities]
impl Machine {
    /// Any machine can do this.
    #[activity]
    async fn download(&self, film: String) -> LocalFile {
        let _ended = self.downloads.send(());
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

    /// A machine runs two of these: one for the common queue, one for its own.
    fn worker(&self, engine: &Embedded, queue: impl Into<String>) -> Worker {
        engine.worker().queue(queue).activities(self.clone())
    }
}

#[derive(Default)]
struct Film;

#[workflow]
impl Film {
    #[run]
    async fn run(ctx: &Context<Self>, film: String) -> abide::Result<String> {
        loop {
            let download = ctx.activity(Machine::download, film.clone()).queue(ANY_MACHINE);
            let file = download.await?;
            let cut = ctx.activity(Machine::cut, file.clone()).queue(file.queue);
            match cut.schedule_to_start(Duration::from_millis(300)).await {
                // Nobody took it in time: the machine is gone, and the file with it. Once more, with
                // another machine.
                Err(Error::Activity(failed)) if failed.failure.error_type == GONE => {}
                done => return done,
            }
        }
    }
}

/// The name of that failure.
const GONE: &str = "Timeout:ScheduleToStart";

#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    let engine = Embedded::in_memory().await;
    tokio::spawn(engine.worker().workflow::<Film>().run());
    let client = engine.client();

    let (downloads, mut downloaded) = mpsc::unbounded_channel();
    let north = Machine { name: "north", downloads };
    let own = tokio::spawn(north.worker(&engine, north.queue()).run());
    // This one leaves after the second download.
    let common = north.worker(&engine, ANY_MACHINE).run_until(async move {
        downloaded.recv().await;
        downloaded.recv().await
    });
    let common = tokio::spawn(common);
    let first = client.start::<Film>("film-1", "first.mp4".to_owned()).await?;
    println!("{}", first.result().await?);

    // The machine is switched off right after it has downloaded the second film.
    own.abort();
    let second = client.start::<Film>("film-2", "second.mp4".to_owned()).await?;
    common.await??;
    let south = Machine { name: "south", ..north };
    tokio::spawn(south.worker(&engine, south.queue()).run());
    tokio::spawn(south.worker(&engine, ANY_MACHINE).run());
    println!("{}", second.result().await?);
    Ok(())
}
