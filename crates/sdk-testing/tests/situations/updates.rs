//! Updates, alone and together with a start.

use std::sync::atomic::{AtomicU32, Ordering};

use abide::{
    ConflictPolicy,
    client::HistoryEvent,
    client::{ClientError, StartedWithUpdate, UpdateState},
    ids::RunId,
    list::RunStatus,
    prelude::*,
};
use abide_core::run::Refusal;
use abide_sdk_testing::TestEnvironment;

use crate::{
    site::{Hold, Site, until},
    table::page,
};

page!("updates.md", "updates.rs");

/// A tab that is open until it is asked to close.
#[derive(Default)]
struct Tab {
    cents: u64,
}

#[workflow]
impl Tab {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<u64> {
        let end = ctx.receive(Self::CLOSE).await?;
        match end.as_str() {
            "fail" => Err(Error::new("the till is broken")),
            "continue" => Err(ctx.continue_as_new(())),
            _ => Ok(ctx.read(|tab| tab.cents)),
        }
    }

    #[signal]
    fn close(how: String);

    #[update(validate = check)]
    fn pay(&mut self, cents: u64) -> u64 {
        self.cents += cents;
        self.cents
    }

    fn check(&self, cents: &u64) -> Result<(), String> {
        assert!(*cents != 13, "an unlucky number");
        if *cents == 0 { Err("nothing to pay".into()) } else { Ok(()) }
    }

    #[update]
    async fn pay_later(ctx: &Context<Self>, cents: u64) -> abide::Result<u64> {
        ctx.sleep(hours(1)).await?;
        Ok(ctx.write(|tab| {
            tab.cents += cents;
            tab.cents
        }))
    }

    #[update]
    fn tip(&mut self, name: String) -> String {
        format!("thank you, {name}")
    }
}

/// The same, but it does not wait for anybody.
#[derive(Default)]
struct Hasty;

#[workflow(unfinished_handlers = "abandon")]
impl Hasty {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<()> {
        ctx.receive(Self::CLOSE).await
    }

    #[signal]
    fn close();

    #[update]
    async fn pay_later(ctx: &Context<Self>) -> abide::Result<()> {
        ctx.sleep(hours(1)).await
    }
}

async fn environment() -> TestEnvironment {
    let env = TestEnvironment::new().await;
    env.worker(|worker| worker.workflow::<Tab>().workflow::<Hasty>().workflow::<Clumsy>())
        .await
        .unwrap();
    env
}

async fn tab(env: &TestEnvironment) -> TabHandle {
    env.client().start::<Tab>("tab", ()).await.unwrap()
}

async fn check<W>(situation: &str, handle: &abide::WorkflowHandle<W>) {
    let history: Vec<HistoryEvent> = handle.history().await.unwrap();
    PAGE.check(situation, &history);
}

#[tokio::test]
async fn handlers_do_it_at_once_or_later() {
    let env = environment().await;
    let tab = tab(&env).await;
    assert_eq!(tab.update(Tab::PAY, 5).await.unwrap(), 5);
    check("the handler is synchronous", &tab).await;

    let env = environment().await;
    let tab = self::tab(&env).await;
    let update = tab.update(Tab::PAY_LATER, 5).start().await.unwrap();
    assert_eq!(update.poll().await.unwrap(), UpdateState::Accepted);
    assert_eq!(update.result().await.unwrap(), 5);
    check("the handler sleeps first", &tab).await;
}

#[tokio::test]
async fn what_is_rejected_leaves_no_trace() {
    let env = environment().await;
    let tab = tab(&env).await;
    let message = |error| match error {
        ClientError::UpdateRejected(failure) => failure.to_string(),
        other => panic!("{other:?}"),
    };
    let refused = tab.update(Tab::PAY, 0).id("refused").await.unwrap_err();
    assert_eq!(message(refused), "nothing to pay");
    let later = tab.update_by_id(Tab::PAY, "refused").result().await.unwrap_err();
    assert_eq!(later, ClientError::Refused(Refusal::UnknownUpdate("refused".into()).into()));
    check("the validator refuses", &tab).await;

    let panicked = message(tab.update(Tab::PAY, 13).await.unwrap_err());
    assert_eq!(panicked, "validator of update pay panicked: an unlucky number");
    check("the validator panics", &tab).await;

    let unknown = message(tab.update_untyped("pray", Vec::new()).await.unwrap_err());
    assert_eq!(unknown, "workflow Tab has no update pray; it has: pay, pay_later, tip");
    check("there is no such update", &tab).await;

    let wrong = abide::payload::encode(&"five".to_owned()).unwrap();
    let unreadable = message(tab.update_untyped("pay", wrong).await.unwrap_err());
    assert!(unreadable.starts_with("input of update pay: cannot be read as u64"), "{unreadable}");
    check("its argument cannot be read", &tab).await;
}

static DROPPED: AtomicU32 = AtomicU32::new(0);

/// Panics the first two times.
#[derive(Default)]
struct Clumsy;

#[workflow]
impl Clumsy {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<()> {
        ctx.receive(Self::CLOSE).await
    }

    #[signal]
    fn close();

    #[update]
    fn carry(&mut self) -> u32 {
        let times = DROPPED.fetch_add(1, Ordering::SeqCst);
        assert!(times > 1, "it fell");
        times
    }
}

#[tokio::test]
async fn a_handler_that_panics_is_tried_again() {
    let env = environment().await;
    let clumsy = env.client().start::<Clumsy>("clumsy", ()).await.unwrap();
    assert_eq!(clumsy.update(Clumsy::CARRY, ()).await.unwrap(), 2);
    check("the handler panics, until its code is corrected", &clumsy).await;
}

#[tokio::test]
async fn an_id_is_one_update() {
    let env = environment().await;
    let tab = tab(&env).await;
    assert_eq!(tab.update(Tab::PAY, 5).id("invoice-12").await.unwrap(), 5);
    assert_eq!(tab.update(Tab::PAY, 5).id("invoice-12").await.unwrap(), 5);
    check("the same id again", &tab).await;
    let reused = ClientError::Refused(Refusal::KeyReused("invoice-12".into()).into());
    assert_eq!(tab.update(Tab::PAY, 9).id("invoice-12").await.unwrap_err(), reused);
    assert_eq!(tab.update(Tab::PAY_LATER, 5).id("invoice-12").await.unwrap_err(), reused);
    check("the same id with another name or other arguments", &tab).await;
    assert_eq!(tab.update_by_id(Tab::PAY, "invoice-12").result().await.unwrap(), 5);
    check("it is looked up by its id", &tab).await;
    tab.signal(Tab::CLOSE, "done").await.unwrap();
    assert_eq!(tab.result().await.unwrap(), 5);
    assert_eq!(tab.update_by_id(Tab::PAY, "invoice-12").result().await.unwrap(), 5);
    assert_eq!(tab.update(Tab::PAY, 5).id("invoice-12").await.unwrap(), 5);
    check("it is looked up after the run has closed", &tab).await;
    let late = tab.update(Tab::PAY, 5).await.unwrap_err();
    assert_eq!(late, ClientError::Refused(Refusal::RunClosed.into()));
    check("a new update to a closed run", &tab).await;
}

static BUSY: Hold = Hold::new();

/// Is held in the middle of its first task.
#[derive(Default)]
struct Slow;

#[workflow]
impl Slow {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<()> {
        BUSY.pass();
        ctx.receive(Self::CLOSE).await
    }

    #[signal]
    fn close();

    #[update]
    fn pay(&mut self, cents: u64) -> u64 {
        cents
    }
}

#[tokio::test]
async fn an_update_waits_for_the_open_task() {
    let site = Site::open().await;
    let worker = site.work(|worker| worker.workflow::<Slow>());
    let slow = site.client().start::<Slow>("slow", ()).await.unwrap();
    BUSY.entered().await;
    let update = tokio::spawn(IntoFuture::into_future(slow.update(Slow::PAY, 5)));
    while slow.describe().await.unwrap().updates.is_empty() {
        tokio::task::yield_now().await;
    }
    BUSY.open();
    assert_eq!(update.await.unwrap().unwrap(), 5);
    check("a task is open", &slow).await;
    worker.kill().await;
}

#[tokio::test]
async fn a_run_waits_for_its_handlers_or_abandons_them() {
    let env = environment().await;
    let tab = tab(&env).await;
    let update = tab.update(Tab::PAY_LATER, 5).start().await.unwrap();
    tab.signal(Tab::CLOSE, "done").await.unwrap();
    while !tab.describe().await.unwrap().waits.iter().any(|wait| wait.name == "handlers-finished") {
        tokio::task::yield_now().await;
    }
    assert_eq!(update.result().await.unwrap(), 5);
    assert_eq!(tab.result().await.unwrap(), 0);
    check("the run returns while the handler runs", &tab).await;

    let hasty = env.client().start::<Hasty>("hasty", ()).await.unwrap();
    let update = hasty.update(Hasty::PAY_LATER, ()).start().await.unwrap();
    hasty.signal(Hasty::CLOSE, ()).await.unwrap();
    hasty.result().await.unwrap();
    let aborted = (hasty.run_id().unwrap(), RunStatus::Completed, true);
    assert_eq!(self::aborted(update.result().await), aborted);
    check("the run abandons its handlers", &hasty).await;
}

/// The run that closed before an update had an outcome, how it closed, and whether it had accepted it.
fn aborted<O: std::fmt::Debug>(result: Result<O, ClientError>) -> (RunId, RunStatus, bool) {
    match result {
        Err(ClientError::UpdateAborted { run, status, accepted, .. }) => (run, status, accepted),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_run_that_ends_otherwise_aborts_what_is_unfinished() {
    let env = environment().await;
    let tab = tab(&env).await;
    let update = tab.update(Tab::PAY_LATER, 5).start().await.unwrap();
    tab.signal(Tab::CLOSE, "fail").await.unwrap();
    let failed = (tab.run_id().unwrap(), RunStatus::Failed, true);
    assert_eq!(aborted(update.result().await), failed);
    check("the run fails while the handler runs", &tab).await;

    let env = TestEnvironment::new().await;
    let tab = self::tab(&env).await;
    let update = tokio::spawn(IntoFuture::into_future(tab.update(Tab::PAY, 5)));
    while tab.describe().await.unwrap().updates.is_empty() {
        tokio::task::yield_now().await;
    }
    tab.terminate("nobody works here").await.unwrap();
    let terminated = (tab.run_id().unwrap(), RunStatus::Terminated, false);
    assert_eq!(aborted(update.await.unwrap()), terminated);
    check("the run is terminated before its code has seen the update", &tab).await;
}

#[tokio::test]
async fn an_unfinished_update_goes_along_when_the_run_continues_as_new() {
    let env = environment().await;
    let first = tab(&env).await;
    let done = first.update(Tab::PAY, 5).id("done").await.unwrap();
    let update = first.update(Tab::PAY_LATER, 7).id("later").start().await.unwrap();
    first.signal(Tab::CLOSE, "continue").await.unwrap();
    assert_eq!(update.result().await.unwrap(), 7, "the state does not go along");
    let tab = env.client().handle::<Tab>("tab");
    check("the run continues as new while the handler runs", &tab).await;
    assert_eq!(tab.update(Tab::PAY_LATER, 7).id("later").await.unwrap(), 7);
    assert_eq!(tab.update(Tab::PAY, 5).id("done").await.unwrap(), done);
    let reused = ClientError::Refused(Refusal::KeyReused("done".into()).into());
    assert_eq!(tab.update(Tab::PAY, 9).id("done").await.unwrap_err(), reused);
    check("its id was used before the run continued as new", &tab).await;
}

#[tokio::test]
async fn an_update_comes_with_the_start() {
    let env = environment().await;
    let client = env.client();
    let pay = |cents| {
        let start = client.start::<Tab>("tab", ()).on_conflict(ConflictPolicy::UseExisting);
        start.with_update(Tab::PAY, cents)
    };
    let StartedWithUpdate { workflow: tab, started, update, .. } = pay(5).await.unwrap();
    assert!(started);
    assert_eq!(update.unwrap().result().await.unwrap(), 5);
    check("with the start, and there is no run", &tab).await;

    let told = pay(6).outcome().await.unwrap();
    assert!(!told.started);
    assert_eq!(told.update.unwrap(), 11);
    check("with the start, and a run is open", &tab).await;

    let refused = client.start::<Tab>("tab", ()).with_update(Tab::PAY, 7).await.unwrap_err();
    assert!(matches!(refused, ClientError::AlreadyExists { .. }));
    check("with the start, and the start is refused", &tab).await;

    let other = client.start::<Tab>("other", ()).with_update(Tab::PAY, 0).await.unwrap();
    assert!(other.started);
    assert!(matches!(other.update, Err(ClientError::UpdateRejected(_))), "{:?}", other.update);
    check("with the start, and the validator refuses", &other.workflow).await;
}

/// The first call is lost with the engine: immediately, or when its update already has its outcome.
#[tokio::test]
async fn a_call_that_was_lost_is_made_again() {
    let mut site = Site::open().await;
    let pay = |site: &Site| {
        let start = site.client().start::<Tab>("tab", ()).key("order-7");
        start.on_conflict(ConflictPolicy::UseExisting).with_update(Tab::PAY, 5).id("invoice-12")
    };
    let lost = tokio::spawn(pay(&site).outcome());
    let tab = site.client().handle::<Tab>("tab");
    while tab.describe().await.is_err() {
        tokio::task::yield_now().await;
    }
    lost.abort();
    assert!(lost.await.is_err());
    site.reopen().await;
    let worker = site.work(|worker| worker.workflow::<Tab>());
    let told = pay(&site).outcome().await.unwrap();
    assert_eq!((told.started, told.update.unwrap()), (true, 5));
    check("the engine crashes before the code has seen it", &told.workflow).await;

    until(&told.workflow, |fact| fact.name() == "UpdateCompleted").await;
    worker.kill().await;
    site.reopen().await;
    let again = pay(&site).outcome().await.unwrap();
    assert_eq!((again.started, again.update.unwrap()), (true, 5));
    assert_eq!(again.workflow.run_id(), told.workflow.run_id());
    check("the engine crashes before the caller hears of it", &again.workflow).await;
}
