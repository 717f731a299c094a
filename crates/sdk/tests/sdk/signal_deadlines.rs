//! The deadline of a wait for a signal, moved by another branch of the same run.

use abide::{Context, Outcome};
use abide_core::event::{Fact, Mover};
use abide_sdk_macros::workflow;

use crate::world::{World, seconds};

/// A wait for a signal whose deadline another branch moves.
#[derive(Default)]
struct Offer;

#[workflow]
impl Offer {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<String> {
        let wait = ctx.receive(Self::ANSWER).timeout(seconds(10)).start();
        let deadline = wait.deadline();
        let patience = ctx.clone();
        let moved = ctx.spawn(async move {
            patience.sleep(seconds(5)).await?;
            deadline
                .reset(patience.now().saturating_add(seconds(10)))
                .map_err(abide::Error::from_source)?;
            Ok::<_, abide::Error>(deadline)
        });
        let answer = match wait.await? {
            Outcome::InTime(answer) => answer,
            Outcome::TimedOut => "none".into(),
        };
        let deadline = moved.await?;
        Ok(format!("{answer} {}", deadline.is_open()))
    }

    #[signal]
    fn answer(answer: String);
}

#[test]
fn the_deadline_of_a_signal_is_moved_by_another_branch() {
    let mut world = World::<Offer>::start(());
    world.pass(seconds(14));
    world.evict();
    world.signal(Offer::ANSWER, "yes");
    assert_eq!(world.result().unwrap(), "yes false");
    world.check();
    let mut world = World::<Offer>::start(());
    world.pass(seconds(15));
    assert_eq!(world.result().unwrap(), "none false");
    let by = world.events.iter().find_map(|event| match &event.body.fact {
        Fact::TimerRescheduled(moved) => Some(moved.by.clone()),
        _ => None,
    });
    assert_eq!(by, Some(Mover::Code));
    world.check();
}

/// The branch wakes up before the deadline in history, and with it in the same task.
#[test]
fn a_branch_that_wakes_before_the_firing_moves_the_deadline_past_it() {
    let mut world = World::<Offer>::start(());
    let begun = world.now();
    world.fire_unseen(seconds(5));
    world.fire_unseen(seconds(5));
    world.work();
    assert_eq!(world.result(), None);
    let due = world.run.timers.values().map(|timer| timer.due()).collect::<Vec<_>>();
    assert_eq!(due, [begun.saturating_add(seconds(20))]);
    world.signal(Offer::ANSWER, "yes");
    assert_eq!(world.result().unwrap(), "yes false");
    world.check();
}
