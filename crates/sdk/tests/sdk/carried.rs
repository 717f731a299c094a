//! What goes along when a run continues as new, and what a dropped receiver gives back.

use abide::Context;
use abide_core::{
    event::{Fact, UpdateOutcome},
    payload::Payload,
};
use abide_sdk_macros::workflow;

use crate::world::{World, seconds};

/// Continues as new when it is told to.
#[derive(Default)]
struct Stage {
    reminded: u32,
}

#[workflow]
impl Stage {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<()> {
        ctx.receive(Self::NEXT).await?;
        Err(ctx.continue_as_new(()))
    }

    #[signal]
    fn next();

    #[signal]
    fn number(number: u32);

    #[signal]
    async fn remind(ctx: &Context<Self>, number: u32) {
        if ctx.sleep(seconds(u64::from(number))).await.is_ok() {
            ctx.write(|state| state.reminded += number);
        }
    }

    #[query]
    fn reminded(&self) -> u32 {
        self.reminded
    }
}

/// The signals that the next run has from its beginning: names and data.
fn carried(world: &World<Stage>) -> Vec<(String, String)> {
    let inputs = world.successor.as_ref().unwrap().inputs.iter();
    let text = |data: &[u8]| String::from_utf8_lossy(data).into_owned();
    let signals = inputs.filter_map(|body| match &body.fact {
        Fact::SignalReceived(signal) => Some((signal.name.clone(), text(&signal.input[0].data))),
        _ => None,
    });
    signals.collect()
}

fn signal(name: &str, data: &str) -> (String, String) {
    (name.to_owned(), data.to_owned())
}

#[test]
fn a_signal_whose_handler_has_not_finished_is_handled_by_the_next_run() {
    let mut world = World::<Stage>::start(());
    world.signal(Stage::REMIND, 1);
    world.signal(Stage::REMIND, 60);
    world.pass(seconds(1));
    assert_eq!(world.query(Stage::REMINDED, ()), 1);
    world.signal(Stage::NEXT, ());
    assert_eq!(carried(&world), [signal("remind", "60")]);
    world.check();

    let mut next = World::<Stage>::begin(*world.successor.take().unwrap());
    next.pass(seconds(60));
    assert_eq!(next.query(Stage::REMINDED, ()), 60);
    next.check();
}

#[test]
fn signals_that_cannot_be_read_go_along_in_their_order() {
    let mut world = World::<Stage>::start(());
    world.signal(Stage::NUMBER, 1);
    world.signal_raw("number", vec![Payload::new("\"two\"")]);
    world.signal_raw("remind", vec![Payload::new("\"three\"")]);
    world.signal(Stage::NUMBER, 4);
    world.signal(Stage::NEXT, ());
    let expected = ["1", "\"two\"", "\"three\"", "4"];
    assert_eq!(carried(&world).iter().map(|(_, data)| data).collect::<Vec<_>>(), expected);
    world.check();
}

/// Else whoever can send signals could make every run begin with more of them.
#[test]
fn only_the_newest_signals_of_unknown_names_go_along() {
    let mut world = World::<Stage>::start(());
    world.signal(Stage::NUMBER, 7);
    for number in 1..=101 {
        world.signal_raw("unheard-of", vec![Payload::new(number.to_string())]);
    }
    world.work();
    world.signal(Stage::NEXT, ());
    let carried = carried(&world);
    assert_eq!(carried.len(), 101);
    assert_eq!(carried[..2], [signal("number", "7"), signal("unheard-of", "2")]);
    world.check();
}

/// Begins to receive, thinks better of it, and receives later.
#[derive(Default)]
struct Undecided;

#[workflow]
impl Undecided {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<(u32, u32)> {
        let never_awaited = ctx.receive(Self::NUMBER).start();
        ctx.sleep(seconds(1)).await?;
        drop(never_awaited);
        Ok((ctx.receive(Self::NUMBER).await?, ctx.receive(Self::NUMBER).await?))
    }

    #[signal]
    fn number(number: u32);
}

#[test]
fn a_dropped_receiver_gives_back_the_signal_that_it_has_not_read() {
    for evicted in [false, true] {
        let mut world = World::<Undecided>::start(());
        world.signal(Undecided::NUMBER, 1);
        world.signal(Undecided::NUMBER, 2);
        if evicted {
            world.evict();
        }
        world.pass(seconds(1));
        assert_eq!(world.result(), Some((1, 2)));
        world.check();
    }
}

/// Moves on twice: the second time before it has looked at anything.
#[derive(Default)]
struct Relay {
    handed: Vec<String>,
}

#[workflow]
impl Relay {
    #[run]
    async fn run(ctx: &Context<Self>, stage: u32) -> abide::Result<()> {
        if stage == 1 {
            ctx.receive(Self::NEXT).await?;
        }
        if stage < 3 {
            return Err(ctx.continue_as_new(stage + 1));
        }
        ctx.receive(Self::NEXT).await
    }

    #[signal]
    fn next();

    #[update]
    async fn hand(ctx: &Context<Self>, thing: String) -> abide::Result<usize> {
        ctx.sleep(seconds(60)).await?;
        Ok(ctx.write(|state| {
            state.handed.push(thing);
            state.handed.len()
        }))
    }
}

#[test]
fn an_update_follows_through_a_run_that_goes_on_at_once() {
    let mut first = World::<Relay>::start(1);
    let update = first.update_raw("hand", vec![Payload::new("\"baton\"")]);
    first.signal(Relay::NEXT, ());
    first.check();
    let mut second = World::<Relay>::begin(*first.successor.take().unwrap());
    second.check();
    assert_eq!(second.rejected.len(), 0);
    let mut third = World::<Relay>::begin(*second.successor.take().unwrap());
    third.pass(seconds(60));
    let outcome = third.outcome(&update);
    assert!(matches!(outcome, Some(UpdateOutcome::Completed(_))), "{outcome:?}");
    third.check();
}
