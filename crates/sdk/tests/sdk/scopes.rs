//! Scopes, shields, and waits that are cancelled alone.

use abide::{Canceller, Context, Error, Outcome, join, select};
use abide_core::event::Fact;
use abide_sdk_macros::{activity, workflow};

use crate::world::{World, seconds};

#[activity]
async fn work() -> u32 {
    0
}

#[activity]
async fn undo() {}

/// Two scopes beside each other, of which one can be stopped.
#[derive(Default)]
struct Two {
    canceller: Option<Canceller>,
}

#[workflow]
impl Two {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<Vec<String>> {
        let left = ctx.scope(async {
            let own = ctx.clone();
            let task = ctx.spawn(async move { own.sleep(seconds(9)).await });
            let inner = ctx.scope(async { ctx.activity(work, ()).await });
            let ended = join!(inner, task);
            // Nothing begins any more: not even what would be over at once.
            let later = join!(ctx.sleep(seconds(0)), ctx.activity(work, ()));
            format!("{ended:?} {later:?} {:?}", ctx.is_cancel_requested())
        });
        ctx.write(|state| state.canceller = Some(left.canceller()));
        let right = ctx.scope(async { format!("{:?}", ctx.sleep(seconds(5)).await) });
        let (left, right) = join!(left, right);
        Ok(vec![left, right, format!("{}", ctx.is_cancel_requested())])
    }

    #[signal]
    fn stop(&mut self, reason: String) {
        if let Some(canceller) = &self.canceller {
            canceller.cancel(reason);
        }
    }
}

#[test]
fn a_scope_is_cancelled_with_all_that_is_within_and_nothing_else() {
    let mut world = World::<Two>::start(());
    world.signal(Two::STOP, "enough");
    world.signal(Two::STOP, "again");
    world.pass(seconds(5));
    let left = "(Err(Cancelled), Err(Cancelled)) (Err(Cancelled), Err(Cancelled)) true";
    assert_eq!(world.result().unwrap(), [left, "Ok(())", "false"]);
    assert_eq!(
        world.history()[1..],
        [
            "ActivityScheduled",
            "TimerStarted",
            "TimerStarted",
            "SignalReceived",
            "ActivityCancelRequested",
            "TimerCancelled",
            "ActivityCancelled",
            "SignalReceived",
            "TimerFired",
            "RunCompleted"
        ]
    );
    world.check();
}

#[test]
fn a_cancel_request_of_the_run_reaches_every_scope() {
    let mut world = World::<Two>::start(());
    world.cancel();
    let left = "(Err(Cancelled), Err(Cancelled)) (Err(Cancelled), Err(Cancelled)) true";
    assert_eq!(world.result().unwrap(), [left, "Err(Cancelled)", "true"]);
    world.check();
}

/// Undoes in a shield what it has done, in so much time.
#[derive(Default)]
struct Booking;

#[workflow]
impl Booking {
    #[run]
    async fn run(ctx: &Context<Self>, limit: u64) -> abide::Result<String> {
        ctx.shield(async { ctx.activity(work, ()).await }).await?;
        let booked = ctx.scope(async {
            let waited = ctx.sleep(seconds(60)).await;
            // The scope was cancelled, so without the shield this would not begin. The scope within
            // the shield is made outside of it, and is protected all the same.
            let undone = ctx.shield(ctx.scope(async {
                assert!(!ctx.is_cancel_requested());
                let undone = ctx.activity(undo, ()).await;
                // At the deadline the shield is cancelled like any scope.
                assert_eq!(ctx.is_cancel_requested(), undone.is_err());
                undone
            }));
            let undone = undone.timeout(seconds(limit)).await;
            assert!(ctx.is_cancel_requested());
            (waited, undone)
        });
        let (waited, undone) = booked.await;
        Ok(match (waited, undone) {
            (Err(Error::Cancelled), Outcome::InTime(undone)) => format!("undone {undone:?}"),
            (waited, undone) => format!("{waited:?} {undone:?}"),
        })
    }
}

#[test]
fn a_shield_is_not_reached_from_outside() {
    let mut world = World::<Booking>::start(10);
    world.cancel();
    world.complete(work, 1);
    assert!(world.history().contains(&"TimerStarted"), "the request came before the wait");
    world.pass(seconds(60));
    world.complete(undo, ());
    world.check();
}

#[test]
fn cleaning_up_in_a_shield_ends_in_time() {
    let mut world = World::<Booking>::start(10);
    world.complete(work, 1);
    world.cancel();
    world.complete(undo, ());
    assert_eq!(world.result().unwrap(), "undone Ok(())");
    assert_eq!(
        world.history()[4..],
        [
            "RunCancelRequested",
            "TimerCancelled",
            "TimerStarted",
            "ActivityScheduled",
            "ActivityCompleted",
            "TimerCancelled",
            "RunCompleted"
        ]
    );
    world.check();
}

#[test]
fn cleaning_up_in_a_shield_ends_at_its_deadline() {
    for limit in [10, 0] {
        let mut world = World::<Booking>::start(limit);
        world.complete(work, 1);
        world.cancel();
        world.pass(seconds(10));
        assert_eq!(world.result().unwrap(), "Err(Cancelled) TimedOut");
        let cancels = world.history().into_iter().filter(|name| *name == "ActivityCancelRequested");
        assert_eq!(cancels.count(), 1);
        world.check();
    }
}

/// Waits for the request beside its work.
#[derive(Default)]
struct Listener;

#[workflow]
impl Listener {
    #[run]
    async fn run(ctx: &Context<Self>, works: bool) -> abide::Result<String> {
        if !works {
            let request = ctx.cancelled().await;
            let again = ctx.cancelled().await;
            assert_eq!(request, again);
            return Ok(format!("{} by {}", request.reason(), request.identity()));
        }
        let shielded = ctx.shield(async {
            select! {
                _ = ctx.cancelled() => "seen".to_owned(),
                slept = ctx.sleep(seconds(5)) => format!("{slept:?}"),
            }
        });
        let (shielded, seen) = join!(shielded, ctx.cancelled());
        assert_eq!(ctx.cancellation(), Some(seen));
        Ok(shielded)
    }
}

#[test]
fn a_run_may_wait_for_nothing_but_the_request_and_reads_its_reason() {
    let mut world = World::<Listener>::start(false);
    assert!(world.faults.is_empty(), "{:?}", world.faults);
    world.cancel_because("the customer left");
    assert_eq!(world.result().unwrap(), "the customer left by somebody");
    assert_eq!(world.history(), ["RunStarted", "RunCancelRequested", "RunCompleted"]);
    world.check();
}

#[test]
fn within_a_shield_the_request_is_not_seen() {
    let mut world = World::<Listener>::start(true);
    world.cancel();
    world.pass(seconds(5));
    assert_eq!(world.result().unwrap(), "Ok(())");
    world.check();
}

/// A run that only waits within a shield for what cannot come.
#[test]
fn a_shield_that_waits_for_the_request_of_the_run_is_found_out() {
    #[derive(Default)]
    struct Deaf;

    #[workflow]
    impl Deaf {
        #[run]
        async fn run(ctx: &Context<Self>) -> abide::Result<()> {
            ctx.shield(ctx.cancelled().start()).await;
            ctx.shield(async { ctx.cancelled().await }).await;
            Ok(())
        }
    }

    let mut world = World::<Deaf>::start(());
    assert!(world.faults.is_empty(), "it began outside: {:?}", world.faults);
    world.cancel();
    assert_eq!(world.faults.len(), 1);
}

/// Begins several waits, and cancels each alone.
#[derive(Default)]
struct Single;

#[workflow]
impl Single {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<Vec<String>> {
        let mut timer = ctx.sleep(seconds(60)).start();
        let mut call = ctx.activity(work, ()).start();
        let mut signal = ctx.receive(Self::NEVER).start();
        let mut never_begun = ctx.sleep(seconds(60)).into_future();
        let mut over = ctx.sleep(seconds(0)).start();
        timer.cancel();
        timer.cancel();
        call.cancel();
        signal.cancel();
        never_begun.cancel();
        over.cancel();
        let ended = join!(timer, call, signal, never_begun, over);
        ctx.sleep(seconds(1)).await?;
        Ok(vec![format!("{ended:?}")])
    }

    #[signal]
    fn never();
}

#[test]
fn a_wait_is_cancelled_alone_and_its_result_is_still_told() {
    let mut world = World::<Single>::start(());
    world.pass(seconds(1));
    let cancelled = "Err(Cancelled), ".repeat(4);
    assert_eq!(world.result().unwrap(), [format!("({cancelled}Ok(()))")]);
    assert_eq!(
        world.history()[1..],
        [
            "TimerStarted",
            "ActivityScheduled",
            "TimerStarted",
            "TimerCancelled",
            "ActivityCancelRequested",
            "TimerCancelled",
            "TimerStarted",
            "ActivityCancelled",
            "TimerFired",
            "RunCompleted"
        ]
    );
    world.check();
}

/// The next run of a scope that ended is not bothered by it: scopes leave nothing behind.
#[derive(Default)]
struct Many;

#[workflow]
impl Many {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<u32> {
        let mut cancelled = 0;
        for _ in 0..100 {
            let scope = ctx.scope(async { ctx.sleep(seconds(9)).await });
            scope.canceller().cancel("before it began");
            cancelled += u32::from(scope.await.is_err());
        }
        ctx.scope(async { ctx.sleep(seconds(1)).await }).await?;
        Ok(cancelled)
    }
}

#[test]
fn a_scope_that_is_cancelled_before_it_begins_never_does() {
    let mut world = World::<Many>::start(());
    world.pass(seconds(1));
    assert_eq!(world.result(), Some(100));
    let timers = world.events.iter().filter(|it| matches!(it.body.fact, Fact::TimerStarted(_)));
    assert_eq!(timers.count(), 1);
    world.check();
}
