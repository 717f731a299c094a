//! Schedule: a report each working day at nine in Berlin, summer and winter. The schedule is kept by
//! the engine; it can be looked at, paused, triggered and made up for.

use abide::{
    prelude::*,
    schedule::{Overlap, Schedule, ScheduledOutcome, Times},
    testing::TestEnvironment,
};

#[activity]
async fn send_report(text: String) {
    println!("{text}");
}

#[workflow]
async fn report(ctx: &Context, region: String) -> abide::Result<()> {
    ctx.activity(send_report, format!("{}: report of {region}", ctx.now())).await
}

#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    let env =
        TestEnvironment::with(|worker| worker.workflow::<report>().activity(send_report)).await?;
    let client = env.client();

    let office = Times::cron("0 9 * * MON-FRI").time_zone("Europe/Berlin");
    let schedule = Schedule::of::<report>("eu")
        // The clocks are put forward on 30 March 2025.
        .times(office.start_at("2025-03-28T00:00:00Z".parse()?))
        .overlap(Overlap::BufferOne)
        .pause_on_failure(true);
    let schedule = client.create_schedule("office", schedule).await?;
    println!("next: {}", schedule.describe().await?.next_times[0]);
    env.skip(days(90)).await;

    schedule.pause("the office is closed").await?;
    env.skip(days(7)).await;
    schedule.unpause("open again").await?;
    let (from, to) = ("2025-04-02T00:00:00Z".parse()?, "2025-04-03T00:00:00Z".parse()?);
    println!("made up for:");
    schedule.backfill(from, to).overlap(Overlap::BufferAll).await?;
    env.settle().await;

    let described = schedule.describe().await?;
    let done = |outcome: &Option<_>| *outcome == Some(ScheduledOutcome::Completed);
    println!("{} starts, {} skipped", described.starts, described.skipped);
    println!("all completed: {}", described.recent.iter().all(|run| done(&run.outcome)));
    for row in client.schedules().await? {
        println!("{}: {}", row.id, row.summary);
    }
    schedule.delete().await?;
    Ok(())
}
