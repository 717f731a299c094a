//! The log is the source of truth: lost rows of tasks, due times and waits are rebuilt from it, and their
//! effects still happen exactly once.

use std::{sync::Arc, time::Duration};

use abide_core::{
    event::Condition,
    ids::{RunId, ShardId},
    limits::Limits,
    list::WaitRow,
    operation::{CallError, Describe, Done, ListRuns, ListWaits, Pause, Repair},
    run::{Close, Description, Liveness, ResumeSource},
    time::Timestamp,
};
use abide_engine::{Engine, Options, clock::ManualClock};
use abide_program::{Node, OnCancel, Program};
use abide_store::{Batch, Store, WaitFilter, Write, memory::MemoryStore, rows::LogRow};
use tokio::task::JoinHandle;

use crate::support::{
    Programs, ask, closed, connect, history, programs, start, target, wait_for_waits, work,
    workflow,
};

const HOUR: Duration = Duration::from_secs(3600);

/// A store that outlives its engines, and a clock that only the test advances.
struct World {
    store: Arc<dyn Store>,
    clock: Arc<ManualClock>,
    programs: Programs,
}

impl World {
    fn new(programs: Programs) -> Self {
        let begin = Timestamp::from_unix_millis(1_800_000_000_000);
        let clock = Arc::new(ManualClock::new(begin));
        Self { store: Arc::new(MemoryStore::default()), clock, programs }
    }

    fn engine(&self) -> Arc<Engine> {
        let options = Options { clock: self.clock.clone(), ..Options::default() };
        Arc::new(Engine::start(Arc::clone(&self.store), options))
    }

    fn worker(&self, engine: &Arc<Engine>) -> JoinHandle<()> {
        let session = connect(engine, "worker");
        tokio::spawn(work(Arc::clone(engine), session, Arc::clone(&self.programs)))
    }

    fn pass(&self, engine: &Engine, time: Duration) {
        self.clock.move_to(engine.now().saturating_add(time));
    }

    /// Deletes all rows of the run except the run row and the log.
    async fn lose_rows(&self, id: &str, run: RunId) {
        self.lose(id, run, |_| true).await;
    }

    /// Deletes the selected rows of the run.
    async fn lose(&self, id: &str, run: RunId, chosen: fn(&Write) -> bool) {
        let shard = workflow(id).slot().shard();
        let tasks = self.store.tasks(shard, None, 100).await.expect("tasks");
        let due = self.store.due(shard, None, Timestamp::NEVER, 100).await.expect("due times");
        let tasks = tasks.into_iter().filter(|task| task.key.run == run);
        let due = due.into_iter().filter(|due| due.run == run);
        let waits = self.waits_of(shard, run).await.into_iter();
        let writes: Vec<_> = tasks
            .map(|task| Write::DeleteTask(task.key))
            .chain(due.map(|due| Write::DeleteDue(due.key())))
            .chain(waits.map(|wait| Write::DeleteWait { run, wait: wait.wait }))
            .filter(chosen)
            .collect();
        assert!(!writes.is_empty(), "there is nothing to lose");
        let epoch = self.store.shard(shard).await.expect("the shard").epoch;
        self.store.commit(Batch { shard, epoch, writes }).await.expect("they are deleted");
    }

    async fn waits_of(&self, shard: ShardId, run: RunId) -> Vec<WaitRow> {
        let filter = WaitFilter { run: Some((shard, run)), ..WaitFilter::default() };
        let rows = self.store.waits(filter, 100).await.expect("waits");
        rows.into_iter().map(|(_, row)| row).collect()
    }
}

/// Waits concurrently for a sleep of one hour, a signal within two hours and a condition within three.
fn patient() -> Node {
    let condition = Condition { key: Some("paid".into()), fingerprint: None };
    Node::Join(vec![
        Node::Sleep(HOUR),
        Node::signal_within("go", 2 * HOUR),
        until(condition, Some(3 * HOUR)),
    ])
}

fn until(condition: Condition, timeout: Option<Duration>) -> Node {
    Node::WaitUntil { condition, signal: "paid".into(), at_least: 1, timeout }
}

async fn stop(engine: &Engine, worker: JoinHandle<()>) {
    worker.abort();
    drop(worker.await);
    engine.shutdown().await;
}

/// Only what needs the damaged run fails, and operators see it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_whose_log_is_damaged_is_shown_and_others_are_served() {
    let world = World::new(programs([("hello", vec![])]));
    let engine = world.engine();
    let run = start(&engine, "damaged", "hello").await;
    engine.shutdown().await;
    let shard = workflow("damaged").slot().shard();
    let row = LogRow {
        run,
        sequence: 2,
        first_event: 3,
        events: b"no event"[..].into(),
        notes: b""[..].into(),
    };
    let epoch = world.store.shard(shard).await.expect("the shard").epoch;
    let batch = Batch { shard, epoch, writes: vec![Write::AppendLog(row)] };
    world.store.commit(batch).await.expect("the log is damaged");

    let engine = world.engine();
    let refused = ask(&engine, Describe { target: target("damaged") }).await;
    assert!(matches!(refused, Err(CallError::Unreadable { .. })), "{refused:?}");
    let unreadable = engine.health().unreadable.expect("it is shown");
    assert!(unreadable.reason.contains(&run.to_string()), "{unreadable:?}");
    assert!(engine.figures().unreadable > 0);
    let worker = world.worker(&engine);
    start(&engine, "whole", "hello").await;
    assert_eq!(closed(&engine, "whole").await.1, Close::Completed);
    stop(&engine, worker).await;
}

/// How often an event of this name is in the history.
async fn count(engine: &Engine, id: &str, run: RunId, name: &str) -> usize {
    let history = history(engine, &workflow(id), run).await;
    history.iter().filter(|event| event.body.fact.name() == name).count()
}

/// Passes all deadlines one after the other, and checks that each timer fired once.
async fn fires_once(world: &World, engine: &Engine, run: RunId) {
    for left in [2, 1, 0] {
        world.pass(engine, HOUR);
        wait_for_waits(engine, left).await;
    }
    assert_eq!(closed(engine, "patient").await, (run, Close::Completed));
    assert_eq!(count(engine, "patient", run, "TimerFired").await, 3);
    assert_eq!(count(engine, "patient", run, "WaitTimedOut").await, 1);
}

#[tokio::test]
async fn repair_brings_back_lost_rows_and_each_timer_fires_once() {
    let world = World::new(programs([("patient", vec![patient()])]));
    let engine = world.engine();
    let worker = world.worker(&engine);
    let run = start(&engine, "patient", "patient").await;
    wait_for_waits(&engine, 3).await;
    let shard = workflow("patient").slot().shard();
    let before = world.waits_of(shard, run).await;

    world.lose_rows("patient", run).await;
    assert!(world.waits_of(shard, run).await.is_empty());
    for _ in 0..2 {
        let repair = Repair { target: target("patient"), identity: "operator".into() };
        assert!(matches!(ask(&engine, repair).await, Ok(Done { .. })));
        assert_eq!(world.waits_of(shard, run).await, before, "the list is as it was");
    }
    fires_once(&world, &engine, run).await;
    stop(&engine, worker).await;
}

#[tokio::test]
async fn the_sweeper_brings_back_rows_that_were_lost_while_the_engine_was_down() {
    let world = World::new(programs([("patient", vec![patient()])]));
    let engine = world.engine();
    let worker = world.worker(&engine);
    let run = start(&engine, "patient", "patient").await;
    wait_for_waits(&engine, 3).await;
    stop(&engine, worker).await;
    let shard = workflow("patient").slot().shard();
    let before = world.waits_of(shard, run).await;
    world.lose_rows("patient", run).await;

    let engine = world.engine();
    engine.ready().await;
    let worker = world.worker(&engine);
    assert!(world.waits_of(shard, run).await.is_empty());
    world.pass(&engine, Limits::default().sweep_interval);
    wait_for_waits(&engine, 3).await;
    assert_eq!(world.waits_of(shard, run).await, before, "the list is as it was");
    fires_once(&world, &engine, run).await;
    stop(&engine, worker).await;
}

/// The list of waits contains the due time, but only the due index wakes the run.
#[tokio::test]
async fn the_sweeper_brings_back_due_times_that_were_lost_alone() {
    let world = World::new(programs([("patient", vec![patient()])]));
    let engine = world.engine();
    let worker = world.worker(&engine);
    let run = start(&engine, "patient", "patient").await;
    wait_for_waits(&engine, 3).await;
    stop(&engine, worker).await;
    world.lose("patient", run, |write| matches!(write, Write::DeleteDue(_))).await;

    let engine = world.engine();
    engine.ready().await;
    let worker = world.worker(&engine);
    world.pass(&engine, Limits::default().sweep_interval);
    let shard = workflow("patient").slot().shard();
    while world.store.due(shard, None, Timestamp::NEVER, 10).await.expect("due times").len() < 3 {
        tokio::task::yield_now().await;
    }
    fires_once(&world, &engine, run).await;
    stop(&engine, worker).await;
}

#[tokio::test]
async fn a_due_time_that_was_lost_and_has_passed_fires_once_when_the_run_is_found() {
    let world = World::new(programs([("sleeper", vec![Node::Sleep(HOUR)])]));
    let engine = world.engine();
    let worker = world.worker(&engine);
    let run = start(&engine, "sleeper", "sleeper").await;
    wait_for_waits(&engine, 1).await;
    stop(&engine, worker).await;
    world.lose_rows("sleeper", run).await;
    world.clock.move_to(engine.now().saturating_add(2 * HOUR));

    let engine = world.engine();
    engine.ready().await;
    let worker = world.worker(&engine);
    world.pass(&engine, Limits::default().sweep_interval);
    assert_eq!(closed(&engine, "sleeper").await, (run, Close::Completed));
    assert_eq!(count(&engine, "sleeper", run, "TimerFired").await, 1);
    stop(&engine, worker).await;
}

#[tokio::test]
async fn a_lost_task_is_found_and_done_once() {
    let world = World::new(programs([("hello", vec![Node::SideEffect])]));
    let engine = world.engine();
    let run = start(&engine, "hello", "hello").await;
    engine.shutdown().await;
    world.lose_rows("hello", run).await;

    let engine = world.engine();
    engine.ready().await;
    let worker = world.worker(&engine);
    let shown = ask(&engine, Describe { target: target("hello") }).await.expect("it is there");
    assert_eq!(shown.liveness, Liveness::TaskWaiting);
    world.pass(&engine, Limits::default().sweep_interval);
    assert_eq!(closed(&engine, "hello").await, (run, Close::Completed));
    assert_eq!(count(&engine, "hello", run, "TaskScheduled").await, 1);
    stop(&engine, worker).await;
}

/// Rows may be as large as the details of a wait, so an answer is limited by bytes, too.
#[tokio::test]
async fn a_page_of_large_waits_ends_early_and_says_so() {
    let world = World::new(programs([("sleeper", vec![Node::Sleep(HOUR)])]));
    let engine = world.engine();
    let worker = world.worker(&engine);
    let run = start(&engine, "sleeper", "sleeper").await;
    wait_for_waits(&engine, 1).await;
    let shard = workflow("sleeper").slot().shard();
    let row = world.waits_of(shard, run).await.remove(0);
    let large = vec![0; Limits::default().page_bytes / 2].into();
    let large = WaitRow { details: large, ..row };
    let named = |name: &'static [u8]| WaitRow { wait: name.into(), ..large.clone() };
    let rows = [&b"x"[..], b"y", b"z"].map(named);
    let epoch = world.store.shard(shard).await.expect("the shard").epoch;
    let writes = rows.iter().cloned().map(Write::PutWait).collect();
    world.store.commit(Batch { shard, epoch, writes }).await.expect("they are written");

    let mut filter = WaitFilter { run: Some((shard, run)), ..WaitFilter::default() };
    let mut pages = Vec::new();
    loop {
        let listed = ListWaits { filter: filter.clone(), limit: Some(100) };
        let page = ask(&engine, listed).await.expect("a page");
        filter.after = page.rows.last().map(WaitRow::position);
        pages.push(page.rows.len());
        if !page.more {
            break;
        }
    }
    assert_eq!(pages, [2, 1, 1], "the small one fits beside a large one");
    stop(&engine, worker).await;
}

/// The description of the run once its code is idle.
async fn settled(engine: &Engine, id: &str) -> Description {
    loop {
        let shown = ask(engine, Describe { target: target(id) }).await.expect("it is there");
        if !matches!(shown.liveness, Liveness::TaskWaiting | Liveness::TaskRunning) {
            return *shown;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn every_open_run_says_what_it_is_doing_and_what_will_resume_it() {
    use ResumeSource::{Child, Due, Input, Operator, Task};
    let condition = || Condition { key: Some("paid".into()), fingerprint: None };
    let expected = [
        ("sleeper", Node::Sleep(HOUR), Liveness::TimerPending, vec![Due]),
        ("signal", Node::signal("go"), Liveness::InputPending, vec![Input]),
        ("deadline", Node::signal_within("go", HOUR), Liveness::TimerPending, vec![Due, Input]),
        ("condition", until(condition(), None), Liveness::InputPending, vec![Input]),
        ("parent", Node::child("signal"), Liveness::ChildPending, vec![Child]),
    ];
    let code =
        |node: &Node| Program { on_cancel: OnCancel::Ignore, ..Program::new([node.clone()]) };
    let codes = expected.iter().map(|(name, node, ..)| ((*name).to_owned(), code(node)));
    let world = World::new(Arc::new(codes.collect()));
    let engine = world.engine();
    let worker = world.worker(&engine);
    for (name, _, liveness, sources) in &expected {
        start(&engine, name, name).await;
        let shown = settled(&engine, name).await;
        assert_eq!((shown.liveness, &shown.resume_sources), (*liveness, sources), "{name}");
    }
    let pause =
        Pause { target: target("signal"), reason: String::new(), identity: "me".into(), key: None };
    ask(&engine, pause).await.expect("it is paused");
    let shown = ask(&engine, Describe { target: target("signal") }).await.expect("it is there");
    assert_eq!((shown.liveness, shown.resume_sources), (Liveness::Paused, vec![Input, Operator]));
    stop(&engine, worker).await;

    let engine = world.engine();
    start(&engine, "new", "signal").await;
    let shown = ask(&engine, Describe { target: target("new") }).await.expect("it is there");
    assert_eq!((shown.liveness, shown.resume_sources), (Liveness::TaskWaiting, vec![Task]));
    let runs = ListRuns { filter: Default::default(), limit: None };
    for row in ask(&engine, runs).await.expect("all runs").rows {
        let shown = ask(&engine, Describe { target: target(row.workflow.as_str()) })
            .await
            .expect("it is there");
        assert!(!shown.resume_sources.is_empty(), "{} would never go on", row.workflow);
    }
    engine.shutdown().await;
}
