//! Signal: a run waits for input from outside, with a deadline.

use std::time::Duration;

use abide::{embedded::Embedded, prelude::*};
use serde::{Deserialize, Serialize};

/// A person's decision. Arguments can be any type that serde can encode and decode.
#[derive(Serialize, Deserialize)]
struct Decision {
    approved: bool,
    by: String,
}

#[derive(Default)]
struct Approval;

#[workflow]
impl Approval {
    #[run]
    async fn run(
        ctx: &Context<Self>,
        subject: String,
        deadline: Duration,
    ) -> abide::Result<String> {
        // The wait is durable, and so is its deadline. The first event in history wins.
        match ctx.receive(Self::DECIDE).timeout(deadline).await? {
            Outcome::InTime(Decision { approved: true, by }) => {
                Ok(format!("{subject}: {by} said yes"))
            }
            Outcome::InTime(Decision { by, .. }) => Ok(format!("{subject}: {by} said no")),
            Outcome::TimedOut => Ok(format!("{subject}: nobody decided in time")),
        }
    }

    /// A signal without a body is kept until the run receives it, in the order of arrival.
    #[signal]
    fn decide(decision: Decision);
}

#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    let engine = Embedded::in_memory().await;
    engine.worker().workflow::<Approval>().spawn();
    let client = engine.client();

    let desk = Approval::start(&client, "desk", "a desk", days(1)).await?;
    // It makes no difference whether the run already waits: nothing is lost. The call returns when
    // the signal is durable, not when the run has read it.
    desk.decide(Decision { approved: true, by: "Ada".into() }).await?;
    println!("{}", desk.result().await?);

    let moment = Duration::from_millis(50);
    let yacht = Approval::start(&client, "yacht", "a yacht", moment).await?;
    println!("{}", yacht.result().await?);
    Ok(())
}
