//! Local activities: what code asks for, what it is told, and that replay runs nothing again.

use std::time::Duration;

use abide::{
    activity::LocalEnd,
    event::{Event, Fact, MarkerKind},
    payload,
    prelude::*,
};
use abide_core::{
    failure::{Failure, FailureKind},
    retry::RetryState,
};
use abide_sdk_macros::{activity, workflow};

use crate::world::{World, seconds};

#[activity]
async fn price(item: String) -> u64 {
    item.len() as u64
}

#[activity]
async fn ship(item: String) -> String {
    item
}

fn completed(value: u64) -> LocalEnd {
    LocalEnd::Completed(payload::encode(&value).unwrap())
}

fn failure(message: &str) -> Failure {
    Failure::server(FailureKind::Application, message)
}

/// The local activities that a history has recorded.
fn recorded(events: &[Event]) -> Vec<String> {
    let id = |event: &'_ Event| match &event.body.fact {
        Fact::MarkerRecorded(recorded) if recorded.marker.kind == MarkerKind::LocalActivity => {
            Some(recorded.marker.id.clone())
        }
        _ => None,
    };
    events.iter().filter_map(id).collect()
}

/// Adds up the prices of some items, one after the other.
#[derive(Default)]
struct Bill {
    notes: Vec<String>,
}

#[workflow]
impl Bill {
    #[run]
    async fn run(ctx: &Context<Self>, items: Vec<String>) -> abide::Result<u64> {
        let mut sum = 0;
        for item in items {
            sum += ctx.local_activity(price, item).await?;
        }
        Ok(sum)
    }

    #[signal]
    fn note(&mut self, text: String) {
        self.notes.push(text);
    }

    #[query]
    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }
}

fn items(items: &[&str]) -> Vec<String> {
    items.iter().map(|item| (*item).to_owned()).collect()
}

#[test]
fn a_result_is_one_marker_and_code_goes_on_in_the_same_task() {
    let mut world = World::<Bill>::start(items(&["pen", "book"]));
    let asked = &world.locals[0];
    assert_eq!((asked.id.as_str(), asked.attempt), ("local-1/price", 1));
    assert_eq!(asked.start_to_close, Some(seconds(10)));
    world.end_local(completed(3));
    assert_eq!(world.locals[0].id, "local-2/price");
    world.end_local(completed(4));
    assert_eq!(world.result(), Some(7));
    assert_eq!(world.history(), ["RunStarted", "MarkerRecorded", "MarkerRecorded", "RunCompleted"]);
    world.check();
}

#[test]
fn what_history_has_is_not_run_again_and_what_it_lacks_is() {
    let mut world = World::<Bill>::start(items(&["pen", "book"]));
    world.end_local(completed(3));
    // The worker is gone with the second one in the middle of its work.
    world.evict();
    world.work();
    let again: Vec<_> = world.locals.iter().map(|activity| activity.id.as_str()).collect();
    assert_eq!(again, ["local-2/price"]);
    world.end_local(completed(4));
    assert_eq!(world.result(), Some(7));
    world.check();
}

#[test]
fn a_signal_that_comes_meanwhile_is_handled_by_the_next_task() {
    let mut world = World::<Bill>::start(items(&["pen"]));
    world.signal(Bill::NOTE, "red");
    assert_eq!(world.query(Bill::NOTES, ()), ["red"]);
    assert_eq!(world.locals.len(), 1, "it goes on");
    world.end_local(completed(3));
    assert_eq!(world.result(), Some(3));
    assert_eq!(world.history(), ["RunStarted", "SignalReceived", "MarkerRecorded", "RunCompleted"]);
    world.check();
}

/// Asks two prices at once and takes what comes first.
#[derive(Default)]
struct Race;

#[workflow]
impl Race {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<u64> {
        let first = ctx.local_activity(price, "one");
        let second = ctx.local_activity(price, "two");
        select! {
            price = first => price,
            price = second => price,
        }
    }
}

#[test]
fn the_loser_of_a_race_is_given_up_and_leaves_nothing() {
    let mut world = World::<Race>::start(());
    assert_eq!(world.locals.len(), 2);
    world.end_local(completed(1));
    assert_eq!(world.result(), Some(1));
    assert!(world.locals.is_empty(), "the other is given up");
    assert_eq!(recorded(&world.events), ["local-1/price"]);
    world.check();
}

/// Asks for several at once, and notes the order in which they ended.
#[derive(Default)]
struct Crowd;

#[workflow]
impl Crowd {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<Vec<u64>> {
        let asked = |item: &str| ctx.local_activity(price, item.to_owned()).start();
        let shipped = ctx.activity(ship, "all").start();
        let prices = join_all([asked("a"), asked("b"), asked("c")]).await;
        shipped.await?;
        prices.into_iter().collect()
    }
}

#[test]
fn ends_are_told_in_the_order_of_their_markers() {
    let mut world = World::<Crowd>::start(());
    world.locals.rotate_left(1);
    world.end_local(completed(2));
    world.locals.rotate_left(1);
    world.end_local(completed(1));
    world.end_local(completed(3));
    assert_eq!(recorded(&world.events), ["local-2/price", "local-1/price", "local-3/price"]);
    world.complete(ship, "all".into());
    assert_eq!(world.result(), Some(vec![1, 2, 3]));
    world.check();
}

/// One price that may fail.
#[derive(Default)]
struct Once;

#[workflow]
impl Once {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<u64> {
        ctx.local_activity(price, "pen")
            .schedule_to_close(seconds(100))
            .local_retry_threshold(seconds(1))
            .await
    }
}

#[test]
fn a_failure_for_good_is_an_error_of_the_activity() {
    let mut world = World::<Once>::start(());
    world.end_local(LocalEnd::Failed(failure("sold out"), RetryState::NonRetryableFailure));
    assert!(world.failure().unwrap().message.contains("activity price failed: sold out"));
    assert_eq!(world.history(), ["RunStarted", "MarkerRecorded", "RunFailed"]);
    world.check();
}

#[test]
fn a_long_delay_before_a_retry_is_a_durable_timer() {
    let mut world = World::<Once>::start(());
    let execution = world.locals[0].execution.clone();
    let later =
        LocalEnd::TryLater { failure: failure("busy"), attempt: 3, after: Duration::from_secs(30) };
    world.end_local(later);
    assert!(world.locals.is_empty(), "nothing runs while the timer does");
    world.evict();
    world.pass(seconds(30));
    let again = &world.locals[0];
    assert_eq!((again.attempt, &again.execution), (4, &execution));
    assert_eq!(again.schedule_to_close, Some(seconds(70)), "the time that is left");
    world.end_local(completed(3));
    assert_eq!(world.result(), Some(3));
    let events = ["RunStarted", "MarkerRecorded", "TimerStarted", "TimerFired", "MarkerRecorded"];
    assert_eq!(world.history()[..5], events);
    world.check();
}

#[test]
fn a_cancel_request_ends_the_wait_and_gives_the_activity_up() {
    let mut world = World::<Once>::start(());
    world.cancel();
    assert!(world.locals.is_empty());
    assert_eq!(world.history(), ["RunStarted", "RunCancelRequested", "RunCancelled"]);
    world.check();
}
