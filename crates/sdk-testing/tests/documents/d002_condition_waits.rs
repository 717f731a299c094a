//! Condition waits and named-signal waits with deadlines: what is written, in which order, what is
//! shown, and what code gets.

use std::time::Duration;

use abide::client::HistoryEvent;
use abide::{
    Worker,
    list::{WaitFilter, WaitKind},
    prelude::*,
};
use abide_core::event::{Condition, Fact, Origin};
use abide_sdk_testing::{TestEnvironment, replay_history};

use crate::site::{Site, count, names, timers, until};

#[derive(Default)]
struct Approval {
    ready: bool,
}

#[workflow]
impl Approval {
    #[run]
    async fn run(ctx: &Context<Self>, timeout: Option<Duration>) -> abide::Result<String> {
        let wait = ctx.wait_until(condition!("approval.ready", |approval| approval.ready));
        let approved = match timeout {
            Some(timeout) => !wait.timeout(timeout).await?.is_timed_out(),
            None => wait.await.map(|()| true)?,
        };
        Ok(if approved { "approved".into() } else { "timed out".into() })
    }

    #[update]
    fn mark_ready(&mut self, ready: bool) -> bool {
        self.ready = ready;
        self.ready
    }
}

fn approvals(worker: Worker) -> Worker {
    worker.workflow::<Approval>()
}

async fn environment() -> TestEnvironment {
    let env = TestEnvironment::new().await;
    env.worker(|worker| approvals(worker).max_cached_runs(0)).await.unwrap();
    env
}

/// What a history's conditions are known by, in order: opened, on its timer, at its end.
fn conditions(history: &[HistoryEvent]) -> Vec<Condition> {
    let condition = |event: &HistoryEvent| match event.fact() {
        Fact::WaitOpened(it) => Some(it.spec.condition.clone()),
        Fact::TimerStarted(it) => match it.spec.origin.clone() {
            Some(Origin::Condition { key, fingerprint }) => Some(Condition { key, fingerprint }),
            other => panic!("not the deadline of a condition: {other:?}"),
        },
        Fact::WaitSatisfied(it) => Some(it.condition.clone()),
        Fact::WaitTimedOut(it) => Some(it.condition.clone()),
        _ => None,
    };
    history.iter().filter_map(condition).collect()
}

#[tokio::test]
async fn when_the_predicate_wins_the_timer_is_cancelled_and_then_the_wait_is_satisfied() {
    let env = environment().await;
    let begun = env.now();
    let approval = env.client().start::<Approval>("approval", Some(minutes(5))).await.unwrap();
    env.skip(minutes(4)).await;
    // An update that leaves the predicate false wakes no code.
    assert!(!approval.update(Approval::MARK_READY, false).await.unwrap());
    assert!(approval.update(Approval::MARK_READY, true).await.unwrap());
    assert_eq!(approval.result().await.unwrap(), "approved");
    assert_eq!(env.now().saturating_since(begun), minutes(4));
    let history = approval.history().await.unwrap();
    let not_yet = ["RunStarted", "WaitOpened", "TimerStarted", "UpdateAccepted", "UpdateCompleted"];
    assert_eq!(names(&history)[..5], not_yet);
    let [.., cancelled, satisfied, closed] = *names(&history) else { panic!() };
    assert_eq!((cancelled, satisfied, closed), ("TimerCancelled", "WaitSatisfied", "RunCompleted"));
    replay_history::<Approval>(history).unwrap();
}

#[tokio::test]
async fn when_the_deadline_wins_the_timer_fires_and_a_task_times_the_wait_out() {
    let env = environment().await;
    let begun = env.now();
    let approval = env.client().start::<Approval>("approval", Some(minutes(5))).await.unwrap();
    assert_eq!(approval.result().await.unwrap(), "timed out");
    assert_eq!(env.now().saturating_since(begun), minutes(5));
    let history = approval.history().await.unwrap();
    let facts: Vec<_> = history.iter().map(|event| event.name()).collect();
    let [.., fired, scheduled, started, completed, timed_out, closed] = *facts else { panic!() };
    assert_eq!((fired, timed_out, closed), ("TimerFired", "WaitTimedOut", "RunCompleted"));
    assert_eq!([scheduled, started, completed], ["TaskScheduled", "TaskStarted", "TaskCompleted"]);
    replay_history::<Approval>(history).unwrap();
}

#[tokio::test]
async fn a_condition_without_timeout_writes_no_timer_and_waits_for_ever() {
    let env = environment().await;
    let approval = env.client().start::<Approval>("approval", None).await.unwrap();
    env.skip(years(10)).await;
    approval.update(Approval::MARK_READY, true).await.unwrap();
    assert_eq!(approval.result().await.unwrap(), "approved");
    let history = approval.history().await.unwrap();
    assert!(timers(&history).is_empty());
    assert_eq!(names(&history)[1], "WaitOpened");
}

#[tokio::test]
async fn key_and_fingerprint_stand_on_the_wait_on_its_timer_and_on_its_end() {
    let env = environment().await;
    for (id, approve) in [("approved", true), ("timed-out", false)] {
        let approval = env.client().start::<Approval>(id, Some(minutes(5))).await.unwrap();
        if approve {
            approval.update(Approval::MARK_READY, true).await.unwrap();
        }
        approval.result().await.unwrap();
        let conditions = conditions(&approval.history().await.unwrap());
        assert_eq!(conditions.len(), 3);
        assert_eq!(conditions[0].key.as_deref(), Some("approval.ready"));
        assert!(conditions[0].fingerprint.is_some());
        assert!(conditions.iter().all(|condition| *condition == conditions[0]));
    }
}

#[tokio::test]
async fn a_wait_with_a_deadline_is_shown_as_one_wait() {
    let mut site = Site::open().await;
    let worker = site.work(approvals);
    let approval = site.client().start::<Approval>("approval", Some(minutes(5))).await.unwrap();
    until(&approval, |fact| matches!(fact, Fact::TimerStarted(_))).await;
    let (since, due) = (site.now(), site.now().saturating_add(minutes(5)));

    let waits = site.client().waits(WaitFilter::default()).take(10).await.unwrap();
    let [wait] = &*waits else { panic!("not one wait: {waits:?}") };
    assert_eq!((wait.kind, wait.name.as_str()), (WaitKind::Condition, "approval.ready"));
    assert_eq!((wait.since, wait.until), (since, Some(due)));

    let shown = approval.describe().await.unwrap().waits;
    let [wait] = &*shown else { panic!("not one wait: {shown:?}") };
    assert_eq!((wait.kind, wait.name.as_str()), (WaitKind::Condition, "approval.ready"));
    assert_eq!((wait.since, wait.until), (since, Some(due)));
    assert!(wait.timer.is_some(), "and its deadline can be moved");

    worker.kill().await;
    site.crash();
    let rows = site.rows("approval").await;
    assert_eq!((rows.due.len(), rows.waits.len()), (1, 1), "the deadline has a row to be due by");
}

/// There is no worker while both arrive: one task sees both, in the order of history.
#[tokio::test]
async fn the_order_in_history_decides_between_predicate_and_deadline() {
    for deadline_first in [true, false] {
        let site = Site::open().await;
        let worker = site.work(|worker| worker.workflow::<Payment>());
        let payment = site.client().start::<Payment>("payment", ()).await.unwrap();
        until(&payment, |fact| matches!(fact, Fact::TimerStarted(_))).await;
        worker.kill().await;
        if deadline_first {
            site.pass(minutes(5));
            until(&payment, |fact| matches!(fact, Fact::TimerFired(_))).await;
            payment.signal(Payment::PAY, ()).await.unwrap();
        } else {
            payment.signal(Payment::PAY, ()).await.unwrap();
            site.pass(minutes(5));
            until(&payment, |fact| matches!(fact, Fact::TimerFired(_))).await;
        }
        let worker = site.work(|worker| worker.workflow::<Payment>());
        assert_eq!(payment.result().await.unwrap(), !deadline_first);
        let history = payment.history().await.unwrap();
        let end = if deadline_first { "WaitTimedOut" } else { "WaitSatisfied" };
        assert_eq!((count(&history, end), count(&history, "TimerCancelled")), (1, 0));
        replay_history::<Payment>(history).unwrap();
        worker.kill().await;
    }
}

#[derive(Default)]
struct Payment {
    paid: bool,
}

#[workflow]
impl Payment {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<bool> {
        let paid = ctx.wait_until(condition!("paid", |payment| payment.paid)).timeout(minutes(5));
        Ok(!paid.await?.is_timed_out())
    }

    #[signal]
    fn pay(&mut self) {
        self.paid = true;
    }
}

#[activity]
async fn stock() -> u32 {
    7
}

/// The predicate looks at what earlier steps have left, whatever they were.
#[derive(Default)]
struct Delivery {
    pieces: u32,
    labels: u32,
}

#[workflow]
impl Delivery {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<u32> {
        let beside = ctx.clone();
        ctx.spawn(async move {
            let pieces = beside.activity(stock, ()).await?;
            beside.write(|delivery| delivery.pieces = pieces);
            let labels = beside.child::<Labels>("labels", pieces).await?;
            beside.write(|delivery| delivery.labels = labels);
            Ok::<_, Error>(())
        });
        ctx.wait_until(condition!("counted", |delivery| delivery.pieces > 0)).await?;
        let labelled = condition!("labelled", |delivery| delivery.labels == delivery.pieces);
        ctx.wait_until(labelled).await?;
        Ok(ctx.read(|delivery| delivery.labels))
    }
}

struct Labels;

#[workflow]
impl Labels {
    #[init]
    fn new(_: &u32) -> Self {
        Self
    }

    #[run]
    async fn run(ctx: &Context<Self>, pieces: u32) -> abide::Result<u32> {
        ctx.sleep(hours(1)).await?;
        Ok(pieces)
    }
}

#[tokio::test]
async fn results_of_activities_and_children_make_a_predicate_true() {
    let env = TestEnvironment::new().await;
    let set_up =
        |worker: Worker| worker.workflow::<Delivery>().workflow::<Labels>().activity(stock);
    env.worker(set_up).await.unwrap();
    let delivery = env.client().start::<Delivery>("delivery", ()).await.unwrap();
    assert_eq!(delivery.result().await.unwrap(), 7);
    assert_eq!(count(&delivery.history().await.unwrap(), "WaitSatisfied"), 2);
}

/// Waits for signals of each shape, in turn.
#[derive(Default)]
struct Inbox;

#[workflow]
impl Inbox {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<Vec<String>> {
        let minute = minutes(1);
        let none = ctx.receive(Self::NONE).timeout(minute).await?;
        let one = ctx.receive(Self::ONE).timeout(minute).await?;
        let two = ctx.receive(Self::TWO).timeout(minute).await?;
        let flag = ctx.receive(Self::FLAG).timeout(minute).await?;
        Ok(vec![format!("{none:?}"), format!("{one:?}"), format!("{two:?}"), format!("{flag:?}")])
    }

    #[signal]
    fn none();

    #[signal]
    fn one(value: Option<String>);

    #[signal]
    fn two(name: String, count: u32);

    #[signal]
    fn flag(value: bool);
}

/// What other systems reserve for a timeout, such as null and false, is a value here.
#[tokio::test]
async fn a_signal_in_time_is_told_from_a_timeout_whatever_its_arguments() {
    let env = TestEnvironment::new().await;
    env.worker(|worker| worker.workflow::<Inbox>()).await.unwrap();
    let inbox = env.client().start::<Inbox>("inbox", ()).await.unwrap();
    inbox.signal(Inbox::NONE, ()).await.unwrap();
    inbox.signal(Inbox::ONE, None).await.unwrap();
    inbox.signal(Inbox::TWO, ("Ann", 2)).await.unwrap();
    inbox.signal(Inbox::FLAG, false).await.unwrap();
    let expected = ["InTime(())", "InTime(None)", r#"InTime(("Ann", 2))"#, "InTime(false)"];
    assert_eq!(inbox.result().await.unwrap(), expected);
    let empty = env.client().start::<Inbox>("empty", ()).await.unwrap();
    assert_eq!(empty.result().await.unwrap(), ["TimedOut"; 4]);
}

#[test]
fn helpers_name_every_length_of_time() {
    let day = Duration::from_secs(24 * 3600);
    assert_eq!([seconds(90), minutes(2)], [Duration::from_secs(90), Duration::from_secs(120)]);
    assert_eq!([hours(24), days(1), weeks(1)], [day, day, 7 * day]);
    assert_eq!([months(1), years(1)], [30 * day, 365 * day]);
}
