//! What code records for itself: side effects and patches, and the retries of children that it makes
//! itself; and signals of any name.

use std::cell::Cell;

use abide::{Context, Outcome, RetryPolicy, Workflow, executor::Machine};
use abide_core::{
    effect::{Action, EffectOutcome, RunOutcome},
    event::{Event, Fact, Origin},
    failure::Failure,
    replay::Replay,
    retry::RetryState,
};
use abide_sdk_macros::workflow;

use crate::world::{World, key, run_id, seconds};

thread_local! {
    /// Stands for the world outside.
    static OUTSIDE: Cell<u32> = const { Cell::new(0) };
}

#[derive(Default)]
struct Looking {
    seen: Vec<u32>,
}

#[workflow]
impl Looking {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<()> {
        for _ in 0..2 {
            let seen = ctx.side_effect(|| OUTSIDE.get())?;
            ctx.write(|it| it.seen.push(seen));
            ctx.sleep(seconds(1)).await?;
        }
        Ok(())
    }

    #[query]
    fn seen(&self) -> Vec<u32> {
        self.seen.clone()
    }
}

#[test]
fn a_side_effect_keeps_the_value_of_its_first_time() {
    OUTSIDE.set(1);
    let mut world = World::<Looking>::start(());
    OUTSIDE.set(2);
    world.evict();
    world.pass(seconds(1));
    OUTSIDE.set(3);
    assert_eq!(world.query(Looking::SEEN, ()), [1, 2]);
    let history = ["RunStarted", "MarkerRecorded", "TimerStarted", "TimerFired", "MarkerRecorded"];
    assert_eq!(world.history()[..5], history);
}

/// The same workflow before and after a change.
#[derive(Default)]
struct Before;

#[workflow(name = "Changing")]
impl Before {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<String> {
        ctx.sleep(seconds(1)).await?;
        ctx.sleep(seconds(1)).await?;
        Ok("as before".into())
    }
}

#[derive(Default)]
struct After;

#[workflow(name = "Changing")]
impl After {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<String> {
        ctx.sleep(seconds(1)).await?;
        if ctx.patched("wait for an answer") {
            ctx.receive(Self::ANSWER).await?;
            assert!(ctx.patched("wait for an answer"), "it stays so");
            return Ok("answered".into());
        }
        ctx.sleep(seconds(1)).await?;
        Ok("as before".into())
    }

    #[signal]
    fn answer();
}

/// Replays a history with this code.
pub(crate) fn replay<W: Workflow>(events: &[Event]) -> Result<(), abide_core::replay::Error> {
    let mut machine = Replay::new(Machine::<W>::new(key("order-1"), run_id(1)));
    machine.feed(events.to_vec()).and_then(|()| machine.settle())
}

#[test]
fn a_run_that_was_past_the_place_goes_on_as_before() {
    let mut world = World::<Before>::start(());
    world.pass(seconds(1));
    replay::<After>(&world.events).unwrap();
    world.pass(seconds(1));
    replay::<After>(&world.events).unwrap();
}

#[test]
fn a_run_that_comes_to_the_place_follows_the_change_for_ever() {
    let mut world = World::<After>::start(());
    replay::<Before>(&world.events).unwrap();
    world.pass(seconds(1));
    assert_eq!(world.history()[3..], ["MarkerRecorded", "TimerStarted"]);
    let mismatch = replay::<Before>(&world.events).unwrap_err().to_string();
    assert!(mismatch.contains("MarkerRecorded version, wait for an answer"), "{mismatch}");
    world.evict();
    world.signal(After::ANSWER, ());
    assert_eq!(world.result().unwrap(), "answered");
    world.check();
}

#[derive(Default)]
struct Child;

#[workflow]
impl Child {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<()> {
        ctx.sleep(seconds(1)).await
    }
}

#[derive(Default)]
struct Parent;

#[workflow]
impl Parent {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<String> {
        let policy = RetryPolicy::default().recorded().maximum_attempts(3);
        match ctx.child::<Child>("shipment", ()).retry(policy).await {
            Ok(()) => Ok("shipped".into()),
            Err(error) => Ok(error.to_string()),
        }
    }
}

fn failed() -> RunOutcome {
    let failure = Failure { message: "no truck".into(), ..Failure::default() };
    RunOutcome::Failed { failure, retry_state: RetryState::PolicyNotSet }
}

fn attempt_fails(world: &mut World<Parent>) -> (String, Option<String>) {
    let Action::StartChild(start) = world.answer(EffectOutcome::Applied) else { panic!() };
    world.close_child(failed());
    let retry_of = start.child.retry_of.map(|first| first.to_string());
    (start.child.workflow.workflow.to_string(), retry_of)
}

#[test]
fn each_retry_is_a_child_of_its_own_and_every_timer_names_the_first() {
    let mut world = World::<Parent>::start(());
    assert_eq!(attempt_fails(&mut world), ("shipment".into(), None));
    world.evict();
    world.pass(seconds(600));
    let first = Some("shipment".to_owned());
    assert_eq!(attempt_fails(&mut world), ("shipment-attempt-2".into(), first.clone()));
    world.pass(seconds(600));
    assert_eq!(attempt_fails(&mut world), ("shipment-attempt-3".into(), first));
    let origins: Vec<_> = world
        .events
        .iter()
        .filter_map(|event| match &event.body.fact {
            Fact::TimerStarted(started) => started.spec.origin.clone(),
            _ => None,
        })
        .collect();
    let named = Origin::ChildWorkflowRetry { workflow: "shipment".into() };
    assert_eq!(origins, [named.clone(), named]);
    assert!(world.result().unwrap().contains("no truck"));
    world.check();
}

#[derive(Default)]
struct Desk {
    greeted: u32,
}

#[workflow]
impl Desk {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<Vec<String>> {
        let mut seen = Vec::new();
        loop {
            let signal = match ctx.receive_any().timeout(seconds(60)).await? {
                Outcome::InTime(signal) => signal,
                Outcome::TimedOut => break,
            };
            seen.push(match signal.read(Self::PAID) {
                Some(amount) => format!("{} {}", signal.name(), amount?),
                None => format!("{} with {} arguments", signal.name(), signal.payloads().len()),
            });
        }
        Ok(seen)
    }

    #[signal]
    fn paid(amount: u32);

    #[signal]
    fn greet(&mut self) {
        self.greeted += 1;
    }
}

#[test]
fn a_wait_for_any_signal_tells_its_name() {
    let mut world = World::<Desk>::start(());
    let origin = world.events.iter().find_map(|event| match &event.body.fact {
        Fact::TimerStarted(started) => started.spec.origin.clone(),
        _ => None,
    });
    assert_eq!(origin, Some(Origin::ExternalEvent { name: String::new() }));
    world.signal(Desk::GREET, ());
    world.signal_raw("unknown", Vec::new());
    world.signal(Desk::PAID, 7);
    world.evict();
    world.pass(seconds(60));
    assert_eq!(world.result().unwrap(), ["unknown with 0 arguments", "paid 7"]);
    world.check();
}
