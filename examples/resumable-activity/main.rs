//! Resumable activity: when all attempts of a step have failed, the run does not fail. It waits,
//! shows what is wrong, and repeats the same step when a person has sent a correction.

use abide::{ClientError, prelude::*, testing::TestEnvironment};

#[activity]
async fn pay_out(account: String, cents: u64) -> Result<String, ActivityError> {
    match account.starts_with("NO") {
        true => Ok(format!("{cents} cents were paid to {account}")),
        false => Err(ActivityError::new(format!("the bank does not know {account}"))),
    }
}

#[derive(Default)]
struct Payout;

#[workflow]
impl Payout {
    #[run]
    async fn run(ctx: &Context<Self>, account: String, cents: u64) -> abide::Result<String> {
        let mut account = account;
        loop {
            let policy = RetryPolicy::default().maximum_attempts(3);
            match ctx.activity(pay_out, (&account, cents)).retry(policy).await {
                // Waiting costs nothing, lasts as long as necessary, and is in the list of waits
                // together with what is wrong.
                Err(Error::Activity(failed)) => {
                    account = ctx.receive(Self::RESUME).about(failed.failure.message()).await?;
                }
                done => return done,
            }
        }
    }

    /// The correction: the right account. What was done before the failed step is not repeated.
    #[signal]
    fn resume(account: String);
}

/// What a person sees of a waiting run. Over all runs: `client.waits(...)`.
async fn parked(payout: &PayoutHandle) -> Result<String, ClientError> {
    let waits = payout.waits().await?;
    Ok(waits.first().map_or("not parked".into(), |wait| format!("parked: {}", wait.subject)))
}

#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    let env = TestEnvironment::with(|worker| worker.workflow::<Payout>().activity(pay_out)).await?;
    let payout = Payout::start(&env.client(), "payout-1", "ON12", 500).await?;

    // The next day an operator looks at what is waiting.
    env.skip(days(1)).await;
    println!("{}", parked(&payout).await?);

    // A correction may be wrong, too.
    payout.resume("N012").await?;
    env.skip(days(1)).await;
    println!("{}", parked(&payout).await?);

    payout.resume("NO12").await?;
    println!("{}", payout.result().await?);
    Ok(())
}
