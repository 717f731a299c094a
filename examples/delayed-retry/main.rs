//! Delayed retry: a rate-limited service says when to retry. The error carries that time, which
//! overrides the policy's.

use std::time::Duration;

use abide::{Timestamp, prelude::*, testing::TestEnvironment};

/// Response of a web service.
enum Answer {
    Ok(String),
    /// Status 429, with the header `Retry-After`.
    TooMany {
        retry_after: Duration,
    },
}

/// Stands for a request over the network.
fn request(city: &str, attempt: u32) -> Answer {
    match attempt {
        1 => Answer::TooMany { retry_after: minutes(15) },
        2 => Answer::TooMany { retry_after: minutes(5) },
        _ => Answer::Ok(format!("sunny in {city}")),
    }
}

#[activity]
async fn forecast(ctx: ActivityContext, city: String) -> Result<String, ActivityError> {
    match request(&city, ctx.attempt()) {
        Answer::Ok(weather) => Ok(weather),
        Answer::TooMany { retry_after } => {
            Err(ActivityError::new("asked too often").retry_after(retry_after))
        }
    }
}

#[workflow]
async fn picnic(ctx: &Context, city: String) -> abide::Result<(String, Timestamp)> {
    let weather = ctx.activity(forecast, city).await?;
    Ok((weather, ctx.now()))
}

#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    let env =
        TestEnvironment::with(|worker| worker.workflow::<picnic>().activity(forecast)).await?;

    let begun = env.now();
    let picnic = picnic::start(&env.client(), "picnic-1", "Oslo").await?;
    let (weather, at) = picnic.result().await?;
    println!("{weather}, known after {} minutes", at.saturating_since(begun).as_secs() / 60);
    Ok(())
}
