//! Drawn workflows in a drawn world: whatever they do and whatever happens to them, a machine that was
//! kept, one that replays, and every cut of the history agree.

use std::time::Duration;

use abide::{Context, Outcome, context::Pending, future::LocalBoxFuture, join, join_all, select};
use abide_core::{effect::EffectOutcome, failure::Failure};
use abide_sdk_macros::{activity, workflow};
use proptest::{collection::vec, prelude::*};
use serde::{Deserialize, Serialize};

use crate::world::{World, seconds};

#[activity]
async fn act() -> u32 {
    0
}

/// A workflow as data: each step says what it does with the context.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Step {
    Sleep(u64),
    Act,
    /// Waits for a signal: at most so long, or for ever.
    Receive(Option<u64>),
    Child,
    Poke,
    Random,
    /// Begins an activity and gives it up after a sleep.
    GiveUp,
    Sequence(Vec<Step>),
    Join(Box<Step>, Box<Step>),
    All(Vec<Step>),
    Select(Box<Step>, Box<Step>),
    Spawn(Box<Step>),
}

#[derive(Default)]
struct Drawn {
    trace: Vec<String>,
}

#[workflow]
impl Drawn {
    #[run]
    async fn run(ctx: &Context<Self>, steps: Vec<Step>) -> abide::Result<Vec<String>> {
        for step in steps {
            take(ctx.clone(), step).await;
        }
        Ok(ctx.read(|state| state.trace.clone()))
    }

    #[signal]
    fn number(number: u32);

    #[signal]
    fn note(&mut self, number: u32) {
        self.trace.push(format!("noted {number}"));
    }

    #[signal]
    async fn nap(ctx: &Context<Self>, number: u32) {
        let slept = ctx.sleep(seconds(u64::from(number))).await;
        ctx.write(|state| state.trace.push(format!("napped {slept:?}")));
    }

    #[update(validate = odd)]
    async fn change(ctx: &Context<Self>, number: u32) -> abide::Result<u32> {
        if number > 2 {
            ctx.activity(act, ()).await?;
        }
        Ok(number)
    }

    fn odd(&self, number: &u32) -> Result<(), String> {
        if number % 2 == 1 { Ok(()) } else { Err("even".into()) }
    }

    #[query]
    fn trace(&self) -> Vec<String> {
        self.trace.clone()
    }
}

/// Takes a step and notes what it came to.
fn take(ctx: Context<Drawn>, step: Step) -> LocalBoxFuture<'static, ()> {
    Box::pin(async move {
        let came_to = match step {
            Step::Sleep(delay) => format!("{:?}", ctx.sleep(seconds(delay)).await),
            Step::Act => format!("{:?}", ctx.activity(act, ()).await),
            Step::Receive(None) => format!("{:?}", ctx.receive(Drawn::NUMBER).await),
            Step::Receive(Some(limit)) => {
                let limit = Duration::from_secs(limit);
                let received = ctx.receive(Drawn::NUMBER).timeout(limit).await;
                format!("{:?}", received.map(Outcome::ok))
            }
            Step::Child => format!("{:?}", ctx.child::<Drawn>("child", Vec::new()).await),
            Step::Poke => {
                let other = ctx.external::<Drawn>("other");
                format!("{:?}", other.signal(Drawn::NUMBER, 1).await)
            }
            Step::Random => format!("{} {}", ctx.random::<u32>(), ctx.now()),
            Step::GiveUp => {
                let begun: Pending<_> = ctx.activity(act, ()).start();
                let slept = ctx.sleep(seconds(1)).await;
                drop(begun);
                format!("{slept:?}")
            }
            Step::Sequence(steps) => {
                for step in steps {
                    take(ctx.clone(), step).await;
                }
                "sequence".into()
            }
            Step::Join(left, right) => {
                let ((), ()) = join!(take(ctx.clone(), *left), take(ctx.clone(), *right));
                "joined".into()
            }
            Step::All(steps) => {
                let count = join_all(steps.into_iter().map(|step| take(ctx.clone(), step))).await;
                format!("all {}", count.len())
            }
            Step::Select(left, right) => select! {
                () = take(ctx.clone(), *left) => "left".into(),
                () = take(ctx.clone(), *right) => "right".into(),
            },
            Step::Spawn(step) => {
                let handle = ctx.spawn(take(ctx.clone(), *step));
                let nap = ctx.sleep(seconds(2));
                select! {
                    () = handle => "ended".into(),
                    slept = nap => format!("left alone {slept:?}"),
                }
            }
        };
        ctx.write(|state| state.trace.push(came_to));
    })
}

/// What happens to the run.
#[derive(Clone, Debug)]
enum Happening {
    Pass(u64),
    Number(u32),
    Note(u32),
    Nap(u32),
    Change(u32),
    Complete,
    Fail,
    Answer(bool),
    Cancel,
    Evict,
}

fn step() -> impl Strategy<Value = Step> {
    let leaf = prop_oneof![
        (0..4_u64).prop_map(Step::Sleep),
        Just(Step::Act),
        proptest::option::of(0..4_u64).prop_map(Step::Receive),
        Just(Step::Child),
        Just(Step::Poke),
        Just(Step::Random),
        Just(Step::GiveUp),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        let pair = || (inner.clone(), inner.clone()).prop_map(|(a, b)| (Box::new(a), Box::new(b)));
        prop_oneof![
            vec(inner.clone(), 1..3).prop_map(Step::Sequence),
            vec(inner.clone(), 1..4).prop_map(Step::All),
            pair().prop_map(|(left, right)| Step::Join(left, right)),
            pair().prop_map(|(left, right)| Step::Select(left, right)),
            inner.prop_map(|step| Step::Spawn(Box::new(step))),
        ]
    })
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        4 => (1..4_u64).prop_map(Happening::Pass),
        3 => (0..9_u32).prop_map(Happening::Number),
        1 => (0..9_u32).prop_map(Happening::Note),
        1 => (0..3_u32).prop_map(Happening::Nap),
        2 => (0..6_u32).prop_map(Happening::Change),
        4 => Just(Happening::Complete),
        1 => Just(Happening::Fail),
        3 => any::<bool>().prop_map(Happening::Answer),
        1 => Just(Happening::Cancel),
        2 => Just(Happening::Evict),
    ]
}

fn happen(world: &mut World<Drawn>, happening: &Happening) {
    use abide_core::event::DeliveryFailure::NotFound;
    match happening {
        Happening::Pass(time) => world.pass(seconds(*time)),
        Happening::Number(number) => world.signal(Drawn::NUMBER, *number),
        Happening::Note(number) => world.signal(Drawn::NOTE, *number),
        Happening::Nap(number) => world.signal(Drawn::NAP, *number),
        Happening::Change(number) => drop(world.update(Drawn::CHANGE, *number)),
        Happening::Complete if !world.run.activities.is_empty() => world.complete(act, 1),
        Happening::Fail if !world.run.activities.is_empty() => {
            world.fail(act, Failure { non_retryable: true, ..Failure::default() });
        }
        Happening::Answer(applied) if !world.run.outbox.is_empty() => {
            world.answer(if *applied {
                EffectOutcome::Applied
            } else {
                EffectOutcome::Failed(NotFound)
            });
        }
        Happening::Cancel if !world.run.cancel_requested => world.cancel(),
        Happening::Evict => world.evict(),
        Happening::Complete | Happening::Fail | Happening::Answer(_) | Happening::Cancel => {}
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
        steps in vec(step(), 1..5),
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
        world.check();
    }
}
