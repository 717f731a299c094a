//! Fixed time of retries: a step is retried as often as necessary, but only for ten minutes in
//! total.

use abide::{prelude::*, testing::TestEnvironment};

#[activity]
async fn reserve_table(ctx: ActivityContext, guests: u32) -> Result<String, ActivityError> {
    Err(ActivityError::new(format!("attempt {} for {guests}: no table is free", ctx.attempt())))
}

#[workflow]
async fn dinner(ctx: &Context, guests: u32) -> abide::Result<String> {
    let reserved = ctx
        .activity(reserve_table, guests)
        // Limits one attempt.
        .start_to_close(seconds(10))
        // All attempts and the pauses between them.
        .schedule_to_close(minutes(10))
        .retry(RetryPolicy::default().maximum_interval(minutes(1)))
        .await;
    match reserved {
        Err(Error::Activity(failed)) => {
            Ok(format!("we eat at home; {} ({:?})", failed.failure, failed.retry_state))
        }
        other => other,
    }
}

#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    let env =
        TestEnvironment::with(|worker| worker.workflow::<dinner>().activity(reserve_table)).await?;

    let begun = env.now();
    let dinner = dinner::start(&env.client(), "dinner-1", 4).await?;
    println!("{}", dinner.result().await?);
    // A retry that would start after the deadline is not waited for.
    let taken = env.now().saturating_since(begun);
    println!("it took no more than ten minutes: {}", taken <= minutes(10));
    Ok(())
}
