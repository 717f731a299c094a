//! Errors that keep their type: from an activity to the workflow, from a child to its parent, and
//! from a run, an update and a query to the client.

use abide::{TypedError, prelude::*};
use abide_sdk_testing::{TestEnvironment, typed_error};
use serde::{Deserialize, Serialize};

#[derive(Debug, PartialEq, thiserror::Error, Serialize, Deserialize)]
#[error("the card ending in {last4} has expired")]
struct CardExpired {
    last4: String,
}

#[derive(Debug, PartialEq, thiserror::Error, Serialize, Deserialize)]
enum Refused {
    #[error("{0} is too much")]
    TooMuch(u32),
    #[error("nothing to pay")]
    Nothing,
}

/// Cannot be serialized.
#[derive(Debug, thiserror::Error)]
#[error("no connection")]
struct Offline;

fn expired() -> CardExpired {
    CardExpired { last4: "4242".into() }
}

#[activity]
async fn charge(amount: u32) -> Result<u32, CardExpired> {
    if amount > 100 { Err(expired()) } else { Ok(amount) }
}

/// Says itself that a retry is useless.
#[activity]
async fn charge_once(_amount: u32) -> Result<u32, ActivityError> {
    Err(expired())?;
    Err(ActivityError::from(expired()).non_retryable())
}

#[activity]
async fn call_bank(_amount: u32) -> Result<u32, Offline> {
    Err(Offline)
}

#[derive(Default)]
struct Payment {
    closed: bool,
}

#[workflow]
impl Payment {
    #[run]
    async fn run(ctx: &Context<Self>, how: String) -> abide::Result<String> {
        let policy = RetryPolicy::default().no_retry_on::<CardExpired>().no_retry_on::<Offline>();
        let paid = match &*how {
            "charge" => ctx.activity(charge, 500).retry(policy).await,
            "local" => ctx.local_activity(charge, 500).retry(policy).await,
            "once" => ctx.activity(charge_once, 500).retry(policy).await,
            "offline" => ctx.activity(call_bank, 500).retry(policy).await,
            "child" => ctx.child::<Checkout>("checkout", 500).await,
            "wait" => {
                return ctx.wait_until(condition!("closed", |it| it.closed)).await.map(|()| how);
            }
            _ => Err(Refused::TooMuch(500).into()),
        };
        match paid {
            Err(error) if let Some(CardExpired { last4 }) = error.cause() => {
                Ok(format!("{last4} has expired"))
            }
            Err(error) if let Some(Refused::TooMuch(amount)) = error.cause() => {
                Ok(format!("refused {amount}"))
            }
            Err(error) => Err(error),
            Ok(amount) => Ok(format!("paid {amount}")),
        }
    }

    #[update]
    fn close(&mut self, amount: u32) -> Result<u32, Refused> {
        self.closed = true;
        if amount == 0 { Err(Refused::Nothing) } else { Ok(amount) }
    }

    #[query]
    fn rest(&self) -> Result<u32, Refused> {
        Err(Refused::TooMuch(7))
    }
}

/// Fails with its own type of error.
#[derive(Default)]
struct Checkout;

#[workflow]
impl Checkout {
    #[run]
    async fn run(ctx: &Context<Self>, amount: u32) -> Result<u32, Refused> {
        // What the activity failed with is not what this one fails with.
        ctx.activity(charge, 1).await.map_err(|_| Refused::Nothing)?;
        Err(Refused::TooMuch(amount))
    }
}

/// Fails with the error of its activity.
#[derive(Default)]
struct Careless;

#[workflow]
impl Careless {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<u32> {
        let policy = RetryPolicy::default().no_retry_on::<CardExpired>();
        ctx.activity(charge, 500).retry(policy).await
    }
}

async fn environment() -> TestEnvironment {
    let env = TestEnvironment::new().await;
    env.worker(|worker| {
        worker
            .workflow::<Payment>()
            .workflow::<Checkout>()
            .workflow::<Careless>()
            .activity(charge)
            .activity(charge_once)
            .activity(call_bank)
    })
    .await
    .unwrap();
    env
}

async fn payment(how: &str) -> Result<String, abide::ClientError> {
    let env = environment().await;
    env.client().start::<Payment>("payment", how.to_owned()).await.unwrap().result().await
}

#[tokio::test]
async fn the_error_of_a_mock_keeps_its_type() {
    let env = environment().await;
    let other = || CardExpired { last4: "9999".into() };
    env.mock(charge, move |_| Err::<u32, _>(typed_error(other())));
    let payment = env.client().start::<Payment>("payment", "charge").await.unwrap();
    assert_eq!(payment.result().await.unwrap(), "9999 has expired");

    // Without its value it still has its name, which policies name.
    let charged = env.mock(charge, |_| Err::<u32, _>(expired()));
    let careless = env.client().start::<Careless>("careless", ()).await.unwrap();
    let failed = careless.result().await.unwrap_err();
    assert!(failed.to_string().contains("4242"), "{failed}");
    assert_eq!(charged.count(), 1, "it is not retried");
}

#[tokio::test]
async fn a_workflow_matches_the_error_of_its_step_by_type() {
    for how in ["charge", "local", "once"] {
        assert_eq!(payment(how).await.unwrap(), "4242 has expired", "{how}");
    }
    assert_eq!(payment("child").await.unwrap(), "refused 500");
    assert_eq!(payment("itself").await.unwrap(), "refused 500");
}

#[tokio::test]
async fn an_error_that_cannot_travel_has_its_name_and_message() {
    let error = payment("offline").await.unwrap_err();
    assert_eq!(error.cause::<CardExpired>(), None);
    let failure = error.failure().unwrap();
    let cause = &failure.causes()[0];
    assert_eq!((cause.error_type(), cause.message()), ("Offline", "no connection"));
}

/// The cause of a call that failed.
fn cause<O: std::fmt::Debug, E: TypedError>(result: Result<O, abide::ClientError>) -> Option<E> {
    result.unwrap_err().cause()
}

#[tokio::test]
async fn a_client_gets_the_error_of_run_update_and_query() {
    let env = environment().await;
    let client = env.client();
    let careless = client.start::<Careless>("careless", ()).await.unwrap();
    assert_eq!(cause(careless.result().await), Some(expired()));
    let checkout = client.start::<Checkout>("checkout", 9).await.unwrap();
    assert_eq!(cause(checkout.result().await), Some(Refused::TooMuch(9)));

    let payment = client.start::<Payment>("payment", "wait").await.unwrap();
    assert_eq!(cause(payment.query(Payment::REST, ()).await), Some(Refused::TooMuch(7)));
    assert_eq!(cause(payment.update(Payment::CLOSE, 0).await), Some(Refused::Nothing));
    payment.result().await.unwrap();
}
