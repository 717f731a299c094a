//! Rows are an index of the log: a row that is lost is made again by a repair or by the sweeper, a row
//! that lies moves nothing, and no timer ever fires twice. Every open run says what it does and what
//! will make it go on.

use abide::{
    Worker,
    client::{Liveness, ResumeSource},
    prelude::*,
};
use abide_core::event::Fact;
use abide_embedded::Limits;
use abide_store::{
    Write,
    rows::{DueRow, TaskRow, WaitRow},
};

use crate::site::{Site, Working, count, until};

#[derive(Default)]
struct Approval {
    ready: bool,
}

#[workflow]
impl Approval {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<bool> {
        let ready = ctx.wait_until(condition!("ready", |it| it.ready)).timeout(minutes(5));
        Ok(!ready.await?.is_timed_out())
    }

    #[signal]
    fn approve(&mut self) {
        self.ready = true;
    }
}

fn approvals(worker: Worker) -> Worker {
    worker.workflow::<Approval>()
}

fn fired(fact: &Fact) -> bool {
    matches!(fact, Fact::TimerFired(_))
}

/// A run that waits, and whose engine is down.
async fn waiting() -> Site {
    let mut site = Site::open().await;
    let worker = site.work(approvals);
    let approval = site.client().start::<Approval>("approval", ()).await.unwrap();
    until(&approval, |fact| matches!(fact, Fact::TimerStarted(_))).await;
    worker.kill().await;
    site.crash();
    site
}

/// A run whose deadline has fired, which no worker has seen, and whose engine is down.
async fn fired_unseen() -> Site {
    let mut site = waiting().await;
    site.reopen().await;
    site.pass(minutes(5));
    until(&handle(&site), fired).await;
    site.crash();
    site
}

fn handle(site: &Site) -> ApprovalHandle {
    site.client().handle::<Approval>("approval")
}

fn deleted_due(row: &DueRow) -> Write {
    Write::DeleteDue(row.key())
}

fn deleted_wait(row: &WaitRow) -> Write {
    Write::DeleteWait { run: row.run, wait: row.wait.clone() }
}

fn deleted_task(row: &TaskRow) -> Write {
    Write::DeleteTask(row.key.clone())
}

/// The run ends by its deadline, which fires once.
async fn times_out_once(site: &Site) -> Working {
    let worker = site.work(approvals);
    assert!(!handle(site).result().await.unwrap());
    let history = handle(site).history().await.unwrap();
    let counted = ["TimerStarted", "TimerFired", "WaitTimedOut"].map(|name| count(&history, name));
    assert_eq!(counted, [1, 1, 1]);
    worker
}

#[tokio::test]
async fn repair_makes_a_lost_timer_row_again_with_its_own_deadline() {
    let mut site = waiting().await;
    let rows = site.rows("approval").await;
    site.write("approval", rows.due.iter().map(deleted_due).collect()).await;
    site.reopen().await;
    handle(&site).repair().await.unwrap();
    site.crash();
    assert_eq!(site.rows("approval").await.due, rows.due, "the same row, and no other");
    site.reopen().await;
    site.pass(minutes(5));
    until(&handle(&site), fired).await;
    times_out_once(&site).await.kill().await;
}

#[tokio::test]
async fn repair_of_a_timer_that_is_overdue_fires_it_once() {
    let mut site = waiting().await;
    let rows = site.rows("approval").await;
    site.write("approval", rows.due.iter().map(deleted_due).collect()).await;
    site.pass(days(1));
    site.reopen().await;
    assert_eq!(count(&handle(&site).history().await.unwrap(), "TimerFired"), 0);
    handle(&site).repair().await.unwrap();
    until(&handle(&site), fired).await;
    handle(&site).repair().await.unwrap();
    times_out_once(&site).await.kill().await;
}

/// The timer row is gone because it has fired; history still says so.
#[tokio::test]
async fn repair_makes_a_lost_task_row_again_and_fires_nothing() {
    let mut site = fired_unseen().await;
    let rows = site.rows("approval").await;
    assert_eq!((rows.due.len(), rows.tasks.len()), (0, 1));
    site.write("approval", rows.tasks.iter().map(deleted_task).collect()).await;
    site.reopen().await;
    let shown = handle(&site).waits().await.unwrap();
    assert_eq!(
        (shown.len(), shown[0].until),
        (1, Some(site.now())),
        "the deadline that has passed"
    );
    handle(&site).repair().await.unwrap();
    site.crash();
    let repaired = site.rows("approval").await;
    assert_eq!((repaired.tasks, repaired.due.len()), (rows.tasks, 0));
    site.reopen().await;
    times_out_once(&site).await.kill().await;
}

#[tokio::test]
async fn repair_of_a_healthy_run_changes_nothing() {
    let mut site = waiting().await;
    let before = site.rows("approval").await;
    site.reopen().await;
    let history = handle(&site).history().await.unwrap();
    for _ in 0..3 {
        handle(&site).repair().await.unwrap();
    }
    assert_eq!(handle(&site).history().await.unwrap(), history);
    site.crash();
    let after = site.rows("approval").await;
    assert_eq!((after.due, after.waits, after.tasks), (before.due, before.waits, before.tasks));
    site.reopen().await;
    site.pass(minutes(5));
    until(&handle(&site), fired).await;
    times_out_once(&site).await.kill().await;
}

/// Without a repair request: the engine itself finds runs that nothing would resume.
#[tokio::test]
async fn the_sweeper_finds_a_run_that_has_lost_all_its_rows() {
    let mut site = waiting().await;
    let rows = site.rows("approval").await;
    let lost = rows.due.iter().map(deleted_due).chain(rows.waits.iter().map(deleted_wait));
    site.write("approval", lost.collect()).await;
    site.pass(days(1));
    site.reopen().await;
    site.pass(Limits::default().sweep_interval);
    until(&handle(&site), fired).await;
    times_out_once(&site).await.kill().await;
}

#[tokio::test]
async fn the_sweeper_finds_a_run_that_has_lost_its_task() {
    let mut site = fired_unseen().await;
    let rows = site.rows("approval").await;
    let lost = rows.tasks.iter().map(deleted_task).chain(rows.waits.iter().map(deleted_wait));
    site.write("approval", lost.collect()).await;
    site.reopen().await;
    site.pass(Limits::default().sweep_interval);
    times_out_once(&site).await.kill().await;
}

/// A row says that the timer is due, and so does the clock; the log does not.
#[tokio::test]
async fn a_timer_row_that_lies_fires_nothing() {
    let mut site = waiting().await;
    let mut row = site.rows("approval").await.due.remove(0);
    row.due = site.now();
    site.write("approval", vec![Write::PutDue(row)]).await;
    site.reopen().await;
    // The engine has looked at the row when it has removed it.
    loop {
        site.crash();
        let due = site.rows("approval").await.due;
        site.reopen().await;
        if due.len() == 1 {
            assert_eq!(due[0].due, site.now().saturating_add(minutes(5)));
            break;
        }
    }
    assert_eq!(count(&handle(&site).history().await.unwrap(), "TimerFired"), 0);
    site.pass(minutes(5));
    until(&handle(&site), fired).await;
    times_out_once(&site).await.kill().await;
}

/// Waits in every way, as its input says.
#[derive(Default)]
struct Scene {
    ready: bool,
}

#[activity]
async fn nobody_does_this() {}

#[workflow]
impl Scene {
    #[run]
    async fn run(ctx: &Context<Self>, scene: String) -> abide::Result<()> {
        let ready = condition!("ready", |it| it.ready);
        match scene.as_str() {
            "sleep" => ctx.sleep(hours(1)).await,
            "signal" => ctx.receive(Self::GO).await,
            "signal in time" => ctx.receive(Self::GO).timeout(hours(1)).await.map(drop),
            "condition" => ctx.wait_until(ready).await,
            "condition in time" => ctx.wait_until(ready).timeout(hours(1)).await.map(drop),
            "activity" => ctx.activity(nobody_does_this, ()).await,
            "child" => ctx.child::<Scene>("of-scene", "sleep").await,
            _ => Ok(()),
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
async fn every_open_run_says_what_it_does_and_what_will_make_it_go_on() {
    use ResumeSource::{Activity, Child, Due, Input, Operator, Task};
    let site = Site::open().await;
    let worker = site.work(|worker| worker.workflow::<Scene>());
    let scenes = [
        ("sleep", Liveness::TimerPending, vec![Due]),
        ("signal", Liveness::InputPending, vec![Input]),
        ("signal in time", Liveness::TimerPending, vec![Due, Input]),
        ("condition", Liveness::InputPending, vec![Input]),
        ("condition in time", Liveness::TimerPending, vec![Due, Input]),
        ("activity", Liveness::ActivityPending, vec![Activity]),
        ("child", Liveness::ChildPending, vec![Child]),
    ];
    for (scene, liveness, sources) in scenes {
        let id = scene.replace(' ', "-");
        let run = site.client().start::<Scene>(id.as_str(), scene.to_owned()).await.unwrap();
        until(&run, |fact| matches!(fact, Fact::TaskCompleted(_))).await;
        let shown = run.describe().await.unwrap();
        assert_eq!((shown.liveness, shown.resume_sources), (liveness, sources), "{scene}");
    }
    let client = site.client();
    let shown = async |workflow: &str| {
        let shown = client.handle::<Scene>(workflow).describe().await.unwrap();
        (shown.liveness, shown.resume_sources)
    };
    client.handle::<Scene>("sleep").pause("to look at it").await.unwrap();
    assert_eq!(shown("sleep").await, (Liveness::Paused, vec![Due, Operator]));
    worker.kill().await;

    let start = |id: &'static str| client.start::<Scene>(id, "sleep");
    start("waiting").await.unwrap();
    assert_eq!(shown("waiting").await, (Liveness::TaskWaiting, vec![Task]));
    start("delayed").delay(hours(1)).await.unwrap();
    assert_eq!(shown("delayed").await, (Liveness::StartDelayed, vec![Due]));
    client.handle::<Scene>("waiting").terminate("enough").await.unwrap();
    assert_eq!(shown("waiting").await, (Liveness::Closed, vec![]));
}
