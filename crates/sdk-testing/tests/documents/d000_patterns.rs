//! What people build from deadlines that move: the two approvals of the document, the plain helper that
//! needs no such deadline, and a debounce.

use std::time::Duration;

use abide::{RescheduleError, Timestamp, prelude::*};
use abide_embedded::clock::Clock as _;
use abide_sdk_testing::TestEnvironment;

use crate::{
    glass::Glass,
    site::{count, names, timers},
};

/// The plain helper of the document: a condition wait in a loop, restarted with each new wake-up
/// time.
#[derive(Default)]
struct PlainTimer {
    wake_at: Timestamp,
    updated: bool,
}

#[workflow]
impl PlainTimer {
    #[run]
    async fn run(ctx: &Context<Self>, wake_at: Timestamp) -> abide::Result<Timestamp> {
        ctx.write(|timer| timer.wake_at = wake_at);
        loop {
            let wake_at = ctx.write(|timer| {
                timer.updated = false;
                timer.wake_at
            });
            let updated = ctx.wait_until(condition!("wake-up.updated", |timer| timer.updated));
            if updated.until(wake_at).await?.is_timed_out() {
                return Ok(ctx.now());
            }
        }
    }

    #[signal]
    fn update_wake_up_time(&mut self, at: Timestamp) {
        self.wake_at = at;
        self.updated = true;
    }

    #[query]
    fn wake_up_time(&self) -> Timestamp {
        self.wake_at
    }
}

#[tokio::test]
async fn the_plain_helper_works_and_leaves_no_uncancelled_timers() {
    let glass = Glass::open().await;
    let begun = glass.clock.now();
    let at = |minute: u64| begun.saturating_add(minutes(minute));
    let worker = glass.work::<PlainTimer>();
    let timer = glass.engine.client().start::<PlainTimer>("timer", at(5)).await.unwrap();
    for minute in 6..=25 {
        timer.signal(PlainTimer::UPDATE_WAKE_UP_TIME, at(minute)).await.unwrap();
        assert_eq!(timer.query(PlainTimer::WAKE_UP_TIME, ()).await.unwrap(), at(minute));
        assert_eq!(glass.rows("timer").await, (1, 1));
    }
    glass.clock.move_to(at(24));
    assert_eq!(count(&timer.history().await.unwrap(), "TimerFired"), 0);
    glass.clock.move_to(at(25));
    assert_eq!(timer.result().await.unwrap(), at(25));
    let history = timer.history().await.unwrap();
    let (begun, cancelled) = (timers(&history).len(), count(&history, "TimerCancelled"));
    assert_eq!(begun, cancelled + 1, "all but the one that fired");
    worker.kill().await;
}

/// The document's first workflow: an approval with a deadline that can be moved.
#[derive(Default)]
struct Approval {
    approved: bool,
    status: &'static str,
    deadline: Deadline,
}

#[workflow]
impl Approval {
    #[run]
    async fn run(ctx: &Context<Self>, deadline: Timestamp) -> abide::Result<String> {
        ctx.write(|approval| approval.status = "PENDING");
        let approved = condition!("approval.approved", |approval| approval.approved);
        let wait = ctx.wait_until(approved).until(deadline).start();
        ctx.write(|approval| approval.deadline = wait.deadline());
        let status = if wait.await?.is_timed_out() { "REJECTED" } else { "APPROVED" };
        ctx.write(|approval| approval.status = status);
        Ok(status.into())
    }

    #[signal]
    fn approve(&mut self) {
        self.approved = true;
    }

    /// The caller learns whether the extension counts.
    #[update]
    fn extend_deadline(&mut self, to: Timestamp) -> Result<(), RescheduleError> {
        self.deadline.reset(to)
    }

    #[query]
    fn status(&self) -> String {
        self.status.into()
    }
}

#[tokio::test]
async fn the_basic_approval_is_approved_or_rejected_by_its_deadline() {
    let env = TestEnvironment::new().await;
    env.worker(|worker| worker.workflow::<Approval>()).await.unwrap();
    let client = env.client();
    let deadline = env.now().saturating_add(hours(1));
    let approval = client.start::<Approval>("approved", deadline).await.unwrap();
    assert_eq!(approval.query(Approval::STATUS, ()).await.unwrap(), "PENDING");
    env.skip(minutes(59)).await;
    approval.signal(Approval::APPROVE, ()).await.unwrap();
    assert_eq!(approval.result().await.unwrap(), "APPROVED");
    assert_eq!(approval.query(Approval::STATUS, ()).await.unwrap(), "APPROVED");

    let deadline = env.now().saturating_add(hours(1));
    let approval = client.start::<Approval>("rejected", deadline).await.unwrap();
    assert_eq!(approval.result().await.unwrap(), "REJECTED");
    assert_eq!(env.now(), deadline);
}

#[tokio::test]
async fn the_deadline_of_a_condition_is_moved_in_place_too() {
    let env = TestEnvironment::new().await;
    env.worker(|worker| worker.workflow::<Approval>()).await.unwrap();
    let at = |hour| env.now().saturating_add(hours(hour));
    let (first, second) = (at(1), at(3));
    let approval = env.client().start::<Approval>("approval", first).await.unwrap();
    env.skip(Duration::ZERO).await;
    approval.update(Approval::EXTEND_DEADLINE, second).await.unwrap();
    env.skip(hours(2)).await;
    approval.signal(Approval::APPROVE, ()).await.unwrap();
    assert_eq!(approval.result().await.unwrap(), "APPROVED");
    let history = approval.history().await.unwrap();
    assert_eq!((timers(&history).len(), count(&history, "TimerRescheduled")), (1, 1));
    let [.., cancelled, satisfied, _] = *names(&history) else { panic!() };
    assert_eq!((cancelled, satisfied), ("TimerCancelled", "WaitSatisfied"));
}

/// The document's second workflow: nothing but the deadline ends the wait, and extensions are accepted
/// until it is approved.
#[derive(Default)]
struct MultiExtension {
    timer: Deadline,
    approved: bool,
    rejected: bool,
    refused: Vec<RescheduleError>,
}

#[workflow]
impl MultiExtension {
    #[run]
    async fn run(ctx: &Context<Self>, deadline: Timestamp) -> abide::Result<String> {
        let timer = ctx.sleep_until(deadline).start();
        ctx.write(|it| it.timer = timer.deadline());
        timer.await?;
        Ok(ctx.write(|it| {
            it.rejected = !it.approved;
            if it.rejected { "REJECTED".into() } else { "APPROVED".into() }
        }))
    }

    #[signal]
    fn extend_deadline(&mut self, to: Timestamp) {
        if !self.approved && !self.rejected {
            self.refused.extend(self.timer.reset(to).err());
        }
    }

    #[signal]
    fn approve(&mut self) {
        self.approved = true;
    }
}

#[tokio::test]
async fn several_extensions_are_taken_until_somebody_has_approved() {
    let env = TestEnvironment::new().await;
    env.worker(|worker| worker.workflow::<MultiExtension>()).await.unwrap();
    let begun = env.now();
    let at = |hour| begun.saturating_add(hours(hour));
    let run = env.client().start::<MultiExtension>("multi", at(1)).await.unwrap();
    env.skip(Duration::ZERO).await;
    for hour in 2..=5 {
        run.signal(MultiExtension::EXTEND_DEADLINE, at(hour)).await.unwrap();
    }
    run.signal(MultiExtension::APPROVE, ()).await.unwrap();
    run.signal(MultiExtension::EXTEND_DEADLINE, at(100)).await.unwrap();
    assert_eq!(run.result().await.unwrap(), "APPROVED");
    assert_eq!(env.now(), at(5), "the last extension came after the approval");
    let history = run.history().await.unwrap();
    assert_eq!((timers(&history).len(), count(&history, "TimerRescheduled")), (1, 4));

    let deadline = env.now().saturating_add(hours(1));
    let run = env.client().start::<MultiExtension>("nobody", deadline).await.unwrap();
    assert_eq!(run.result().await.unwrap(), "REJECTED");
}

/// Acts when nothing has come for a while.
#[derive(Default)]
struct Debounce {
    quiet: Deadline,
    texts: Vec<String>,
    refused: Vec<RescheduleError>,
}

#[workflow]
impl Debounce {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<Vec<String>> {
        let quiet = ctx.sleep(minutes(1)).start();
        ctx.write(|it| it.quiet = quiet.deadline());
        quiet.await?;
        Ok(ctx.read(|it| it.texts.clone()))
    }

    #[signal]
    async fn write(ctx: &Context<Self>, text: String) {
        let end = ctx.now() + minutes(1);
        ctx.write(|it| {
            it.texts.push(text);
            it.refused.extend(it.quiet.reset(end).err());
        });
    }
}

#[tokio::test]
async fn a_debounced_timer_fires_when_nothing_has_come_for_a_while() {
    let env = TestEnvironment::new().await;
    env.worker(|worker| worker.workflow::<Debounce>()).await.unwrap();
    let begun = env.now();
    let run = env.client().start::<Debounce>("debounce", ()).await.unwrap();
    for text in ["a", "b", "c"] {
        env.skip(seconds(50)).await;
        run.signal(Debounce::WRITE, text.to_owned()).await.unwrap();
    }
    assert_eq!(run.result().await.unwrap(), ["a", "b", "c"]);
    assert_eq!(env.now().saturating_since(begun), seconds(3 * 50 + 60));
    assert_eq!(timers(&run.history().await.unwrap()).len(), 1);
}

/// An offer whose deadline is that of a wait for a signal.
#[derive(Default)]
struct Offer;

#[workflow]
impl Offer {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<Option<String>> {
        Ok(ctx.receive(Self::ANSWER).timeout(hours(1)).await?.ok())
    }

    #[signal]
    fn answer(text: String);
}

#[tokio::test]
async fn the_deadline_of_a_wait_for_a_signal_is_moved_in_place_too() {
    let env = TestEnvironment::new().await;
    env.worker(|worker| worker.workflow::<Offer>().max_cached_runs(0)).await.unwrap();
    let begun = env.now();
    let offer = env.client().start::<Offer>("offer", ()).await.unwrap();
    env.skip(minutes(59)).await;
    let wait = offer.waits().await.unwrap().remove(0);
    offer.reschedule_wait(wait.key, begun + hours(3)).await.unwrap();
    env.skip(hours(1)).await;
    offer.signal(Offer::ANSWER, "yes").await.unwrap();
    assert_eq!(offer.result().await.unwrap(), Some("yes".into()));
    let history = offer.history().await.unwrap();
    assert_eq!((timers(&history).len(), count(&history, "TimerRescheduled")), (1, 1));
}
