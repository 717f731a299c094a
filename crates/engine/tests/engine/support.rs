//! A minimal worker that runs interpreted programs, and helpers for calls to an engine.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use abide_core::{
    codec::decode_events,
    dispatch::{Dispatch, QueueKey, WorkKind, Worker},
    event::{Event, RunSpec, UpdateAdmitted},
    ids::{RunId, WorkflowKey},
    operation::{
        AwaitClose, CallError, Caller, ConflictPolicy, History, ListWaits, Operation, RunOperation,
        RunTarget, Start,
    },
    replay::Replay,
    report::{Report, TaskCompletion},
    run::{Close, Resolution},
};
use abide_engine::{Engine, Given, Session};
use abide_program::{Activity, Node, Program};

pub(crate) type Programs = Arc<BTreeMap<String, Program>>;

pub(crate) fn workflow(id: &str) -> WorkflowKey {
    WorkflowKey { namespace: "default".into(), workflow: id.into() }
}

pub(crate) fn target(id: &str) -> RunTarget {
    RunTarget { workflow: workflow(id), run: None }
}

pub(crate) fn start_call(id: &str, workflow_type: &str) -> Start {
    Start {
        workflow: workflow(id),
        spec: RunSpec {
            workflow_type: workflow_type.into(),
            queue: "queue".into(),
            ..RunSpec::default()
        },
        identity: "test".into(),
        key: Some(id.into()),
        conflict: ConflictPolicy::Reject,
        reuse: Default::default(),
        begin: Default::default(),
        signal: None,
        update: None,
    }
}

pub(crate) async fn start(engine: &Engine, id: &str, workflow_type: &str) -> RunId {
    let call = start_call(id, workflow_type);
    ask(engine, call).await.expect("it is started").run
}

pub(crate) async fn closed(engine: &Engine, id: &str) -> (RunId, Close) {
    let closed = ask(engine, AwaitClose { target: target(id) }).await.expect("it is closed");
    (closed.run, closed.how)
}

pub(crate) fn connect(engine: &Engine, session: &str) -> Session {
    let worker =
        Worker { session: session.into(), identity: session.into(), build: Some("build".into()) };
    let session = engine.connect(worker, None);
    for kind in [WorkKind::Workflow, WorkKind::Activity] {
        session.credit(queue(kind), 1000);
    }
    session
}

pub(crate) fn queue(kind: WorkKind) -> QueueKey {
    QueueKey { namespace: "default".into(), queue: "queue".into(), kind }
}

/// Performs an operation.
pub(crate) async fn ask<O: Operation>(
    engine: &Engine,
    operation: O,
) -> Result<O::Answer, CallError> {
    engine.ask(&Caller::TRUSTED, operation.into()).await.and_then(O::answer)
}

/// Performs an operation, if this node serves the run.
pub(crate) async fn ask_here<O: Operation + Into<RunOperation>>(
    engine: &Engine,
    operation: O,
) -> Result<O::Answer, CallError> {
    engine.ask_here(Box::new(operation.into())).await.and_then(O::answer)
}

/// Asks for the first waits.
pub(crate) fn waits() -> ListWaits {
    ListWaits { filter: Default::default(), limit: Some(10) }
}

/// Retries until a node serves the run, as clients and workers do.
pub(crate) async fn repeat<T, F>(engine: &Engine, attempt: impl Fn() -> F) -> Result<T, CallError>
where
    F: Future<Output = Result<T, CallError>>,
{
    loop {
        match attempt().await {
            Err(CallError::NotServed | CallError::Reset | CallError::Unavailable(_))
                if !engine.stopping() =>
            {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            answer => return answer,
        }
    }
}

/// All events of a run.
pub(crate) async fn history(engine: &Engine, workflow: &WorkflowKey, run: RunId) -> Vec<Event> {
    let target = RunTarget { workflow: workflow.clone(), run: Some(run) };
    let (mut from, mut events) = (0, Vec::new());
    loop {
        let request = History { target: target.clone(), from, follow: None };
        let page = match ask(engine, request).await {
            // Its shard is being handed over to another node.
            Err(CallError::NotServed | CallError::Reset | CallError::Unavailable(_)) => {
                tokio::time::sleep(Duration::from_millis(5)).await;
                continue;
            }
            page => page.expect("the history is there"),
        };
        for row in page.rows {
            events.extend(decode_events(row).expect("it can be read"));
        }
        if !page.more {
            return events;
        }
        from = page.next;
    }
}

/// Runs tasks until it is cancelled, and grants one credit for each completed task.
pub(crate) async fn work(engine: Arc<Engine>, mut session: Session, programs: Programs) {
    while let Some(given) = session.next().await {
        let Given::Work(dispatch) = given else { continue };
        let kind = match &dispatch {
            Dispatch::Workflow { .. } | Dispatch::Query { .. } => WorkKind::Workflow,
            Dispatch::Activity { .. } => WorkKind::Activity,
        };
        let eager = matches!(dispatch, Dispatch::Activity { eager: true, .. });
        perform(&engine, dispatch, &programs).await;
        if !eager {
            session.credit(queue(kind), 1);
        }
    }
}

async fn perform(engine: &Engine, dispatch: Dispatch, programs: &Programs) {
    match dispatch {
        Dispatch::Workflow { token, given, last_event, .. } => {
            let mut events = history(engine, &token.workflow, token.run).await;
            events.retain(|event| event.number <= last_event);
            events.extend(given.tail);
            let abide_core::event::Fact::RunStarted(started) = &events[0].body.fact else {
                panic!("a history begins with RunStarted");
            };
            let mut replay = Replay::new(programs[&started.spec.workflow_type].code());
            replay.feed(events).expect("the history fits");
            let updates: Vec<_> = given
                .updates
                .into_iter()
                .map(|(update, request)| UpdateAdmitted { update, request })
                .collect();
            let completion = replay.turn(&updates).expect("the code fits");
            let completion = TaskCompletion {
                commands: completion.commands,
                flags: completion.flags,
                eager_activities: 1,
                ..TaskCompletion::default()
            };
            let report = Report::CompleteTask(token, Box::new(completion));
            // A refusal shows in the run's history, which the tests check.
            drop(repeat(engine, || engine.report(report.clone())).await);
        }
        Dispatch::Activity { token, .. } => {
            let report = Report::ResolveActivity(token, Resolution::Completed(Vec::new()));
            // A refusal shows in the run's history, which the tests check.
            drop(repeat(engine, || engine.report(report.clone())).await);
        }
        Dispatch::Query { .. } => {}
    }
}

pub(crate) fn programs(programs: impl IntoIterator<Item = (&'static str, Vec<Node>)>) -> Programs {
    Arc::new(programs.into_iter().map(|(name, steps)| (name.into(), Program::new(steps))).collect())
}

pub(crate) fn activity(activity_type: &str) -> Node {
    Node::Activity(Activity {
        activity_type: activity_type.into(),
        start_to_close: Some(Duration::from_secs(10)),
        ..Activity::default()
    })
}

/// Follows the list of waits until it has `count` entries. The list is in the same transaction as the
/// log, so this returns once the run has reached its wait.
pub(crate) async fn wait_for_waits(engine: &Engine, count: usize) {
    while ask(engine, waits()).await.expect("the list").rows.len() != count {
        tokio::task::yield_now().await;
    }
}
