//! Fixed count of retries: a step is attempted three times. Then the workflow does something else.

use abide::{prelude::*, testing::TestEnvironment};

#[activity]
async fn call_taxi(ctx: ActivityContext, company: String) -> Result<String, ActivityError> {
    println!("attempt {} to call {company}", ctx.attempt());
    match &*company {
        "Yellow" => Err(ActivityError::new("nobody answers")),
        _ => Ok(format!("{company} comes in ten minutes")),
    }
}

#[workflow]
async fn taxi(ctx: &Context) -> abide::Result<String> {
    // The first attempt counts: three attempts are two retries. Without a limit, the step would
    // be retried forever, which is right for what must happen eventually.
    let policy = RetryPolicy::default().maximum_attempts(3);
    let yellow = ctx.activity(call_taxi, "Yellow").retry(policy);
    match yellow.await {
        Err(Error::Activity(failed)) => {
            println!("given up: {} ({:?})", failed.failure, failed.retry_state);
            ctx.activity(call_taxi, "Green").await
        }
        other => other,
    }
}

#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    let env = TestEnvironment::with(|worker| worker.workflow::<taxi>().activity(call_taxi)).await?;
    println!("{}", taxi::start(&env.client(), "taxi-1").await?.result().await?);
    Ok(())
}
