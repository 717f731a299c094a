//! Approval in levels: one after the other, each with its own deadline. It is a loop.

use std::time::Duration;

use abide::{
    approval::{Answer, Approvals, Request, Verdict},
    embedded::Embedded,
    prelude::*,
};

#[derive(Default)]
struct Contract {
    approvals: Approvals,
}

#[workflow(approvals = approvals)]
impl Contract {
    #[run]
    async fn run(ctx: &Context<Self>, patience: Duration) -> abide::Result<String> {
        for level in ["team-lead", "legal", "board"] {
            let request = Request::new(level).role(level).timeout(patience);
            match ctx.approval(request).await? {
                verdict if verdict.is_approved() => {}
                Verdict::TimedOut { .. } => return Ok(format!("timed out at {level}")),
                verdict => {
                    let names = verdict.decided_by().join(", ");
                    return Ok(format!("rejected at {level} by {names}"));
                }
            }
        }
        Ok("approved on all levels".into())
    }
}

#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    let engine = Embedded::in_memory().await;
    engine.worker().workflow::<Contract>().spawn();
    let client = engine.client();
    let people = [("team-lead", "ada"), ("legal", "grace"), ("board", "linus")];

    let rent = Contract::start(&client, "rent", days(2)).await?;
    for (level, name) in people {
        let answer = Answer::approve(level, name).role(level);
        println!("{name}: {:?}", rent.decide(answer).await?.effect);
    }
    println!("rent: {}", rent.result().await?);

    // A signal that arrives before its level is kept until the level is reached.
    let lease = Contract::start(&client, "lease", days(2)).await?;
    lease.decision(Answer::reject("legal", "grace").role("legal")).await?;
    lease.decision(Answer::approve("team-lead", "ada").role("team-lead")).await?;
    println!("lease: {}", lease.result().await?);

    let moment = Duration::from_millis(50);
    println!("merger: {}", Contract::start(&client, "merger", moment).await?.result().await?);
    Ok(())
}
