//! Drawn trees of scopes, shields and selects, with cancel requests at any point: a machine that was
//! kept, one that replays, and every cut of the history agree, and what is in a shield runs to its end,
//! once.

use std::collections::BTreeSet;

use abide::{
    Context, OnCancel, Outcome, context::Canceller, future::LocalBoxFuture, join_all, select,
    try_join_all,
};
use abide_core::{
    effect::EffectOutcome,
    event::{DeliveryFailure, Event, Fact},
    ids::EventNumber,
};
use abide_sdk_macros::{activity, condition, workflow};
use proptest::{collection::vec, prelude::*};
use serde::{Deserialize, Serialize};

use crate::world::{World, seconds};

#[activity]
async fn act() -> u32 {
    0
}

#[activity]
async fn clean() {}

/// A workflow as data.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Step {
    Sleep(u64),
    Act(Policy),
    Receive,
    Child(Policy),
    Until,
    Listen,
    /// Begins a sleep and cancels it alone.
    CancelOne,
    /// A scope of a name by which others cancel it.
    Scope(u8, Box<Step>),
    /// Cancels the newest open scope of this name.
    Cancel(u8),
    /// Cleans up in a shield, after the step.
    Cleanup(Box<Step>),
    /// A shield with a deadline.
    Within(u64, Box<Step>),
    Sequence(Vec<Step>),
    All(Vec<Step>),
    TryAll(Vec<Step>),
    Bounded(Vec<Step>),
    Select(Box<Step>, Box<Step>),
    Spawn(Box<Step>),
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Policy {
    Try,
    Wait,
    Abandon,
}

impl From<Policy> for OnCancel {
    fn from(policy: Policy) -> Self {
        match policy {
            Policy::Try => Self::Cancel,
            Policy::Wait => Self::CancelAndWait,
            Policy::Abandon => Self::Abandon,
        }
    }
}

#[derive(Default)]
struct Drawn {
    trace: Vec<String>,
    scopes: Vec<(u8, Canceller)>,
    number: u32,
    /// Shields that were entered, and those that came to their end.
    entered: usize,
    cleaned: usize,
}

#[workflow]
impl Drawn {
    #[run]
    async fn run(ctx: &Context<Self>, steps: Vec<Step>) -> abide::Result<Vec<String>> {
        for step in steps {
            drop(take(ctx.clone(), step).await);
        }
        Ok(ctx.read(|state| state.trace.clone()))
    }

    #[signal]
    fn word(word: u32);

    #[signal]
    fn set(&mut self, number: u32) {
        self.number = number;
    }

    /// Cancels a scope from a handler.
    #[signal]
    fn stop(&mut self, name: u8) {
        let named = self.scopes.iter().rev().find(|(of, _)| *of == name);
        if let Some((_, canceller)) = named {
            canceller.cancel("a signal");
        }
    }

    #[query]
    fn cleanups(&self) -> (usize, usize) {
        (self.entered, self.cleaned)
    }
}

/// Takes a step, notes what it came to, and fails as it did.
fn take(ctx: Context<Drawn>, step: Step) -> LocalBoxFuture<'static, abide::Result<()>> {
    Box::pin(async move {
        let name = format!("{step:?}");
        let name = name.split(['(', '{']).next().unwrap_or_default().to_owned();
        let result = act_out(&ctx, step).await;
        let asked = ctx.cancellation();
        ctx.write(|state| state.trace.push(format!("{name} {result:?} {asked:?}")));
        result
    })
}

async fn act_out(ctx: &Context<Drawn>, step: Step) -> abide::Result<()> {
    match step {
        Step::Sleep(delay) => ctx.sleep(seconds(delay)).await,
        Step::Act(policy) => ctx.activity(act, ()).on_cancel(policy.into()).await.map(drop),
        Step::Receive => ctx.receive(Drawn::WORD).await.map(drop),
        Step::Child(policy) => {
            let child = ctx.child::<Drawn>("child", Vec::new());
            child.on_cancel(policy.into()).await.map(drop)
        }
        Step::Until => {
            let odd = condition!("drawn.odd", |drawn: &Drawn| drawn.number % 2 == 1);
            ctx.wait_until(odd).timeout(seconds(3)).await.map(drop)
        }
        Step::Listen => {
            select! {
                _ = ctx.cancelled() => Ok(()),
                slept = ctx.sleep(seconds(2)) => slept,
            }
        }
        Step::Cancel(name) => {
            let named = ctx.read(|state| {
                let named = state.scopes.iter().rev().find(|(of, _)| *of == name);
                named.map(|(_, canceller)| canceller.clone())
            });
            named.iter().for_each(|canceller| canceller.cancel("a step"));
            Ok(())
        }
        Step::CancelOne => {
            let mut sleep = ctx.sleep(seconds(3)).start();
            ctx.sleep(seconds(1)).await?;
            sleep.cancel();
            sleep.await
        }
        step => compose(ctx, step).await,
    }
}

/// The steps that are made of others.
async fn compose(ctx: &Context<Drawn>, step: Step) -> abide::Result<()> {
    let all = |steps: Vec<Step>| steps.into_iter().map(|step| take(ctx.clone(), step));
    match step {
        Step::Scope(name, step) => {
            let scope = ctx.scope(take(ctx.clone(), *step));
            ctx.write(|state| state.scopes.push((name, scope.canceller())));
            scope.await
        }
        Step::Cleanup(step) => {
            let result = take(ctx.clone(), *step).await;
            // As a task of its own, so that nobody who loses a select takes the cleaning up along.
            let own = ctx.clone();
            let cleanup = async move {
                own.write(|state| state.entered += 1);
                let cleaned = own.activity(clean, ()).await;
                own.write(|state| state.cleaned += usize::from(cleaned.is_ok()));
            };
            ctx.spawn(ctx.shield(cleanup)).await;
            result
        }
        Step::Within(limit, step) => {
            let shield = ctx.shield(take(ctx.clone(), *step)).timeout(seconds(limit));
            match shield.await {
                Outcome::InTime(result) => result,
                Outcome::TimedOut => Ok(()),
            }
        }
        Step::Sequence(steps) => {
            for step in steps {
                take(ctx.clone(), step).await?;
            }
            Ok(())
        }
        Step::All(steps) => join_all(all(steps)).await.into_iter().collect(),
        Step::TryAll(steps) => try_join_all(all(steps)).await.map(drop),
        Step::Bounded(steps) => {
            let ended = ctx.map_bounded(2, steps, |step| take(ctx.clone(), step)).await;
            ended.into_iter().collect()
        }
        Step::Select(left, right) => select! {
            ended = take(ctx.clone(), *left) => ended,
            ended = take(ctx.clone(), *right) => ended,
        },
        Step::Spawn(step) => {
            let task = ctx.spawn(take(ctx.clone(), *step));
            select! {
                ended = task => ended,
                slept = ctx.sleep(seconds(2)) => slept,
            }
        }
        leaf => unreachable!("{leaf:?} is made of no others"),
    }
}

/// What happens to the run.
#[derive(Clone, Debug)]
enum Happening {
    Pass(u64),
    Word,
    Set(u32),
    Stop(u8),
    Complete,
    Clean,
    Answer(bool),
    Cancel,
    Evict,
}

fn policy() -> impl Strategy<Value = Policy> {
    prop_oneof![Just(Policy::Try), Just(Policy::Wait), Just(Policy::Abandon)]
}

fn step() -> impl Strategy<Value = Step> {
    let leaf = prop_oneof![
        (0..4_u64).prop_map(Step::Sleep),
        policy().prop_map(Step::Act),
        policy().prop_map(Step::Child),
        Just(Step::Receive),
        Just(Step::Until),
        Just(Step::Listen),
        Just(Step::CancelOne),
        (0..3_u8).prop_map(Step::Cancel),
    ];
    leaf.prop_recursive(4, 16, 3, |inner| {
        let steps = || vec(inner.clone(), 1..4);
        let boxed = || inner.clone().prop_map(Box::new);
        prop_oneof![
            2 => (0..3_u8, boxed()).prop_map(|(name, step)| Step::Scope(name, step)),
            2 => boxed().prop_map(Step::Cleanup),
            1 => (0..4_u64, boxed()).prop_map(|(limit, step)| Step::Within(limit, step)),
            1 => steps().prop_map(Step::Sequence),
            1 => steps().prop_map(Step::All),
            1 => steps().prop_map(Step::TryAll),
            1 => steps().prop_map(Step::Bounded),
            2 => (boxed(), boxed()).prop_map(|(left, right)| Step::Select(left, right)),
            1 => boxed().prop_map(Step::Spawn),
        ]
    })
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        4 => (1..4_u64).prop_map(Happening::Pass),
        2 => Just(Happening::Word),
        1 => (0..3_u32).prop_map(Happening::Set),
        2 => (0..3_u8).prop_map(Happening::Stop),
        3 => Just(Happening::Complete),
        3 => Just(Happening::Clean),
        3 => any::<bool>().prop_map(Happening::Answer),
        2 => Just(Happening::Cancel),
        2 => Just(Happening::Evict),
    ]
}

fn pending(world: &World<Drawn>, activity_type: &str) -> bool {
    world.run.activities.values().any(|activity| activity.spec.activity_type == activity_type)
}

fn happen(world: &mut World<Drawn>, happening: &Happening) {
    match happening {
        Happening::Pass(time) => world.pass(seconds(*time)),
        Happening::Word => world.signal(Drawn::WORD, 1),
        Happening::Set(number) => world.signal(Drawn::SET, *number),
        Happening::Stop(name) => world.signal(Drawn::STOP, *name),
        Happening::Complete if pending(world, "act") => world.complete(act, 1),
        Happening::Clean if pending(world, "clean") => world.complete(clean, ()),
        Happening::Answer(applied) if !world.run.outbox.is_empty() => {
            let failed = EffectOutcome::Failed(DeliveryFailure::NotFound);
            world.answer(if *applied { EffectOutcome::Applied } else { failed });
        }
        Happening::Cancel if !world.run.cancel_requested => world.cancel_because("enough"),
        Happening::Evict => world.evict(),
        Happening::Complete | Happening::Clean | Happening::Answer(_) | Happening::Cancel => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 150,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_machine_and_every_cut_agree(
        steps in vec(step(), 1..4),
        happenings in vec(happening(), 1..20),
    ) {
        let mut world = World::<Drawn>::start(steps);
        for happening in &happenings {
            if !world.run.open() {
                break;
            }
            happen(&mut world, happening);
            prop_assert_eq!(&world.faults, &[]);
        }
        // Whatever was cancelled, each cleaning up calls its activity once, and nobody cancels that.
        let calls = Calls::of(&world.events);
        let (entered, cleaned) = world.query(Drawn::CLEANUPS, ());
        prop_assert_eq!(calls.begun.len(), entered);
        prop_assert_eq!(calls.cancelled, 0);
        prop_assert!(cleaned == calls.completed || !world.run.open());
        world.check();
    }
}

/// The calls of the activity that cleans up.
#[derive(Default)]
struct Calls {
    begun: BTreeSet<EventNumber>,
    completed: usize,
    cancelled: usize,
}

impl Calls {
    fn of(events: &[Event]) -> Self {
        let mut calls = Self::default();
        for event in events {
            match &event.body.fact {
                Fact::ActivityScheduled(it) if it.spec.activity_type == "clean" => {
                    calls.begun.insert(event.number);
                }
                Fact::ActivityCompleted(it) if calls.begun.contains(&it.scheduled) => {
                    calls.completed += 1;
                }
                Fact::ActivityCancelRequested(it) if calls.begun.contains(&it.scheduled) => {
                    calls.cancelled += 1;
                }
                _ => {}
            }
        }
        calls
    }
}
