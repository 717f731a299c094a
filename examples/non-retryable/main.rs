//! Non-retryable errors: what a retry cannot fix fails immediately. The activity says so, or the
//! caller does, by the type of the error.

use abide::{prelude::*, testing::TestEnvironment};
use serde::{Deserialize, Serialize};

/// The activity knows best: retrying a wrong address never makes sense.
#[activity]
async fn check_address(to: String) -> Result<(), ActivityError> {
    match to.contains('@') {
        true => Ok(()),
        false => Err(ActivityError::new(format!("{to} is no address")).non_retryable()),
    }
}

/// What can go wrong on the way. Serde can serialize it, so it reaches the workflow as it is.
#[derive(Debug, thiserror::Error, Serialize, Deserialize)]
#[error("no room left for {letters} letters")]
struct MailboxFull {
    letters: u32,
}

#[activity]
async fn deliver(ctx: ActivityContext, to: String) -> Result<String, ActivityError> {
    match (&*to, ctx.attempt()) {
        ("bob@full", _) => Err(MailboxFull { letters: 3 })?,
        (_, 1) => Err(ActivityError::new("no connection").error_type("ServerDown")),
        (_, attempt) => Ok(format!("delivered to {to} by attempt {attempt}")),
    }
}

#[workflow]
async fn letter(ctx: &Context, to: String) -> abide::Result<String> {
    ctx.activity(check_address, &to).await?;
    // The caller decides: for this letter a full mailbox is final. Another caller may want to
    // retry until there is room.
    let policy = RetryPolicy::default().no_retry_on::<MailboxFull>();
    match ctx.activity(deliver, &to).retry(policy).await {
        Err(error) if let Some(MailboxFull { letters }) = error.cause() => {
            Ok(format!("kept {letters} letters for {to}"))
        }
        delivered => delivered,
    }
}

#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    let env = TestEnvironment::with(|worker| {
        worker.workflow::<letter>().activity(check_address).activity(deliver)
    })
    .await?;

    for to in ["ada@work", "nowhere", "bob@full"] {
        let letter = letter::start(&env.client(), format!("to-{to}"), to).await?;
        match letter.result().await {
            Ok(delivered) => println!("{delivered}"),
            Err(error) => println!("{error}"),
        }
    }
    Ok(())
}
