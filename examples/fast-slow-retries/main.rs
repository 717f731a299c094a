//! Fast and slow retries: a short outage is over in seconds, so the first retries are fast. If they
//! fail, an operator is notified, and the step is retried once an hour for as long as it takes.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use abide::{prelude::*, testing::TestEnvironment};

/// A client of a system that is down until it has been called ten times.
#[derive(Default)]
struct Accounting {
    calls: AtomicU32,
}

#[activities]
impl Accounting {
    #[activity]
    async fn book(&self, invoice: String) -> Result<String, ActivityError> {
        match self.calls.fetch_add(1, Ordering::Relaxed) {
            0..9 => Err(ActivityError::new("accounting does not answer")),
            _ => Ok(format!("{invoice} is booked")),
        }
    }
}

#[activity]
async fn tell_operators(text: String) {
    println!("to the operators: {text}");
}

#[workflow]
async fn invoice(ctx: &Context, invoice: String) -> abide::Result<String> {
    let fast = every(seconds(1)).maximum_attempts(4);
    match ctx.activity(Accounting::book, &invoice).retry(fast).await {
        Err(Error::Activity(failed)) => {
            let text = format!("{invoice}: {}; trying once an hour", failed.failure);
            ctx.activity(tell_operators, text).await?;
            ctx.activity(Accounting::book, invoice).retry(every(hours(1))).await
        }
        done => done,
    }
}

/// A policy with a constant delay.
fn every(interval: Duration) -> RetryPolicy {
    RetryPolicy::default().initial_interval(interval).maximum_interval(interval).backoff(1.0)
}

#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    let env = TestEnvironment::with(|worker| {
        worker.workflow::<invoice>().activities(Accounting::default()).activity(tell_operators)
    })
    .await?;

    let begun = env.now();
    let invoice = invoice::start(&env.client(), "invoice-7", "invoice 7").await?;
    println!("{}", invoice.result().await?);
    println!("after {} hours", env.now().saturating_since(begun).as_secs() / 3600);
    Ok(())
}
