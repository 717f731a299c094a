//! Cron: a workflow that runs every morning at nine. Runs never overlap, each continues from the
//! last result, and a failed day does not end the schedule.

use abide::{ClientError, Timestamp, prelude::*, testing::TestEnvironment};

/// Stands for a query: there are ten orders each day, and on the second day the shop is down.
#[activity]
async fn last_order(today: Timestamp) -> Result<u32, ActivityError> {
    match &today.to_string()[..10] {
        "2025-01-01" => Ok(10),
        "2025-01-02" => Err(ActivityError::new("the shop is down").non_retryable()),
        _ => Ok(30),
    }
}

#[activity]
async fn send_report(text: String) {
    println!("{text}");
}

/// Returns the last order that was reported.
#[workflow]
async fn report(ctx: &Context) -> abide::Result<u32> {
    // The result of the last successful run; a failed run does not change it.
    let reported = ctx.last_result()?.unwrap_or_default();
    let last = ctx.activity(last_order, ctx.now()).await?;
    let text = format!("{}: orders {} to {last}", ctx.now(), reported + 1);
    ctx.activity(send_report, text).await?;
    Ok(last)
}

#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    let env = TestEnvironment::with(|worker| {
        worker.workflow::<report>().activity(last_order).activity(send_report)
    })
    .await?;

    // Minute, hour, day, month, weekday; in UTC. The first run waits for its time too.
    let report = report::start(&env.client(), "report").cron("0 9 * * *").await?;
    env.skip(days(3)).await;

    // The schedule runs until it is cancelled.
    report.cancel().reason("nobody reads it").await?;
    let ended = report.result().await;
    println!("ended: {}", matches!(ended, Err(ClientError::RunCancelled(_))));
    Ok(())
}
