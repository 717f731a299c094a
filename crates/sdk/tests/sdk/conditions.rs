//! Waits for a condition on the state, with and without a deadline.

use std::time::Duration;

use abide::{Condition, Context, Deadline, Outcome, RescheduleError, Timestamp};
use abide_core::event::{Fact, Mover, Origin};
use abide_sdk_macros::{condition, workflow};

use crate::world::{World, seconds};

#[derive(Default)]
struct Order {
    paid: bool,
    deadline: Deadline,
    moved: Option<Result<Timestamp, RescheduleError>>,
}

#[workflow]
impl Order {
    #[run]
    async fn run(ctx: &Context<Self>, timeout: Option<Duration>) -> abide::Result<String> {
        let wait = ctx.wait_until(condition!("order.paid", |order| order.paid));
        let Some(timeout) = timeout else {
            wait.await?;
            return Ok("paid".into());
        };
        let wait = wait.timeout(timeout).about("an order").actors(["anna"]).start();
        ctx.write(|order| order.deadline = wait.deadline());
        Ok(match wait.await? {
            Outcome::InTime(()) => "paid".into(),
            Outcome::TimedOut => "timed out".into(),
        })
    }

    #[signal]
    fn pay(&mut self) {
        self.paid = true;
    }

    #[signal]
    fn look(&mut self) {}

    /// Asks for an hour more.
    #[signal]
    fn wait_longer(&mut self) {
        self.moved = Some(self.deadline.extend(HOUR));
    }

    #[update]
    fn extend(&mut self, by: Duration) -> Result<Timestamp, RescheduleError> {
        self.deadline.extend(by)
    }

    #[update]
    fn reset_to(&mut self, at: Timestamp) -> Result<(), RescheduleError> {
        self.deadline.reset(at)
    }

    #[query]
    fn due(&self) -> Option<Timestamp> {
        self.deadline.at()
    }
}

const HOUR: Duration = seconds(3600);

#[test]
fn a_condition_without_deadline_is_a_wait_alone() {
    let mut world = World::<Order>::start(None);
    world.signal(Order::LOOK, ());
    assert_eq!(world.history(), ["RunStarted", "WaitOpened", "SignalReceived"]);
    world.signal(Order::PAY, ());
    assert_eq!(world.history()[3..], ["SignalReceived", "WaitSatisfied", "RunCompleted"]);
    assert_eq!(world.result().unwrap(), "paid");
    world.check();
}

#[test]
fn a_deadline_stands_beside_the_wait_and_is_cancelled_before_it_is_satisfied() {
    let mut world = World::<Order>::start(Some(HOUR));
    assert_eq!(world.history(), ["RunStarted", "WaitOpened", "TimerStarted"]);
    world.signal(Order::PAY, ());
    let end = ["SignalReceived", "TimerCancelled", "WaitSatisfied", "RunCompleted"];
    assert_eq!(world.history()[3..], end);
    assert_eq!(world.result().unwrap(), "paid");
    world.check();
}

#[test]
fn when_the_deadline_wins_the_next_task_says_so() {
    let mut world = World::<Order>::start(Some(HOUR));
    world.pass(HOUR);
    assert_eq!(world.history()[3..], ["TimerFired", "WaitTimedOut", "RunCompleted"]);
    assert_eq!(world.result().unwrap(), "timed out");
    world.check();
}

#[test]
fn key_and_fingerprint_stand_on_the_wait_and_on_its_timer() {
    let world = World::<Order>::start(Some(HOUR));
    let (mut opened, mut origin) = (None, None);
    for event in &world.events {
        match &event.body.fact {
            Fact::WaitOpened(it) => opened = Some(it.spec.clone()),
            Fact::TimerStarted(it) => origin = it.spec.origin.clone(),
            _ => {}
        }
    }
    let opened = opened.unwrap();
    let condition = opened.condition;
    assert_eq!(condition.key.as_deref(), Some("order.paid"));
    assert_eq!(condition.fingerprint.as_ref().map(String::len), Some(65));
    let expected = Origin::Condition { key: condition.key, fingerprint: condition.fingerprint };
    assert_eq!(origin, Some(expected));
    let details = opened.details.unwrap();
    assert_eq!((details.subject.as_str(), details.actors), ("an order", vec!["anna".to_owned()]));
}

/// The order is extended before its deadline and paid after it, while no worker is there.
#[test]
fn an_extension_before_the_firing_keeps_the_wait_for_a_condition_open() {
    let mut world = World::<Order>::start(Some(HOUR));
    world.signal_raw("wait_longer", Vec::new());
    world.fire_unseen(HOUR);
    world.work();
    assert_eq!(world.result(), None);
    let [wait] = &world.run.shown_waits()[..] else { panic!("one wait") };
    assert_eq!(Some(wait.until), world.query(Order::DUE, ()), "it is shown as it is waited for");
    world.signal(Order::PAY, ());
    assert_eq!(world.result().unwrap(), "paid");
    let end = ["TimerFired", "TimerRescheduled", "SignalReceived", "TimerCancelled"];
    assert_eq!(world.history()[4..8], end);
    world.check();

    let mut world = World::<Order>::start(Some(HOUR));
    world.signal_raw("wait_longer", Vec::new());
    world.fire_unseen(HOUR);
    world.signal_raw("pay", Vec::new());
    world.pass_unseen(3 * HOUR);
    world.work();
    assert_eq!(world.result().unwrap(), "paid", "all of it in one task, long after");
    world.check();
}

/// The payment comes while the task that sees the deadline has not begun: both are in one task.
#[test]
fn the_order_in_history_decides_between_signal_and_deadline() {
    let mut world = World::<Order>::start(Some(HOUR));
    world.signal_raw("pay", Vec::new());
    world.pass(HOUR);
    let end = ["SignalReceived", "TimerFired", "WaitSatisfied", "RunCompleted"];
    assert_eq!(world.history()[3..], end, "the firing was in history, so nothing was cancelled");
    assert_eq!(world.result().unwrap(), "paid");
    world.check();

    let mut world = World::<Order>::start(Some(HOUR));
    world.fire_unseen(HOUR);
    world.signal(Order::PAY, ());
    let end = ["TimerFired", "SignalReceived", "WaitTimedOut", "RunCompleted"];
    assert_eq!(world.history()[3..], end);
    assert_eq!(world.result().unwrap(), "timed out");
    world.check();
}

#[test]
fn the_deadline_of_a_condition_is_moved_by_a_handler() {
    let mut world = World::<Order>::start(Some(HOUR));
    let due = world.query(Order::DUE, ()).unwrap();
    assert_eq!(due, world.now().saturating_add(HOUR));
    let later = due.saturating_add(HOUR);
    assert_eq!(world.update(Order::EXTEND, HOUR), Some(Ok(later)));
    assert_eq!(world.query(Order::DUE, ()), Some(later));
    assert!(matches!(mover(&world), Some(Mover::Code)));
    world.pass(HOUR);
    assert_eq!(world.result(), None, "the old deadline has passed");
    world.evict();
    world.pass(HOUR);
    assert_eq!(world.result().unwrap(), "timed out");
    world.check();
}

#[test]
fn the_deadline_of_a_condition_is_moved_by_a_client() {
    let mut world = World::<Order>::start(Some(HOUR));
    let later = world.now().saturating_add(seconds(7200));
    world.reschedule("condition-1", later);
    world.signal(Order::LOOK, ());
    assert_eq!(world.query(Order::DUE, ()), Some(later), "code sees it with its next task");
    world.pass(seconds(7199));
    assert_eq!(world.result(), None);
    world.pass(seconds(1));
    assert_eq!(world.result().unwrap(), "timed out");
    world.check();
}

#[test]
fn a_deadline_is_shortened_and_moved_to_now() {
    let mut world = World::<Order>::start(Some(HOUR));
    let now = world.now();
    assert_eq!(world.update(Order::RESET_TO, now.saturating_add(seconds(60))), Some(Ok(())));
    world.pass(seconds(59));
    assert_eq!(world.result(), None);
    let now = world.now();
    assert_eq!(world.update(Order::RESET_TO, now), Some(Ok(())));
    world.pass(Duration::ZERO);
    assert_eq!(world.result().unwrap(), "timed out");
    world.check();
}

#[test]
fn deadlines_that_make_no_sense_are_refused() {
    let refused = |world: &mut World<Order>, at: Timestamp, expected: &str| {
        let error = world.update(Order::RESET_TO, at).unwrap().unwrap_err();
        assert!(error.contains(expected), "{error}");
    };
    let mut world = World::<Order>::start(Some(HOUR));
    let now = world.now();
    world.pass(seconds(1));
    refused(&mut world, now, "is in the past");
    refused(&mut world, Timestamp::NEVER, "cannot be moved to never");
    assert!(!world.history().contains(&"TimerRescheduled"));
    // The same deadline is nothing new.
    assert_eq!(world.update(Order::RESET_TO, now.saturating_add(HOUR)), Some(Ok(())));
    assert!(!world.history().contains(&"TimerRescheduled"));
    let mut world = World::<Order>::start(None);
    refused(&mut world, now.saturating_add(HOUR), "no wait has begun with this deadline");
    world.check();
}

fn mover(world: &World<Order>) -> Option<Mover> {
    world.events.iter().find_map(|event| match &event.body.fact {
        Fact::TimerRescheduled(moved) => Some(moved.by.clone()),
        _ => None,
    })
}

/// What begins and ends at once, and what is given up.
#[derive(Default)]
struct Moments {
    permits: u32,
    taken: Vec<u32>,
}

#[workflow]
impl Moments {
    #[run]
    async fn run(ctx: &Context<Self>, scene: String) -> abide::Result<Vec<u32>> {
        match scene.as_str() {
            "at once" => {
                ctx.wait_until(condition!(|it| it.permits == 0)).await?;
                let looked = ctx.wait_until(condition!(|it| it.permits > 0));
                assert!(looked.timeout(Duration::ZERO).await?.is_timed_out());
                let past = ctx.now();
                let looked = ctx.wait_until(condition!(|it| it.permits > 0)).until(past);
                assert!(looked.await?.is_timed_out());
            }
            "permits" => {
                let takers = (1..=3).map(|taker| {
                    let ctx = ctx.clone();
                    async move {
                        ctx.wait_until(condition!(|it| it.permits > 0)).await?;
                        ctx.write(|it| {
                            it.permits -= 1;
                            it.taken.push(taker);
                        });
                        Ok::<_, abide::Error>(())
                    }
                });
                for taken in abide::join_all(takers).await {
                    taken?;
                }
            }
            "select" => {
                let wait = ctx.wait_until(condition!(|it| it.permits > 0)).timeout(HOUR);
                abide::select! {
                    won = wait => { let _ = won?; }
                    slept = ctx.sleep(seconds(1)) => slept?,
                }
                ctx.sleep(seconds(1)).await?;
            }
            "captured" => {
                let enough = 2;
                ctx.wait_until(condition!("enough", |it| it.permits >= enough)).await?;
            }
            _ => ctx.wait_until(Condition::keyed("not a key", |_: &Self| true)).await?,
        }
        Ok(ctx.read(|it| it.taken.clone()))
    }

    #[signal]
    fn permit(&mut self, count: u32) {
        self.permits += count;
    }
}

#[test]
fn what_holds_at_once_or_has_no_time_leaves_no_trace() {
    let world = World::<Moments>::start("at once");
    assert_eq!(world.history(), ["RunStarted", "RunCompleted"]);
    world.check();
}

#[test]
fn a_condition_holds_when_its_wait_ends() {
    let mut world = World::<Moments>::start("permits");
    world.signal(Moments::PERMIT, 1);
    world.evict();
    world.signal(Moments::PERMIT, 2);
    assert_eq!(world.result().unwrap(), [1, 2, 3], "one permit each, in the order of asking");
    world.check();
}

#[test]
fn a_wait_that_lost_is_cancelled_with_its_timer() {
    let mut world = World::<Moments>::start("select");
    world.pass(seconds(1));
    let gone = ["TimerFired", "TimerCancelled", "WaitCancelled", "TimerStarted"];
    assert_eq!(world.history()[4..], gone);
    world.pass(seconds(1));
    assert!(world.result().is_some());
    world.check();
}

#[test]
fn a_cancel_request_ends_the_wait() {
    let mut world = World::<Order>::start(Some(HOUR));
    world.cancel();
    let end = ["RunCancelRequested", "TimerCancelled", "WaitCancelled", "RunCancelled"];
    assert_eq!(world.history()[3..], end);
    world.check();
}

#[test]
fn captured_values_are_part_of_the_condition() {
    let mut world = World::<Moments>::start("captured");
    world.signal(Moments::PERMIT, 1);
    assert_eq!(world.result(), None);
    world.signal(Moments::PERMIT, 1);
    assert!(world.result().is_some());
    world.check();
}

#[test]
fn a_key_that_is_none_is_refused() {
    let world = World::<Moments>::start("bad key");
    let failure = world.failure().unwrap();
    assert!(failure.message.contains("is not a valid condition key"), "{failure:?}");
}

/// Nothing could ever make the condition true.
#[derive(Default)]
struct Stuck;

#[workflow]
impl Stuck {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<()> {
        ctx.wait_until(condition!(|_| false)).await
    }
}

#[test]
fn a_condition_that_nothing_can_change_is_named() {
    let world = World::<Stuck>::start(());
    let fault = &world.faults[0].failure;
    assert!(fault.message.contains("a condition that can never become true"), "{fault:?}");
}
