//! Signals: received by the run, applied to the state, or handled by tasks of their own.

use std::time::Duration;

use abide::{Context, Outcome};
use abide_core::{
    event::{Fact, Origin},
    payload::Payload,
};
use abide_sdk_macros::workflow;

use crate::world::{World, seconds};

#[derive(Default)]
struct Shop {
    reminders: Vec<u32>,
    notes: Vec<String>,
}

#[workflow]
impl Shop {
    /// Receives as often as the argument says, each time for at most so long.
    #[run]
    async fn run(
        ctx: &Context<Self>,
        count: u32,
        timeout: Option<Duration>,
    ) -> abide::Result<Vec<String>> {
        let mut seen = Vec::new();
        for _ in 0..count {
            seen.push(match timeout {
                None => ctx.receive(Self::PAID).await?,
                Some(timeout) => match ctx.receive(Self::PAID).timeout(timeout).await? {
                    Outcome::InTime(payment) => payment,
                    Outcome::TimedOut => "timed out".into(),
                },
            });
        }
        Ok(seen)
    }

    #[signal]
    fn paid(payment: String);

    #[signal(name = "note-it")]
    fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    #[signal]
    async fn remind(ctx: &Context<Self>, number: u32) {
        if ctx.sleep(seconds(1)).await.is_ok() {
            ctx.write(|state| state.reminders.push(number));
        }
    }

    #[query]
    fn seen(&self) -> (Vec<u32>, Vec<String>) {
        (self.reminders.clone(), self.notes.clone())
    }
}

fn timer(world: &World<Shop>) -> (String, bool, Option<Origin>) {
    let started = world.events.iter().find_map(|event| match &event.body.fact {
        Fact::TimerStarted(started) => Some(&started.spec),
        _ => None,
    });
    let spec = started.unwrap();
    (spec.timer.to_string(), spec.fire_at.is_never(), spec.origin.clone())
}

fn waits_for_payment() -> Option<Origin> {
    Some(Origin::ExternalEvent { name: "paid".into() })
}

#[test]
fn a_wait_without_deadline_is_a_timer_that_never_fires() {
    let mut world = World::<Shop>::start((1, None));
    assert_eq!(timer(&world), ("signal-1".into(), true, waits_for_payment()));
    world.signal(Shop::PAID, "cash");
    assert_eq!(world.history()[2..], ["SignalReceived", "TimerCancelled", "RunCompleted"]);
    assert_eq!(world.result().unwrap(), ["cash"]);
    world.check();
}

#[test]
fn a_wait_with_deadline_ends_by_signal_or_by_time() {
    let mut world = World::<Shop>::start((2, Some(seconds(60))));
    assert_eq!(timer(&world), ("timer-1".into(), false, waits_for_payment()));
    world.signal(Shop::PAID, "cash");
    world.pass(seconds(60));
    assert_eq!(world.result().unwrap(), ["cash", "timed out"]);
    world.check();
}

#[test]
fn a_zero_timeout_takes_only_what_is_there() {
    let world = World::<Shop>::start((1, Some(Duration::ZERO)));
    assert_eq!(world.result().unwrap(), ["timed out"]);
    assert_eq!(world.history(), ["RunStarted", "RunCompleted"]);
    world.check();
}

/// Sleeps before it receives two signals.
#[derive(Default)]
struct Late;

#[workflow]
impl Late {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<(u32, u32)> {
        ctx.sleep(seconds(1)).await?;
        Ok((ctx.receive(Self::NUMBER).await?, ctx.receive(Self::NUMBER).await?))
    }

    #[signal]
    fn number(number: u32);
}

#[test]
fn signals_that_are_there_are_received_in_order_without_a_timer() {
    let mut world = World::<Late>::start(());
    world.signal(Late::NUMBER, 1);
    world.signal(Late::NUMBER, 2);
    world.pass(seconds(1));
    assert_eq!(world.result(), Some((1, 2)));
    assert_eq!(world.history()[4..], ["TimerFired", "RunCompleted"]);
    world.check();
}

#[test]
fn a_handler_changes_the_state_at_once() {
    let mut world = World::<Shop>::start((1, None));
    world.signal(Shop::NOTE, "fragile");
    assert_eq!(world.query(Shop::SEEN, ()).1, ["fragile"]);
    assert_eq!(Shop::NOTE.name(), "note-it");
    world.check();
}

#[test]
fn an_async_handler_is_a_task_of_its_own() {
    let mut world = World::<Shop>::start((1, None));
    world.signal(Shop::REMIND, 1);
    world.signal(Shop::REMIND, 2);
    assert_eq!(world.query(Shop::SEEN, ()).0, [0; 0]);
    world.pass(seconds(1));
    assert_eq!(world.query(Shop::SEEN, ()).0, [1, 2]);
    world.check();
}

#[test]
fn an_unknown_signal_is_kept_and_does_no_harm() {
    let mut world = World::<Shop>::start((1, None));
    world.signal_raw("unheard-of", Vec::new());
    world.signal(Shop::PAID, "cash");
    assert_eq!(world.result().unwrap(), ["cash"]);
    world.check();
}

/// Whoever can send signals could end the run otherwise.
#[test]
fn a_run_receives_nothing_that_cannot_be_read() {
    let mut world = World::<Shop>::start((1, None));
    world.signal_raw("paid", vec![Payload::new("7")]);
    world.work();
    world.evict();
    world.signal(Shop::PAID, "cash");
    assert_eq!(world.result().unwrap(), ["cash"]);
    world.check();
}

#[test]
fn data_that_a_handler_cannot_read_does_no_harm() {
    let mut world = World::<Shop>::start((1, None));
    world.signal_raw("note-it", vec![Payload::new("7")]);
    world.signal(Shop::PAID, "cash");
    assert_eq!(world.result().unwrap(), ["cash"]);
    world.check();
}

/// Begins to receive, and goes on in a new run without having looked.
#[derive(Default)]
struct Absent;

#[workflow]
impl Absent {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<()> {
        ctx.receive(Self::GO).await?;
        drop(ctx.receive(Self::ITEM).start());
        let _first = ctx.receive(Self::ITEM).start();
        let (other, _spawned) = (ctx.clone(), ctx.receive(Self::ITEM).start());
        ctx.spawn(async move {
            let _third = other.receive(Self::ITEM).start();
            other.sleep(seconds(60)).await
        });
        ctx.sleep(seconds(1)).await?;
        Err(ctx.continue_as_new(()))
    }

    #[signal]
    fn go();

    #[signal]
    fn item(name: String);
}

#[test]
fn a_signal_that_was_there_is_unread_until_code_takes_it() {
    let mut world = World::<Absent>::start(());
    for name in ["a", "b", "c"] {
        world.signal(Absent::ITEM, name.to_owned());
    }
    world.signal(Absent::GO, ());
    world.pass(seconds(1));
    assert_eq!(world.history().last(), Some(&"RunContinuedAsNew"));
    assert_eq!(world.successor.as_ref().unwrap().inputs.len(), 3);
    world.check();
}
