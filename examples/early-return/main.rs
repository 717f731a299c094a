//! Early return: the caller gets an answer as soon as it is certain that the work will be done, and
//! the work continues. One call starts the workflow and sends it an update, which answers in the
//! middle of the run.

use abide::{ConflictPolicy, prelude::*, testing::TestEnvironment};

#[activity]
async fn authorize(card: String, cents: u64) -> Result<String, ActivityError> {
    match cents {
        0..=1000 => Ok(format!("{cents} cents of {card} are reserved")),
        _ => Err(ActivityError::new("the limit of the card").non_retryable()),
    }
}

#[activity]
async fn settle(card: String) -> String {
    format!("{card} was charged")
}

#[derive(Default)]
struct Payment {
    /// Result of the authorization, once it is known.
    authorized: Option<Result<String, String>>,
}

#[workflow]
impl Payment {
    #[run]
    async fn run(ctx: &Context<Self>, card: String, cents: u64) -> abide::Result<String> {
        let authorized = match ctx.activity(authorize, (&card, cents)).await {
            Err(Error::Activity(failed)) => Err(failed.failure.to_string()),
            other => Ok(other?),
        };
        let refused = authorized.is_err();
        // The caller of the update gets the answer now.
        ctx.write(|payment| payment.authorized = Some(authorized));
        if refused {
            return Ok("nothing to settle".into());
        }
        // The slow part, for which the caller does not wait.
        ctx.sleep(days(2)).await?;
        ctx.activity(settle, card).await
    }

    /// Returns the outcome of the authorization once it is known.
    #[update]
    async fn authorization(ctx: &Context<Self>) -> Result<String, Error> {
        let known = condition!("payment.authorized", |payment| payment.authorized.is_some());
        ctx.wait_until(known).await?;
        let authorized = ctx.read(|payment| payment.authorized.clone());
        authorized.unwrap_or_else(|| Err("unknown".into())).map_err(Error::new)
    }
}

#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    let env = TestEnvironment::with(|worker| {
        worker.workflow::<Payment>().activity(authorize).activity(settle)
    })
    .await?;
    let begun = env.now();

    for (order, cents) in [("order-1", 500), ("order-2", 9999)] {
        let answered = Payment::start(&env.client(), order, "Ada's card", cents)
            // Sent again, because the reply was lost: it is the same payment, and the same answer.
            .on_conflict(ConflictPolicy::UseExisting)
            .with_update(Payment::AUTHORIZATION, ())
            .id("authorization")
            .outcome()
            .await?;
        match answered.update {
            Ok(answer) => println!("{order}: {answer}"),
            Err(error) => println!("{order}: {error}"),
        }
        println!("  after {} days", days_since(begun, env.now()));
        println!("  {}", answered.workflow.result().await?);
        println!("  after {} days", days_since(begun, env.now()));
    }
    Ok(())
}

fn days_since(begun: abide::Timestamp, now: abide::Timestamp) -> u64 {
    now.saturating_since(begun).as_secs() / (24 * 3600)
}
