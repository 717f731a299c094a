//! Sleeps and waits for signals whose deadlines are read and moved while they are awaited.

use std::time::Duration;

use abide::{
    Context, Deadline, RescheduleError, Timestamp,
    payload::{decode, encode},
};
use abide_core::event::{Fact, Guards, Mover};
use abide_sdk_macros::{condition, workflow};
use proptest::prelude::*;

use crate::world::{World, seconds};

#[derive(Default)]
struct Auction {
    closing: Deadline,
    bids: u32,
}

#[workflow]
impl Auction {
    #[run]
    async fn run(ctx: &Context<Self>, time: Duration) -> abide::Result<(u32, Timestamp)> {
        let limit = ctx.now().saturating_add(seconds(1_000));
        let closing = ctx.sleep(time).not_after(limit).max_extensions(2).start();
        ctx.write(|it| it.closing = closing.deadline());
        closing.await?;
        Ok((ctx.read(|it| it.bids), ctx.now()))
    }

    /// Each bid leaves at least a minute for the next.
    #[signal]
    fn bid(&mut self) {
        self.bids += 1;
        let _ = self.closing.extend(seconds(60));
    }

    #[update]
    fn close_at(&mut self, at: Timestamp) -> Result<(), RescheduleError> {
        self.closing.reset(at)
    }

    #[query]
    fn closes(&self) -> Option<Timestamp> {
        self.closing.at()
    }
}

#[test]
fn a_deadline_is_extended_as_often_as_code_likes_by_one_timer() {
    let mut world = World::<Auction>::start(seconds(60));
    let begun = world.now();
    for _ in 0..30 {
        world.pass(seconds(30));
        world.signal(Auction::BID, ());
    }
    assert_eq!(world.run.timers.len(), 1);
    world.pass(seconds(1_000));
    let (bids, closed) = world.result().unwrap();
    assert_eq!((bids, closed), (30, begun.saturating_add(seconds(60 + 30 * 60))));
    let started = world.history().iter().filter(|name| **name == "TimerStarted").count();
    let fired = world.history().iter().filter(|name| **name == "TimerFired").count();
    assert_eq!((started, fired), (1, 1));
    world.check();
}

#[test]
fn what_clients_may_do_stands_on_the_timer() {
    let world = World::<Auction>::start(seconds(60));
    let guards = world.events.iter().find_map(|event| match &event.body.fact {
        Fact::TimerStarted(started) => Some(started.spec.guards),
        _ => None,
    });
    let not_after = Some(world.now().saturating_add(seconds(1_000)));
    assert_eq!(guards, Some(Guards { not_after, max_extensions: Some(2) }));
}

#[test]
fn a_query_tells_the_deadline_also_when_a_client_moved_it() {
    let mut world = World::<Auction>::start(seconds(60));
    let (begun, first) = (world.now(), world.query(Auction::CLOSES, ()).unwrap());
    assert_eq!(first, begun.saturating_add(seconds(60)));
    let later = begun.saturating_add(seconds(500));
    world.reschedule("timer-1", begun.saturating_add(seconds(400)));
    world.reschedule("timer-1", later);
    assert_eq!(world.query(Auction::CLOSES, ()), Some(later), "no task has seen it yet");
    let kept = world.query_kept("closes").unwrap();
    assert_eq!(decode::<Option<Timestamp>>(&kept).unwrap(), Some(later));
    world.signal(Auction::BID, ());
    let extended = later.saturating_add(seconds(60));
    assert_eq!(world.query(Auction::CLOSES, ()), Some(extended), "the bid builds on it");
    world.pass(seconds(600));
    assert_eq!(world.result(), Some((1, extended)));
    world.check();
}

#[test]
fn a_timer_that_has_fired_cannot_be_moved() {
    let mut world = World::<Auction>::start(seconds(60));
    let later = world.now().saturating_add(seconds(500));
    world.fire_unseen(seconds(60));
    // The firing is in history before the update, so the run is over when the update comes.
    assert_eq!(world.update(Auction::CLOSE_AT, later), None);
    assert!(world.result().is_some());
    world.check();
}

/// No worker is there from the bid until after the firing.
#[test]
fn a_move_for_a_message_before_the_firing_wins_over_it() {
    let mut world = World::<Auction>::start(seconds(60));
    let begun = world.now();
    world.pass_unseen(seconds(50));
    world.signal_raw("bid", Vec::new());
    world.fire_unseen(seconds(10));
    world.pass_unseen(seconds(5));
    world.work();
    let extended = begun.saturating_add(seconds(120));
    assert_eq!(world.result(), None, "the auction goes on");
    assert_eq!(world.query(Auction::CLOSES, ()), Some(extended));
    world.evict();
    world.pass(seconds(600));
    assert_eq!(world.result(), Some((1, extended)));
    let expected =
        ["SignalReceived", "TimerFired", "TimerRescheduled", "TimerFired", "RunCompleted"];
    assert_eq!(world.history()[2..], expected);
    world.check();
}

/// The extended deadline has passed as well when the worker comes. What history has since then comes
/// first: a second bid extends what the first has extended.
#[test]
fn extensions_count_however_late_the_worker_comes() {
    let mut world = World::<Auction>::start(seconds(60));
    let begun = world.now();
    world.signal_raw("bid", Vec::new());
    world.fire_unseen(seconds(60));
    world.signal_raw("bid", Vec::new());
    world.pass_unseen(seconds(100));
    world.work();
    assert_eq!(world.query(Auction::CLOSES, ()), Some(begun.saturating_add(seconds(180))));
    world.pass(seconds(20));
    assert_eq!(world.result(), Some((2, begun.saturating_add(seconds(180)))));
    world.check();

    let mut world = World::<Auction>::start(seconds(60));
    world.signal_raw("bid", Vec::new());
    world.fire_unseen(seconds(60));
    world.pass_unseen(seconds(1_000));
    world.work();
    world.pass(seconds(0));
    assert_eq!(world.result(), Some((1, world.now())), "the extended deadline has come as well");
    let fired = world.history().iter().filter(|name| **name == "TimerFired").count();
    assert_eq!(fired, 2);
    world.check();
}

/// A client moves the deadline after the bid, and is the last to do so.
#[test]
fn the_last_move_before_the_firing_holds_whoever_made_it() {
    let mut world = World::<Auction>::start(seconds(60));
    let closing = world.now().saturating_add(seconds(80));
    world.signal_raw("bid", Vec::new());
    world.reschedule("timer-1", closing);
    world.work();
    assert_eq!(world.query(Auction::CLOSES, ()), Some(closing), "as code sees it");
    let due = world.run.timers.values().map(|timer| timer.due()).collect::<Vec<_>>();
    assert_eq!(due, [closing], "as the engine does");
    world.pass(seconds(80));
    assert_eq!(world.result(), Some((1, closing)));
    world.check();

    let mut world = World::<Auction>::start(seconds(60));
    let closing = world.now().saturating_add(seconds(80));
    world.signal_raw("bid", Vec::new());
    world.reschedule("timer-1", closing);
    world.fire_unseen(seconds(80));
    world.work();
    assert_eq!(world.result(), Some((1, closing)));
    world.check();
}

/// An auction whose deadline anyone may move as often as they like.
#[derive(Default)]
struct Unbounded {
    closing: Deadline,
    bids: u32,
    refused: Option<RescheduleError>,
}

#[workflow]
impl Unbounded {
    #[run]
    async fn run(ctx: &Context<Self>, time: Duration) -> abide::Result<u32> {
        let closing = ctx.sleep(time).start();
        ctx.write(|it| it.closing = closing.deadline());
        closing.await?;
        Ok(ctx.read(|it| it.bids))
    }

    /// Each bid that comes in time leaves another minute.
    #[signal]
    fn bid(&mut self) {
        if self.closing.extend(seconds(60)).is_ok() {
            self.bids += 1;
        }
    }

    #[signal]
    fn close_at(&mut self, at: Timestamp) {
        self.refused = self.closing.reset(at).err();
    }

    #[query]
    fn closes(&self) -> Option<Timestamp> {
        self.closing.at()
    }

    #[query]
    fn refused(&self) -> Option<String> {
        self.refused.map(|refused| refused.to_string())
    }
}

/// The new deadline was to come when the signal arrived, and has passed when the worker comes: it comes
/// at once, and what the code has seen is the same on every replay.
#[test]
fn a_deadline_that_is_shortened_comes_at_once_however_late_the_worker_comes() {
    let mut world = World::<Unbounded>::start(seconds(60));
    let sooner = world.now().saturating_add(seconds(10));
    world.signal_raw("close_at", encode(&sooner).unwrap());
    world.pass_unseen(seconds(30));
    world.work();
    assert_eq!(world.query(Unbounded::CLOSES, ()), Some(sooner));
    world.evict();
    world.pass(seconds(0));
    assert_eq!(world.result(), Some(0), "thirty seconds before the old deadline");
    world.check();

    // The old deadline has come as well.
    let mut world = World::<Unbounded>::start(seconds(60));
    let sooner = world.now().saturating_add(seconds(10));
    world.signal_raw("close_at", encode(&sooner).unwrap());
    world.fire_unseen(seconds(60));
    world.work();
    assert_eq!(world.result(), Some(0));
    assert!(!world.history().contains(&"TimerRescheduled"), "it has come, so nothing is moved");
    world.check();

    // The time that is asked for is the one that stands, and has passed.
    let mut world = World::<Unbounded>::start(seconds(60));
    let same = world.now().saturating_add(seconds(60));
    world.signal_raw("close_at", encode(&same).unwrap());
    world.pass_unseen(seconds(70));
    world.work();
    assert_eq!(world.query(Unbounded::REFUSED, ()), None);
    world.evict();
    world.pass(seconds(0));
    assert_eq!(world.result(), Some(0));
    world.check();
}

/// The node that saw the signal arrive had a clock that was ahead of the one that has the shard now.
#[test]
fn a_deadline_is_ended_at_once_also_by_a_signal_of_a_later_clock() {
    let mut world = World::<Unbounded>::start(seconds(60));
    let (now, ahead) = (world.now(), world.now().saturating_add(seconds(1)));
    world.signal_received("close_at", encode(&now).unwrap(), ahead);
    world.work();
    assert_eq!(world.query(Unbounded::REFUSED, ()), None);
    world.evict();
    world.pass(seconds(0));
    assert_eq!(world.result(), Some(0));
    world.check();
}

#[test]
fn a_deadline_that_had_passed_when_the_signal_arrived_is_refused() {
    let mut world = World::<Unbounded>::start(seconds(60));
    let (passed, deadline) = (world.now(), world.query(Unbounded::CLOSES, ()).unwrap());
    world.pass_unseen(seconds(10));
    world.signal_raw("close_at", encode(&passed).unwrap());
    world.pass_unseen(seconds(10));
    world.work();
    let refused = RescheduleError::Past { at: passed, now: world.now() }.to_string();
    assert_eq!(world.query(Unbounded::REFUSED, ()), Some(refused));
    assert_eq!(world.query(Unbounded::CLOSES, ()), Some(deadline));
    world.check();
}

/// What happens to an auction.
#[derive(Clone, Copy, Debug)]
enum Happening {
    Bid,
    /// A signal moves the deadline to so many seconds from now.
    CloseIn(u64),
    /// A client moves the deadline to so many seconds from now.
    Move(u64),
    /// Time passes, and what is due by then fires.
    Pass(u64),
    Work,
    Evict,
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        3 => Just(Happening::Bid),
        2 => (0..150_u64).prop_map(Happening::CloseIn),
        1 => (0..150_u64).prop_map(Happening::Move),
        4 => (1..90_u64).prop_map(Happening::Pass),
        3 => Just(Happening::Work),
        1 => Just(Happening::Evict),
    ]
}

/// What the order in history says: how many bids came in time, and when the auction closes, or that it
/// has closed.
fn by_history(
    world: &World<Unbounded>,
    mut closes: Timestamp,
) -> (u32, Result<Timestamp, Timestamp>) {
    let mut bids = 0;
    for event in &world.events {
        match &event.body.fact {
            Fact::SignalReceived(signal) if signal.name == "close_at" => {
                closes = decode(&signal.input).unwrap();
            }
            Fact::SignalReceived(_) => {
                bids += 1;
                closes = closes.saturating_add(seconds(60));
            }
            Fact::TimerRescheduled(moved) if moved.by != Mover::Code => closes = moved.fire_at,
            Fact::TimerFired(fired) if closes <= fired.fire_at => return (bids, Err(closes)),
            _ => {}
        }
    }
    (bids, Ok(closes))
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_order_in_history_decides_whatever_happens(
        happenings in proptest::collection::vec(happening(), 1..25),
    ) {
        let mut world = World::<Unbounded>::start(seconds(60));
        let first = world.now().saturating_add(seconds(60));
        for happening in happenings {
            match happening {
                Happening::Bid if world.run.open() => world.signal_raw("bid", Vec::new()),
                Happening::CloseIn(later) if world.run.open() => {
                    let at = world.now().saturating_add(seconds(later));
                    world.signal_raw("close_at", encode(&at).unwrap());
                }
                Happening::Move(later) if !world.run.timers.is_empty() => {
                    world.reschedule("timer-1", world.now().saturating_add(seconds(later)));
                }
                Happening::Pass(time) => world.fire_what_is_due(seconds(time)),
                Happening::Work => world.work(),
                Happening::Evict => world.evict(),
                Happening::Bid | Happening::CloseIn(_) | Happening::Move(_) => {}
            }
        }
        world.work();
        let (bids, closes) = by_history(&world, first);
        match closes {
            Err(_) => prop_assert_eq!(world.result(), Some(bids)),
            Ok(closes) => {
                prop_assert_eq!(world.query(Unbounded::CLOSES, ()), Some(closes));
                prop_assert_eq!(world.run.timers[&"timer-1".into()].due(), closes);
            }
        }
        world.check();
    }
}

/// Sleeps twice, and says what came of the moves of its first deadline.
#[derive(Default)]
struct Told {
    first: Deadline,
    told: Vec<Result<Timestamp, RescheduleError>>,
}

#[workflow]
impl Told {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<Vec<String>> {
        let first = ctx.sleep(seconds(60)).start();
        ctx.write(|it| it.first = first.deadline());
        first.await?;
        ctx.sleep(seconds(60)).await?;
        Ok(ctx.read(|it| it.told.iter().map(|told| format!("{told:?}")).collect()))
    }

    #[signal]
    fn extend(&mut self) {
        self.told.push(self.first.extend(seconds(60)));
    }
}

#[test]
fn a_move_for_a_message_after_the_firing_is_told_that_it_is_too_late() {
    let mut world = World::<Told>::start(());
    world.fire_unseen(seconds(60));
    world.signal(Told::EXTEND, ());
    world.pass(seconds(60));
    assert_eq!(world.result().unwrap(), ["Err(TooLate)"]);
    assert_eq!(RescheduleError::TooLate.to_string(), "too late: the wait is over");
    assert!(!world.history().contains(&"TimerRescheduled"));
    world.check();
}

/// The plain helper: a condition wait in a loop, begun anew whenever the wake-up time changes.
#[derive(Default)]
struct Looping {
    wake_at: Timestamp,
    changed: bool,
}

#[workflow]
impl Looping {
    #[run]
    async fn run(ctx: &Context<Self>, wake_at: Timestamp) -> abide::Result<Timestamp> {
        ctx.write(|it| it.wake_at = wake_at);
        loop {
            let wake_at = ctx.write(|it| {
                it.changed = false;
                it.wake_at
            });
            let changed = ctx.wait_until(condition!("wake-up.changed", |it| it.changed));
            if changed.until(wake_at).await?.is_timed_out() {
                return Ok(ctx.now());
            }
        }
    }

    #[signal]
    fn wake(&mut self, at: Timestamp) {
        self.wake_at = at;
        self.changed = true;
    }
}

#[test]
fn the_plain_helper_works_and_leaves_no_timers() {
    let at = |offset: u64| Timestamp::from_unix_millis(1_800_000_000_000 + offset * 1_000);
    let mut world = World::<Looping>::start(at(60));
    for minute in 2..10 {
        world.signal(Looping::WAKE, at(minute * 60));
        assert_eq!(world.run.timers.len(), 1, "the timers before it are cancelled");
    }
    world.signal(Looping::WAKE, at(90));
    world.pass(seconds(90));
    assert_eq!(world.result(), Some(at(90)));
    assert!(world.run.timers.is_empty() && world.run.waits.is_empty());
    world.check();
}

/// Code that only looks, and tries to do more.
#[derive(Default)]
struct Curious {
    deadline: Deadline,
    own: Option<Context<Curious>>,
}

#[workflow]
impl Curious {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<Timestamp> {
        let sleep = ctx.sleep(seconds(60)).start();
        ctx.write(|it| (it.deadline, it.own) = (sleep.deadline(), Some(ctx.clone())));
        sleep.await?;
        ctx.write(|it| it.own = None);
        Ok(ctx.now())
    }

    #[query]
    fn extend(&self) -> String {
        self.deadline.extend(seconds(60)).unwrap_err().to_string()
    }

    #[query]
    fn doze(&self) -> bool {
        self.own.as_ref().is_some_and(|ctx| ctx.random())
    }

    #[update(validate = refuse)]
    fn never(&mut self) {}

    fn refuse(&self) -> Result<(), String> {
        Err(self.extend_by_query())
    }

    fn extend_by_query(&self) -> String {
        self.deadline.extend(seconds(60)).unwrap_err().to_string()
    }

    #[signal]
    fn look(&mut self) {}
}

#[test]
fn queries_and_validators_leave_no_trace() {
    let mut world = World::<Curious>::start(());
    let begun = world.now();
    let told = world.query_kept("extend").unwrap();
    let told: String = decode(&told).unwrap();
    assert!(told.contains("cannot move a deadline"), "{told}");
    let dozed = world.query_kept("doze").unwrap_err();
    assert!(dozed.message.contains("only read a run"), "{dozed:?}");
    world.update_raw("never", Vec::new());
    assert!(world.rejected[0].message.contains("cannot move a deadline"));
    world.signal(Curious::LOOK, ());
    world.pass(seconds(60));
    assert_eq!(world.result(), Some(begun.saturating_add(seconds(60))));
    assert!(!world.history().contains(&"TimerRescheduled"));
    world.check();
}

/// However long it waits, a wait with a deadline has one that clients can move.
#[derive(Default)]
struct Patient;

#[workflow]
impl Patient {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<bool> {
        let wait = ctx.receive(Self::ANSWER).timeout(abide::time::years(20_000));
        Ok(wait.await?.is_timed_out())
    }

    #[signal]
    fn answer();
}

#[test]
fn a_deadline_beyond_all_time_is_still_a_deadline() {
    let mut world = World::<Patient>::start(());
    let started = world.events.iter().find_map(|event| match &event.body.fact {
        Fact::TimerStarted(started) => Some(started.spec.clone()),
        _ => None,
    });
    let spec = started.unwrap();
    assert!(!spec.fire_at.is_never() && !spec.optional(), "{spec:?}");
    world.reschedule("timer-1", world.now().saturating_add(seconds(5)));
    world.pass(seconds(5));
    assert_eq!(world.result(), Some(true));
    world.check();
}
