//! Cleanup: a run is cancelled in the middle. It first returns what it holds, in a shield that
//! further cancel requests do not reach, and that has a deadline.

use abide::{ClientError, prelude::*, testing::TestEnvironment};

#[activity]
async fn rent_machine() -> String {
    println!("rented machine-7");
    "machine-7".into()
}

#[activity]
async fn give_back(ctx: ActivityContext, machine: String) -> Result<(), ActivityError> {
    if ctx.attempt() == 1 {
        return Err(ActivityError::new("the owner does not answer"));
    }
    println!("gave back {machine}");
    Ok(())
}

#[derive(Default)]
struct Experiment {
    machine: Option<String>,
}

#[workflow]
impl Experiment {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<()> {
        let machine = ctx.call(rent_machine).await?;
        ctx.write(|experiment| experiment.machine = Some(machine.clone()));
        // Weeks of work. A cancel request ends the wait with an error. There is no `?` here, so
        // that the rest runs in any case.
        let worked = ctx.sleep(weeks(3)).await;
        let cleanup = ctx.shield(ctx.activity(give_back, machine).into_future());
        match cleanup.timeout(hours(1)).await {
            Outcome::InTime(given_back) => given_back?,
            Outcome::TimedOut => return Err(Error::new("the machine could not be given back")),
        }
        // If the run was cancelled, it ends as cancelled: the error is passed on.
        worked
    }

    #[query]
    fn machine(&self) -> Option<String> {
        self.machine.clone()
    }
}

#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    let env = TestEnvironment::with(|worker| {
        worker.workflow::<Experiment>().activity(rent_machine).activity(give_back)
    })
    .await?;

    let experiment = Experiment::start(&env.client(), "experiment-1").await?;
    env.skip(days(2)).await;
    println!("it holds {:?}", experiment.machine().await?);

    experiment.cancel().reason("too expensive").await?;
    // An impatient user asks again. The machine is still returned.
    experiment.cancel().reason("did you hear me?").await?;
    let ended = experiment.result().await;
    println!("cancelled: {}", matches!(ended, Err(ClientError::RunCancelled(_))));
    Ok(())
}
