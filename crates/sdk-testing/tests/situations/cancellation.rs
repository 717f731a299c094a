//! Cancel requests, scopes, shields, and what becomes of activities and children.

use std::time::Duration;

use abide::{
    Canceller, ParentClosePolicy, WorkflowHandle,
    approval::{Approvals, Request},
    client::ClientError,
    event::Fact,
    payload,
    prelude::*,
};
use abide_sdk_testing::replay_history;
use tokio::sync::watch;

use crate::{
    site::{Site, Working, count, names, until},
    table::page,
};

page!("cancellation.md", "cancellation.rs");

/// Sleeps for a week, and passes on whatever ends that.
#[derive(Default)]
struct Stay;

#[workflow]
impl Stay {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<()> {
        ctx.sleep(days(7)).await
    }
}

async fn cancelled<W: abide::Workflow>(handle: &WorkflowHandle<W>) -> Option<String> {
    match handle.result().await {
        Err(ClientError::RunCancelled(details)) => {
            Some(payload::decode(&details).unwrap_or_default())
        }
        _ => None,
    }
}

#[tokio::test]
async fn the_run_passes_the_error_on() {
    let site = Site::open().await;
    site.work(|worker| worker.workflow::<Stay>());
    let stay = site.client().start::<Stay>("stay", ()).await.unwrap();
    until(&stay, |fact| matches!(fact, Fact::TimerStarted(_))).await;
    stay.cancel().await.unwrap();
    assert!(cancelled(&stay).await.is_some());
    PAGE.check("the run passes the error on", &stay.history().await.unwrap());
}

/// Waits for the request, and tells its reason.
#[derive(Default)]
struct Listener;

#[workflow]
impl Listener {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<String> {
        let request = ctx.cancelled().await;
        Ok(format!("stopped: {}", request.reason()))
    }
}

#[tokio::test]
async fn the_run_waits_for_the_request() {
    let site = Site::open().await;
    site.work(|worker| worker.workflow::<Listener>());
    let listener = site.client().start::<Listener>("listener", ()).await.unwrap();
    until(&listener, |fact| matches!(fact, Fact::TaskCompleted(_))).await;
    listener.cancel().reason("the shop closes").await.unwrap();
    assert_eq!(listener.result().await.unwrap(), "stopped: the shop closes");
    PAGE.check("the run waits for the request itself", &listener.history().await.unwrap());
}

#[activity]
async fn give_back() {}

/// Gives back what it has booked, whatever happens, if a worker of the queue "cleanup" does it in time.
#[derive(Default)]
struct Booking;

#[workflow]
impl Booking {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<String> {
        let stay = ctx.sleep(days(7)).await;
        let cleanup = ctx.shield(async { ctx.activity(give_back, ()).queue("cleanup").await });
        match cleanup.timeout(minutes(5)).await {
            Outcome::InTime(given_back) => given_back?,
            Outcome::TimedOut => return Ok("not given back".into()),
        }
        stay.map(|()| "given back".into())
    }
}

/// A booking that cleans up, and the worker of its code.
async fn cleans_up(site: &Site) -> (WorkflowHandle<Booking>, Working) {
    let worker = site.work(|worker| worker.workflow::<Booking>());
    let booking = site.client().start::<Booking>("booking", ()).await.unwrap();
    until(&booking, |fact| matches!(fact, Fact::TimerStarted(_))).await;
    booking.cancel().await.unwrap();
    until(&booking, |fact| matches!(fact, Fact::ActivityScheduled(_))).await;
    (booking, worker)
}

#[tokio::test]
async fn the_run_cleans_up_in_a_shield() {
    let site = Site::open().await;
    let (booking, _worker) = cleans_up(&site).await;
    site.work(|worker| worker.activity(give_back).queue("cleanup"));
    assert!(cancelled(&booking).await.is_some());
    PAGE.check("the run cleans up in a shield", &booking.history().await.unwrap());
}

#[tokio::test]
async fn the_engine_crashes_while_the_run_cleans_up() {
    let mut site = Site::open().await;
    let (booking, worker) = cleans_up(&site).await;
    worker.kill().await;
    drop(booking);
    site.reopen().await;
    site.work(|worker| worker.workflow::<Booking>());
    site.work(|worker| worker.activity(give_back).queue("cleanup"));
    let booking = site.client().handle::<Booking>("booking");
    assert!(cancelled(&booking).await.is_some());
    let history = booking.history().await.unwrap();
    assert_eq!(count(&history, "ActivityScheduled"), 1, "it is cleaned up once");
    PAGE.check("the engine crashes while the run cleans up", &history);
    replay_history::<Booking>(history).unwrap();
}

#[tokio::test]
async fn the_time_of_a_shield_is_up() {
    let site = Site::open().await;
    let (booking, _worker) = cleans_up(&site).await;
    site.pass(minutes(5));
    assert_eq!(booking.result().await.unwrap(), "not given back");
    PAGE.check("the time of a shield is up", &booking.history().await.unwrap());
}

/// Its import can be stopped; the report is written all the same.
#[derive(Default)]
struct Import {
    canceller: Option<Canceller>,
}

#[activity]
async fn report(text: String) -> String {
    format!("reported: {text}")
}

#[workflow]
impl Import {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<String> {
        let import = ctx.scope(async {
            ctx.sleep(hours(1)).await?;
            Ok::<_, Error>("imported".to_owned())
        });
        let canceller = import.canceller();
        ctx.write(|state| state.canceller = Some(canceller.clone()));
        let imported = import.await;
        let text = match canceller.cancellation() {
            Some(cancellation) => cancellation.reason().to_owned(),
            None => imported?,
        };
        ctx.activity(report, text).await
    }

    #[signal]
    fn stop(&mut self, why: String) {
        if let Some(canceller) = &self.canceller {
            canceller.cancel(why);
        }
    }
}

#[tokio::test]
async fn a_scope_is_cancelled_by_a_signal() {
    let site = Site::open().await;
    site.work(|worker| worker.workflow::<Import>().activity(report));
    let import = site.client().start::<Import>("import", ()).await.unwrap();
    until(&import, |fact| matches!(fact, Fact::TimerStarted(_))).await;
    import.signal(Import::STOP, "wrong file").await.unwrap();
    assert_eq!(import.result().await.unwrap(), "reported: wrong file");
    PAGE.check("a scope is cancelled by a signal", &import.history().await.unwrap());
}

/// An activity that the tests watch.
struct Exporter {
    running: watch::Sender<bool>,
    gate: watch::Receiver<bool>,
}

#[activities]
impl Exporter {
    /// Runs until it is asked to stop, and hears of it by its heartbeats.
    #[activity]
    async fn export(&self, ctx: ActivityContext) -> Result<u32, ActivityError> {
        self.running.send_replace(true);
        while !ctx.is_cancelled() {
            ctx.heartbeat(&1).map_err(ActivityError::from_source)?;
            tokio::task::yield_now().await;
        }
        Err(ActivityError::cancelled().details(&"half of it".to_owned()))
    }

    /// Runs until the test lets it end, and hears of nothing.
    #[activity]
    async fn print(&self) -> Result<u32, ActivityError> {
        self.running.send_replace(true);
        self.gate.clone().wait_for(|open| *open).await.map_err(ActivityError::from_source)?;
        Ok(7)
    }

    #[activity]
    async fn fail(&self) -> Result<u32, ActivityError> {
        Err(ActivityError::new("not now"))
    }
}

#[derive(Default)]
struct Call;

#[workflow]
impl Call {
    #[run]
    async fn run(ctx: &Context<Self>, which: String, policy: String) -> abide::Result<u32> {
        let call = match which.as_str() {
            "export" => ctx.activity(Exporter::export, ()),
            "print" => ctx.activity(Exporter::print, ()),
            "fail" => ctx.activity(Exporter::fail, ()),
            _ => ctx.activity(Exporter::print, ()).queue("nowhere"),
        };
        let call = call.heartbeat_timeout(Duration::from_millis(20)).on_cancel(match &*policy {
            "try" => OnCancel::Cancel,
            "wait" => OnCancel::CancelAndWait,
            _ => OnCancel::Abandon,
        });
        let called = call.await;
        if matches!(called, Err(Error::Cancelled)) {
            // The result of the activity, which the code ignores, must appear in history.
            ctx.receive(Self::END).await?;
        }
        called
    }

    #[signal]
    fn end();
}

/// A run that waits for its activity, and what the test needs of the activity.
struct Calling {
    site: Site,
    call: CallHandle,
    running: watch::Receiver<bool>,
    gate: watch::Sender<bool>,
}

impl Calling {
    async fn start(which: &str, policy: &str) -> Self {
        let site = Site::open().await;
        let ((running_sender, running), (gate, opened)) =
            (watch::channel(false), watch::channel(false));
        let exporter = Exporter { running: running_sender, gate: opened };
        site.work(|worker| worker.workflow::<Call>().activities(exporter));
        let input = (which.to_owned(), policy.to_owned());
        let call = site.client().start::<Call>("call", input).await.unwrap();
        until(&call, |fact| matches!(fact, Fact::ActivityScheduled(_))).await;
        Self { site, call, running, gate }
    }

    /// An attempt runs.
    async fn runs(&mut self) {
        self.running.wait_for(|running| *running).await.unwrap();
    }

    async fn cancel(&self) {
        self.call.cancel().await.unwrap();
        until(&self.call, |fact| matches!(fact, Fact::ActivityCancelRequested(_))).await;
    }

    async fn check(&self, situation: &str) {
        let history = self.call.history().await.unwrap();
        PAGE.check(situation, &history);
        replay_history::<Call>(history).unwrap();
    }
}

#[tokio::test]
async fn a_running_attempt_hears_of_it_by_its_heartbeats() {
    let mut calling = Calling::start("export", "wait").await;
    calling.runs().await;
    calling.cancel().await;
    assert_eq!(cancelled(&calling.call).await.unwrap(), "half of it");
    calling.check("`CancelAndWait`, and the attempt stops at its next heartbeat").await;
}

#[tokio::test]
async fn an_attempt_that_never_heartbeats_completes() {
    let mut calling = Calling::start("print", "wait").await;
    calling.runs().await;
    calling.cancel().await;
    calling.gate.send_replace(true);
    assert_eq!(calling.call.result().await.unwrap(), 7);
    calling.check("`CancelAndWait`, and the attempt sends no heartbeat").await;
}

#[tokio::test]
async fn the_run_does_not_wait_for_an_attempt_that_it_only_asks() {
    let mut calling = Calling::start("export", "try").await;
    calling.runs().await;
    calling.cancel().await;
    until(&calling.call, |fact| matches!(fact, Fact::ActivityCancelled(_))).await;
    calling.call.signal(Call::END, ()).await.unwrap();
    assert!(cancelled(&calling.call).await.is_some());
    calling.check("`Cancel`, and an attempt runs").await;
}

#[tokio::test]
async fn an_activity_that_waits_for_its_retry_is_cancelled_at_once() {
    let calling = Calling::start("fail", "wait").await;
    while !calling.site.shown("call").await.activities.iter().any(|it| it.attempt == 2) {
        tokio::task::yield_now().await;
    }
    calling.cancel().await;
    assert!(cancelled(&calling.call).await.is_some());
    calling.check("the activity waits for its retry").await;
}

#[tokio::test]
async fn an_activity_that_has_not_begun_never_does() {
    let calling = Calling::start("nowhere", "wait").await;
    calling.cancel().await;
    assert!(cancelled(&calling.call).await.is_some());
    calling.check("no attempt has begun").await;
}

#[tokio::test]
async fn an_abandoned_activity_goes_on() {
    let mut calling = Calling::start("print", "abandon").await;
    calling.runs().await;
    calling.call.cancel().await.unwrap();
    until(&calling.call, |fact| matches!(fact, Fact::TimerStarted(_))).await;
    calling.gate.send_replace(true);
    until(&calling.call, |fact| matches!(fact, Fact::ActivityCompleted(_))).await;
    calling.call.signal(Call::END, ()).await.unwrap();
    assert!(cancelled(&calling.call).await.is_some());
    calling.check("the activity is abandoned").await;
}

/// Begins two sleeps and cancels one of them.
#[derive(Default)]
struct Single;

#[workflow]
impl Single {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<String> {
        let mut long = ctx.sleep(days(7)).start();
        ctx.sleep(hours(1)).await?;
        long.cancel();
        Ok(format!("{:?}", long.await))
    }
}

#[tokio::test]
async fn one_wait_is_cancelled_alone() {
    let site = Site::open().await;
    site.work(|worker| worker.workflow::<Single>());
    let single = site.client().start::<Single>("single", ()).await.unwrap();
    until(&single, |fact| matches!(fact, Fact::TimerStarted(_))).await;
    site.pass(hours(1));
    assert_eq!(single.result().await.unwrap(), "Err(Cancelled)");
    PAGE.check("one wait is cancelled alone", &single.history().await.unwrap());
}

/// Has a child that stays.
#[derive(Default)]
struct Parent;

#[workflow]
impl Parent {
    #[run]
    async fn run(ctx: &Context<Self>, way: String) -> abide::Result<String> {
        let child = ctx.child::<Stay>("child", ()).parent_close(ParentClosePolicy::Abandon);
        match way.as_str() {
            "wait" => child.on_cancel(OnCancel::CancelAndWait).await?,
            "try" => child.await?,
            "select" => select! {
                stayed = child => stayed?,
                slept = ctx.sleep(hours(1)) => slept?,
            },
            _ => drop(child.start().await?),
        }
        Ok("it goes on".into())
    }
}

async fn parent(site: &Site, way: &str) -> WorkflowHandle<Parent> {
    site.work(|worker| worker.workflow::<Parent>().workflow::<Stay>());
    let parent = site.client().start::<Parent>("parent", way).await.unwrap();
    until(&parent, |fact| matches!(fact, Fact::ChildStarted(_))).await;
    let child = site.client().handle::<Stay>("child");
    until(&child, |fact| matches!(fact, Fact::TimerStarted(_))).await;
    parent
}

#[tokio::test]
async fn an_awaited_child_is_asked_to_cancel_itself() {
    for (way, situation) in [("wait", "`CancelAndWait` of a child"), ("try", "`Cancel` of a child")]
    {
        let site = Site::open().await;
        let parent = parent(&site, way).await;
        parent.cancel().await.unwrap();
        assert!(cancelled(&parent).await.is_some());
        assert!(cancelled(&site.client().handle::<Stay>("child")).await.is_some());
        let history = parent.history().await.unwrap();
        PAGE.check(situation, &history);
        replay_history::<Parent>(history).unwrap();
    }
}

#[tokio::test]
async fn a_child_that_loses_a_select_is_asked_to_cancel_itself() {
    let site = Site::open().await;
    let parent = parent(&site, "select").await;
    site.pass(hours(1));
    assert_eq!(parent.result().await.unwrap(), "it goes on");
    assert!(cancelled(&site.client().handle::<Stay>("child")).await.is_some());
    PAGE.check("a child loses a select", &parent.history().await.unwrap());
}

#[tokio::test]
async fn a_child_whose_handle_is_dropped_stays() {
    let site = Site::open().await;
    let parent = parent(&site, "handle").await;
    assert_eq!(parent.result().await.unwrap(), "it goes on");
    PAGE.check("the handle of a child is dropped", &parent.history().await.unwrap());
    let child = site.client().handle::<Stay>("child").history().await.unwrap();
    assert_eq!(names(&child), ["RunStarted", "TimerStarted"]);
}

/// Lets everything lose against a signal.
#[derive(Default)]
struct Race {
    approvals: Approvals,
    over: bool,
}

#[workflow(approvals = approvals)]
impl Race {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<String> {
        let winner = select! {
            _ = ctx.child::<Stay>("child", ()).on_cancel(OnCancel::Cancel) => "child",
            _ = ctx.activity(give_back, ()).queue("nowhere") => "activity",
            _ = ctx.sleep(days(1)) => "sleep",
            _ = ctx.receive(Self::NEVER) => "receive",
            _ = ctx.wait_until(condition!("race.over", |race: &Self| race.over)) => "condition",
            _ = ctx.approval(Request::new("race")) => "approval",
            _ = ctx.scope(async { ctx.shield(ctx.sleep(days(2)).into_future()).await }) => "scope",
            _ = ctx.cancelled() => "request",
            _ = ctx.receive(Self::GO) => "go",
        };
        ctx.sleep(hours(1)).await?;
        Ok(winner.into())
    }

    #[signal]
    fn never();

    #[signal]
    fn go();
}

#[tokio::test]
async fn the_losers_of_a_select_are_cancelled() {
    let site = Site::open().await;
    site.work(|worker| worker.workflow::<Race>().workflow::<Stay>());
    let race = site.client().start::<Race>("race", ()).await.unwrap();
    until(&race, |fact| matches!(fact, Fact::ChildStarted(_))).await;
    race.signal(Race::GO, ()).await.unwrap();
    until(&race, |fact| matches!(fact, Fact::ExternalCancelDelivered(_))).await;
    until(&race, |fact| matches!(fact, Fact::ChildCancelled(_))).await;
    let waits = site.shown("race").await.waits;
    let of_losers = waits.iter().filter(|wait| wait.kind != abide_core::list::WaitKind::Timer);
    assert_eq!(of_losers.count(), 0, "nothing is left in the list of waits");
    site.pass(hours(1));
    assert_eq!(race.result().await.unwrap(), "go");
    let history = race.history().await.unwrap();
    PAGE.check("everything loses a select", &history);
    replay_history::<Race>(history).unwrap();
}
