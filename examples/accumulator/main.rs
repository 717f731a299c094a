//! Event accumulator: events arrive one by one and are handled together, when there are enough of
//! them or when the first has waited long enough.

use abide::{prelude::*, testing::TestEnvironment};

/// Number of readings that are written together.
const BATCH_SIZE: usize = 3;

#[activity]
async fn write_batch(readings: Vec<u32>) -> String {
    format!("{} readings: {readings:?}", readings.len())
}

#[derive(Default)]
struct Meter {
    written: Vec<String>,
}

#[workflow]
impl Meter {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<Vec<String>> {
        // A meter that has been silent for a day is removed.
        while let Outcome::InTime(first) = ctx.receive(Self::READING).timeout(days(1)).await? {
            let mut batch = vec![first];
            let full_at = ctx.now() + minutes(1);
            while batch.len() < BATCH_SIZE {
                match ctx.receive(Self::READING).until(full_at).await? {
                    // A sender that is not sure sends again; duplicates are dropped.
                    Outcome::InTime(next) if batch.contains(&next) => {}
                    Outcome::InTime(next) => batch.push(next),
                    Outcome::TimedOut => break,
                }
            }
            // Signals that arrive while this runs are kept, and start the next batch.
            let written = ctx.activity(write_batch, batch).await?;
            ctx.write(|meter| meter.written.push(written));
            // An accumulator lives long, so it drops its history from time to time; unread signals
            // carry over.
            if ctx.suggests_continue_as_new() {
                return Err(ctx.continue_as_new(()));
            }
        }
        Ok(ctx.read(|meter| meter.written.clone()))
    }

    /// Without a body: kept until the run receives it.
    #[signal]
    fn reading(value: u32);
}

#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    let env =
        TestEnvironment::with(|worker| worker.workflow::<Meter>().activity(write_batch)).await?;
    let meter = Meter::start(&env.client(), "meter-1").await?;

    // Four at once: three fill a batch, and the fourth waits for the next ones, which arrive in
    // time.
    for value in [10, 11, 12, 13] {
        meter.reading(value).await?;
    }
    env.skip(seconds(30)).await;
    meter.reading(14).await?;
    meter.reading(14).await?;

    // This one arrives alone, hours later.
    env.skip(hours(3)).await;
    meter.reading(20).await?;

    for line in meter.result().await? {
        println!("{line}");
    }
    Ok(())
}
