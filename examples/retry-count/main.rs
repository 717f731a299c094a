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

#[derive(Default)]
struct Taxi;

#[workflow]
impl Taxi {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<String> {
        // The first attempt counts: three attempts are two retries. Without a limit, the step would
        // be retried forever, which is right for what must happen eventually.
        let policy = RetryPolicy::default().maximum_attempts(3);
        let yellow = ctx.activity(call_taxi, "Yellow".to_owned()).retry(policy);
        match yellow.await {
            Err(Error::Activity(failed)) => {
                println!("given up: {} ({:?})", failed.failure.message, failed.retry_state);
                ctx.activity(call_taxi, "Green".to_owned()).await
            }
            other => other,
        }
    }
}

#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    let env = TestEnvironment::new().await;
    env.worker(|worker| worker.workflow::<Taxi>().activity(call_taxi)).await?;
    println!("{}", env.client().start::<Taxi>("taxi-1", ()).await?.result().await?);
    Ok(())
}
