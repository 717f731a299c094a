//! Errors of ours keep their meaning when other errors are around them.

use abide::{ActivityError, Context, Error, ReturnedError};
use abide_core::{event::Fact, failure::FailureKind};
use abide_sdk_macros::workflow;

use crate::world::{World, seconds};

/// An error as users write them.
#[derive(Debug, thiserror::Error)]
enum Wrapper {
    #[error("the step failed")]
    Step(#[from] Error),
    #[error("the boxed step failed")]
    Boxed(#[source] Box<Error>),
    #[error("the attempt failed")]
    Attempt(#[from] ActivityError),
    #[error("the whole failed")]
    Whole(#[source] Box<Wrapper>),
}

/// Ends as its argument says.
#[derive(Default)]
struct Wrapped;

#[workflow]
impl Wrapped {
    #[run]
    async fn run(ctx: &Context<Self>, ending: String) -> Result<(), Wrapper> {
        match ending.as_str() {
            "next" => return Err(ctx.continue_as_new("done").into()),
            "boxed" => return Err(Wrapper::Boxed(Box::new(ctx.continue_as_new("")))),
            "fail" => return Err(Error::new("no luck").into()),
            _ => {}
        }
        ctx.sleep(seconds(60)).await.map_err(|error| Wrapper::Whole(Box::new(error.into())))
    }
}

#[test]
fn a_wrapped_cancellation_cancels_the_run() {
    let mut world = World::<Wrapped>::start("");
    world.cancel();
    assert_eq!(world.history().last(), Some(&"RunCancelled"));
    world.check();
}

#[test]
fn a_wrapped_next_run_is_the_next_run() {
    for ending in ["next", "boxed"] {
        let world = World::<Wrapped>::start(ending);
        assert!(matches!(&world.events.last().unwrap().body.fact, Fact::RunContinuedAsNew(_)));
        world.check();
    }
}

#[test]
fn a_wrapped_failure_is_the_cause_of_the_wrapper() {
    let world = World::<Wrapped>::start("fail");
    let failure = world.failure().unwrap();
    assert_eq!(failure.message, "the step failed");
    assert_eq!(failure.causes[0].message, "no luck");
}

#[test]
fn what_an_activity_says_about_retries_holds_through_every_wrapper() {
    let error = ActivityError::new("no such card").non_retryable().error_type("CardExpired");
    let error = error.retry_after(seconds(7)).details(&4);
    let details = abide::payload::encode(&4).unwrap();
    let failure = ReturnedError::new(Wrapper::Whole(Box::new(error.into()))).into_failure();
    assert_eq!(failure.message, "the whole failed");
    assert!(failure.non_retryable);
    assert_eq!(failure.error_type, "CardExpired");
    assert_eq!((failure.next_retry_delay, failure.details), (Some(seconds(7)), details));
    assert_eq!(failure.causes[0].message, "the attempt failed");
    assert_eq!(failure.causes[1].message, "no such card");
}

#[test]
fn a_wrapped_cancellation_is_told_as_one() {
    let failure = ReturnedError::new(Wrapper::from(Error::Cancelled)).into_failure();
    assert_eq!((failure.kind, &*failure.message), (FailureKind::Cancelled, "the step failed"));
    let error = Error::from_source(Wrapper::from(Error::Cancelled));
    assert!(matches!(error, Error::Cancelled), "{error:?}");
}
