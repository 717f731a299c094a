//! The updatable timer: a deadline that is read and moved while it is awaited, in place, from handlers,
//! from other branches, from clients and operators; and the guards on that.

use std::time::Duration;

use abide::{
    ClientError, RescheduleError, Timestamp, Worker,
    event::{Fact, Mover},
    prelude::*,
};
use abide_core::run::Refusal;
use abide_embedded::clock::Clock as _;
use abide_sdk_testing::{TestEnvironment, replay_history};

use crate::{
    glass::Glass,
    site::{Hold, Site, count, names, timers, until},
};

/// A sleep whose deadline everybody may move.
#[derive(Default)]
struct Auction {
    closing: Deadline,
    refused: Vec<RescheduleError>,
}

#[workflow]
impl Auction {
    #[run]
    async fn run(ctx: &Context<Self>, length: Duration) -> abide::Result<Timestamp> {
        let closing = ctx.sleep(length).start();
        ctx.write(|auction| auction.closing = closing.deadline());
        closing.await?;
        Ok(ctx.now())
    }

    /// Each bid in time leaves another minute.
    #[signal]
    fn bid(&mut self) {
        self.refused.extend(self.closing.extend(minutes(1)).err());
    }

    #[update]
    fn close_at(&mut self, at: Timestamp) -> Result<(), RescheduleError> {
        self.closing.reset(at)
    }

    #[signal]
    async fn extend_every_minute(ctx: &Context<Self>, times: u32) {
        for _ in 0..times {
            if ctx.sleep(minutes(1)).await.is_ok() {
                ctx.write(|it| it.refused.extend(it.closing.extend(minutes(1)).err()));
            }
        }
    }

    #[query]
    fn closes(&self) -> Option<Timestamp> {
        self.closing.at()
    }

    /// How many moves of signals were refused.
    #[query]
    fn refused(&self) -> usize {
        self.refused.len()
    }
}

fn auctions(worker: Worker) -> Worker {
    worker.workflow::<Auction>().max_cached_runs(0)
}

async fn environment() -> TestEnvironment {
    let env = TestEnvironment::new().await;
    env.worker(auctions).await.unwrap();
    env
}

async fn auction(env: &TestEnvironment, length: Duration) -> AuctionHandle {
    let auction = env.client().start::<Auction>("auction", length).await.unwrap();
    env.skip(Duration::ZERO).await;
    auction
}

/// Who moved deadlines, and to when.
async fn moves(handle: &AuctionHandle) -> Vec<(Timestamp, Mover)> {
    let history = handle.history().await.unwrap();
    let moved = history.iter().filter_map(|event| match event.fact() {
        Fact::TimerRescheduled(moved) => Some((moved.fire_at, moved.by.clone())),
        _ => None,
    });
    moved.collect()
}

/// One timer was started and fired, whatever happened to its deadline.
async fn one_timer(handle: &AuctionHandle) {
    let history = handle.history().await.unwrap();
    let counted = ["TimerStarted", "TimerFired", "TimerCancelled"];
    assert_eq!(counted.map(|name| count(&history, name)), [1, 1, 0]);
    replay_history::<Auction>(history).unwrap();
}

#[tokio::test]
async fn a_signal_handler_extends_the_deadline_in_place() {
    let env = environment().await;
    let begun = env.now();
    let auction = auction(&env, minutes(5)).await;
    for _ in 0..3 {
        env.skip(minutes(1)).await;
        auction.signal(Auction::BID, ()).await.unwrap();
    }
    let end = begun.saturating_add(minutes(8));
    assert_eq!(auction.result().await.unwrap(), end);
    assert_eq!(auction.query(Auction::REFUSED, ()).await.unwrap(), 0);
    let moves = moves(&auction).await;
    assert_eq!(moves.len(), 3);
    assert_eq!(moves[2], (end, Mover::Code));
    one_timer(&auction).await;
}

#[tokio::test]
async fn an_update_shortens_the_deadline_and_answers_at_once() {
    let env = environment().await;
    let begun = env.now();
    let auction = auction(&env, days(1)).await;
    let end = begun.saturating_add(minutes(1));
    auction.update(Auction::CLOSE_AT, end).await.unwrap();
    assert_eq!(env.now(), begun, "it took no time");
    assert_eq!(auction.result().await.unwrap(), end);
    one_timer(&auction).await;
}

#[tokio::test]
async fn another_branch_of_the_workflow_moves_the_deadline() {
    let env = environment().await;
    let begun = env.now();
    let auction = auction(&env, minutes(2)).await;
    auction.signal(Auction::EXTEND_EVERY_MINUTE, 3).await.unwrap();
    let end = begun.saturating_add(minutes(5));
    assert_eq!(auction.result().await.unwrap(), end);
    assert_eq!(moves(&auction).await.len(), 3);
}

#[tokio::test]
async fn a_client_moves_the_deadline_and_history_says_who_and_to_when() {
    let env = environment().await;
    let begun = env.now();
    let auction = auction(&env, minutes(5)).await;
    let ada = env.client().with_identity("ada").handle::<Auction>("auction");
    let timer = ada.describe().await.unwrap().waits[0].timer.clone().unwrap();
    let end = begun.saturating_add(minutes(20));
    ada.reschedule_timer(timer.clone(), end).key("once").await.unwrap();
    // A repeat of the same request is the same request.
    ada.reschedule_timer(timer.clone(), end).key("once").await.unwrap();
    assert_eq!(ada.describe().await.unwrap().waits[0].until, Some(end));
    assert_eq!(auction.result().await.unwrap(), end);
    let moves = moves(&auction).await;
    let [(at, Mover::Outside { identity, received_at, .. })] = &*moves else {
        panic!("not one move from outside: {moves:?}");
    };
    assert_eq!((*at, identity.as_str(), *received_at), (end, "ada", begun));
    one_timer(&auction).await;
}

#[tokio::test]
async fn a_query_tells_the_deadline_at_any_time() {
    let env = environment().await;
    let begun = env.now();
    let auction = auction(&env, minutes(5)).await;
    let closes = || async { auction.query(Auction::CLOSES, ()).await.unwrap() };
    assert_eq!(closes().await, Some(begun.saturating_add(minutes(5))));
    auction.signal(Auction::BID, ()).await.unwrap();
    assert_eq!(closes().await, Some(begun.saturating_add(minutes(6))));
    auction.result().await.unwrap();
    assert_eq!(closes().await, None, "there is none any more");
}

#[tokio::test]
async fn code_is_told_why_a_deadline_cannot_be_moved() {
    let env = environment().await;
    let begun = env.now();
    let auction = auction(&env, minutes(5)).await;
    env.skip(minutes(1)).await;
    let refused = |at: Timestamp| {
        let update = auction.update(Auction::CLOSE_AT, at);
        async { update.await.unwrap_err().to_string() }
    };
    assert!(refused(begun).await.contains("is in the past"));
    assert!(refused(Timestamp::NEVER).await.contains("cannot be moved to never"));
    assert!(moves(&auction).await.is_empty());
    auction.update(Auction::CLOSE_AT, env.now()).await.unwrap();
    assert_eq!(auction.result().await.unwrap(), env.now(), "now is soon enough");
}

/// A move that was acknowledged is kept, like everything that was.
#[tokio::test]
async fn a_moved_deadline_survives_a_restart() {
    let mut site = Site::open().await;
    let begun = site.now();
    let worker = site.work(auctions);
    let auction = site.client().start::<Auction>("auction", hours(1)).await.unwrap();
    until(&auction, started).await;
    worker.kill().await;
    auction.reschedule_timer("timer-1", begun.saturating_add(days(1))).await.unwrap();
    site.reopen().await;
    site.pass(hours(2));
    let worker = site.work(auctions);
    let auction = site.client().handle::<Auction>("auction");
    let closes = auction.query(Auction::CLOSES, ()).await.unwrap();
    assert_eq!(closes, Some(begun.saturating_add(days(1))), "a query sees it immediately");
    auction.signal(Auction::BID, ()).await.unwrap();
    let closes = auction.query(Auction::CLOSES, ()).await.unwrap();
    assert_eq!(closes, Some(begun.saturating_add(days(1) + minutes(1))), "and builds on it");
    site.pass(days(1));
    assert_eq!(auction.result().await.unwrap(), site.now());
    worker.kill().await;
}

/// Waits whose guards bind clients and operators.
#[derive(Default)]
struct Guarded {
    ready: bool,
}

#[workflow]
impl Guarded {
    #[run]
    async fn run(ctx: &Context<Self>, wait: String) -> abide::Result<()> {
        let limit = ctx.now().saturating_add(hours(1));
        let ready = condition!("ready", |it| it.ready);
        match wait.as_str() {
            "signal" => ctx.receive(Self::GO).await,
            "condition for ever" => ctx.wait_until(ready).await,
            "condition" => {
                let wait = ctx.wait_until(ready).timeout(minutes(5)).not_after(limit);
                wait.max_extensions(2).await.map(drop)
            }
            _ => ctx.sleep(minutes(5)).not_after(limit).max_extensions(2).await,
        }
    }

    #[signal]
    fn go();

    #[signal]
    fn get_ready(&mut self) {
        self.ready = true;
    }
}

#[tokio::test]
async fn clients_and_operators_are_bound_by_guards_and_each_refusal_says_why() {
    for wait in ["sleep", "condition"] {
        let env = TestEnvironment::new().await;
        env.worker(|worker| worker.workflow::<Guarded>()).await.unwrap();
        let begun = env.now();
        let run = env.client().start::<Guarded>("guarded", wait.to_owned()).await.unwrap();
        env.skip(minutes(1)).await;
        let timer = run.describe().await.unwrap().waits[0].timer.clone().unwrap();
        let moved = |at: Timestamp| run.reschedule_timer(timer.clone(), at);
        let (limit, now) = (begun.saturating_add(hours(1)), env.now());

        let past = Refusal::PastDeadline { fire_at: begun, now };
        assert_eq!(moved(begun).await, Err(ClientError::Refused(past.into())));
        let far = limit.saturating_add(seconds(1));
        let too_late = Refusal::TooLate { fire_at: far, not_after: limit };
        assert_eq!(moved(far).await, Err(ClientError::Refused(too_late.into())));
        let never = Refusal::NeverDeadline(timer.clone());
        assert_eq!(moved(Timestamp::NEVER).await, Err(ClientError::Refused(never.into())));
        let unknown = run.reschedule_timer("timer-99", limit).await;
        let refusal = Refusal::UnknownTimer("timer-99".into());
        assert_eq!(unknown, Err(ClientError::Refused(refusal.into())));

        moved(begun.saturating_add(minutes(10))).await.unwrap();
        moved(begun.saturating_add(minutes(20))).await.unwrap();
        let often = Refusal::TooManyMoves { limit: 2 };
        let refused = moved(limit).await;
        assert_eq!(refused, Err(ClientError::Refused(often.into())));
        assert!(refused.unwrap_err().to_string().contains('2'), "the bound is in the message");

        run.result().await.unwrap();
        assert_eq!(env.now().saturating_since(begun), minutes(20), "{wait}");
        let closed = moved(limit).await;
        assert_eq!(closed, Err(ClientError::Refused(Refusal::RunClosed.into())));
    }
}

#[tokio::test]
async fn a_wait_without_deadline_cannot_be_given_one() {
    let env = TestEnvironment::new().await;
    env.worker(|worker| worker.workflow::<Guarded>()).await.unwrap();
    let later = env.now().saturating_add(hours(1));
    let waits = [
        ("signal", Refusal::NoDeadline("signal-1".into())),
        ("condition for ever", Refusal::EndlessWait("condition-1".into())),
    ];
    for (wait, refusal) in waits {
        let id = wait.replace(' ', "-");
        let run = env.client().start::<Guarded>(id, wait.to_owned()).await.unwrap();
        env.skip(Duration::ZERO).await;
        let key = run.waits().await.unwrap().remove(0).key;
        let refused = run.reschedule_wait(key, later).await;
        assert_eq!(refused, Err(ClientError::Refused(refusal.into())));
    }
}

#[tokio::test]
async fn a_wait_shows_who_may_move_its_end_and_who_did() {
    let env = TestEnvironment::new().await;
    env.worker(|worker| worker.workflow::<Guarded>()).await.unwrap();
    let begun = env.now();
    let start = env.client().start::<Guarded>("guarded", "condition");
    let run = start.await.unwrap();
    env.skip(Duration::ZERO).await;
    let wait = run.waits().await.unwrap().remove(0);
    let bounds = (wait.not_after, wait.max_extensions);
    assert_eq!(bounds, (Some(begun.saturating_add(hours(1))), Some(2)));
    let operator = env.client().with_identity("operator").handle::<Guarded>("guarded");
    let until = begun.saturating_add(minutes(30));
    operator.reschedule_wait(wait.key, until).await.unwrap();
    let wait = run.waits().await.unwrap().remove(0);
    assert_eq!((wait.until, wait.extensions), (Some(until), 1));
    assert_eq!(wait.extended_by.as_deref(), Some("operator"));
    run.result().await.unwrap();
    assert_eq!(env.now(), until);
}

fn started(fact: &Fact) -> bool {
    matches!(fact, Fact::TimerStarted(_))
}

#[tokio::test]
async fn a_timer_that_has_fired_cannot_be_moved_even_if_code_has_not_seen_it() {
    let glass = Glass::open().await;
    let worker = glass.work::<Auction>();
    let auction = glass.engine.client().start::<Auction>("auction", minutes(5)).await.unwrap();
    until(&auction, started).await;
    worker.kill().await;
    glass.clock.move_to(glass.clock.now().saturating_add(minutes(5)));
    until(&auction, |fact| matches!(fact, Fact::TimerFired(_))).await;
    let later = glass.clock.now().saturating_add(hours(1));
    let refused = auction.reschedule_timer("timer-1", later).await;
    assert_eq!(refused, Err(ClientError::Refused(Refusal::TimerFired("timer-1".into()).into())));
    let worker = glass.work::<Auction>();
    assert_eq!(auction.result().await.unwrap(), glass.clock.now());
    worker.kill().await;
}

/// The bid is acknowledged before the deadline, and the worker comes after it: history decides, and it
/// survives a restart in between.
#[tokio::test]
async fn an_acknowledged_extension_counts_although_the_timer_has_fired_before_a_worker_came() {
    let mut site = Site::open().await;
    let begun = site.now();
    let worker = site.work(auctions);
    let auction = site.client().start::<Auction>("auction", minutes(5)).await.unwrap();
    until(&auction, started).await;
    worker.kill().await;
    auction.signal(Auction::BID, ()).await.unwrap();
    site.pass(minutes(5));
    until(&auction, |fact| matches!(fact, Fact::TimerFired(_))).await;
    site.reopen().await;
    let worker = site.work(auctions);
    let auction = site.client().handle::<Auction>("auction");
    until(&auction, |fact| matches!(fact, Fact::TimerRescheduled(_))).await;
    let end = begun.saturating_add(minutes(6));
    assert_eq!(auction.query(Auction::CLOSES, ()).await.unwrap(), Some(end));
    let wait = auction.waits().await.unwrap().remove(0);
    assert_eq!(wait.until, Some(end), "the engine waits for it, too");
    site.pass(minutes(1));
    assert_eq!(auction.result().await.unwrap(), end);
    let history = auction.history().await.unwrap();
    let expected =
        ["SignalReceived", "TimerFired", "TimerRescheduled", "TimerFired", "RunCompleted"];
    assert_eq!(names(&history)[2..], expected);
    replay_history::<Auction>(history).unwrap();
    worker.kill().await;
}

static IN_TASK: Hold = Hold::new();

/// Sleeps, and stands in the middle of a later task.
#[derive(Default)]
struct Held;

#[workflow]
impl Held {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<()> {
        ctx.sleep(seconds(5)).await
    }

    #[signal]
    fn look(&mut self) {
        IN_TASK.pass();
    }
}

/// While a task is in flight, a reschedule takes effect immediately, and a firing is not revoked.
#[tokio::test]
async fn a_deadline_is_moved_during_a_task_until_it_has_come() {
    let glass = Glass::open().await;
    let begun = glass.clock.now();
    let worker = glass.work::<Held>();
    let held = glass.engine.client().start::<Held>("held", ()).await.unwrap();
    until(&held, started).await;
    held.signal(Held::LOOK, ()).await.unwrap();
    IN_TASK.entered().await;
    held.reschedule_timer("timer-1", begun.saturating_add(seconds(8))).await.unwrap();
    assert_eq!(glass.due("held").await, [begun.saturating_add(seconds(8))]);
    glass.clock.move_to(begun.saturating_add(seconds(8)));
    while !glass.due("held").await.is_empty() {
        tokio::task::yield_now().await;
    }
    let refused = held.reschedule_timer("timer-1", begun.saturating_add(hours(1))).await;
    assert_eq!(refused, Err(ClientError::Refused(Refusal::TimerFired("timer-1".into()).into())));
    IN_TASK.open();
    held.result().await.unwrap();
    let expected = ["SignalReceived", "TimerRescheduled", "TimerFired", "RunCompleted"];
    assert_eq!(names(&held.history().await.unwrap())[2..], expected);
    worker.kill().await;
}

#[tokio::test]
async fn ten_thousand_extensions_leave_one_due_row_and_one_wait_row() {
    let glass = Glass::open().await;
    let begun = glass.clock.now();
    let worker = glass.work::<Auction>();
    let auction = glass.engine.client().start::<Auction>("auction", minutes(5)).await.unwrap();
    until(&auction, started).await;
    for number in 1..=10_000 {
        let at = begun.saturating_add(minutes(5) + seconds(number));
        auction.reschedule_timer("timer-1", at).await.unwrap();
        if number % 1_000 == 0 {
            assert_eq!(glass.rows("auction").await, (1, 1), "after {number} extensions");
        }
    }
    let end = begun.saturating_add(minutes(5) + seconds(10_000));
    glass.clock.move_to(end);
    assert_eq!(auction.result().await.unwrap(), end, "only the last one counts");
    assert_eq!(glass.rows("auction").await, (0, 0));
    worker.kill().await;
}

#[tokio::test]
async fn a_thousand_extensions_by_a_handler_leave_one_due_row_and_one_wait_row() {
    let glass = Glass::open().await;
    let begun = glass.clock.now();
    let worker = glass.work::<Auction>();
    let auction = glass.engine.client().start::<Auction>("auction", minutes(5)).await.unwrap();
    until(&auction, started).await;
    for _ in 0..1_000 {
        auction.signal(Auction::BID, ()).await.unwrap();
    }
    let closes = auction.query(Auction::CLOSES, ()).await.unwrap();
    assert_eq!(closes, Some(begun.saturating_add(minutes(1_005))));
    assert_eq!(glass.rows("auction").await, (1, 1));
    assert_eq!(timers(&auction.history().await.unwrap()).len(), 1);
    worker.kill().await;
}
