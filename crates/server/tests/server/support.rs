//! A server on free ports, clients of it, and a worker in miniature that runs interpreted programs.

use std::{collections::BTreeMap, net::Ipv4Addr, sync::Arc, time::Duration};

use abide_core::{
    codec,
    dispatch::{Dispatch, QueueKey, WorkKind, Worker},
    event::{Event, Fact, RunSpec, UpdateAdmitted},
    ids::{RunId, WorkflowKey},
    operation::{
        AwaitClose, CallError, Closed, ConflictPolicy, Count, CountRuns, CreateSearchAttribute,
        Describe, History, RunTarget, Start, Started,
    },
    payload::Payload,
    replay::Replay,
    report::{Report, TaskCompletion, TaskToken},
    run::{Close, Description, GivenTask, Resolution},
    search::AttributeKind,
    time::Timestamp,
};
use abide_engine::{
    Engine, Options,
    clock::{Clock, ManualClock},
};
use abide_program::{Activity, Node, Program};
use abide_proto::generated::abide_client::AbideClient;
use abide_sdk::transport::ask;
use abide_sdk::{
    grpc::{GrpcOptions, GrpcTransport},
    transport::{Given, Session, SessionSender, Transport},
};
use abide_server::{Config, NodeConfig, Secret, Server};
use abide_store::memory::MemoryStore;
use bytes::Bytes;
use tokio::task::JoinHandle;
use tonic::transport::Channel;

pub(crate) type Programs = Arc<BTreeMap<String, Program>>;

/// A configuration with free ports.
pub(crate) fn config() -> Config {
    let free = (Ipv4Addr::LOCALHOST, 0).into();
    Config { grpc_address: free, http_address: free, ..Config::default() }
}

/// A node of a cluster: all of them share this secret.
pub(crate) fn node_config(name: &str) -> NodeConfig {
    NodeConfig {
        name: Some(name.into()),
        lease_ms: Some(1_000),
        secret: Some(Secret("a secret of thirty-two bytes or more".into())),
        ..NodeConfig::default()
    }
}

/// A server on a store in memory, whose time stands still.
pub(crate) async fn server(config: Config) -> Server {
    server_with_clock(config).await.0
}

/// A server on a store in memory, and the clock that it goes by.
pub(crate) async fn server_with_clock(config: Config) -> (Server, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new(Timestamp::from_unix_millis(1_800_000_000_000)));
    let options = Options { clock: Arc::clone(&clock) as Arc<dyn Clock>, ..Options::default() };
    let engine = Engine::start(Arc::new(MemoryStore::default()), options);
    let server = Server::serve(config, Arc::new(engine)).await.expect("it starts");
    server.ready().await;
    (server, clock)
}

pub(crate) fn options(server: &Server) -> GrpcOptions {
    GrpcOptions::new(format!("http://{}", server.grpc_address()))
}

pub(crate) fn transport(server: &Server) -> Arc<GrpcTransport> {
    Arc::new(GrpcTransport::new(&options(server)).expect("a good address"))
}

pub(crate) async fn channel(server: &Server) -> Channel {
    let endpoint = Channel::from_shared(format!("http://{}", server.grpc_address()));
    endpoint.expect("a good address").connect().await.expect("the server listens")
}

/// A client as one in another language would be.
pub(crate) async fn client(server: &Server) -> AbideClient<Channel> {
    AbideClient::new(channel(server).await)
}

pub(crate) fn workflow(id: &str) -> WorkflowKey {
    WorkflowKey { namespace: "default".into(), workflow: id.into() }
}

pub(crate) fn target(id: &str) -> RunTarget {
    RunTarget { workflow: workflow(id), run: None }
}

/// A start of the workflow `id`, in queue `queue`.
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

pub(crate) async fn start(transport: &dyn Transport, id: &str, workflow_type: &str) -> RunId {
    let call = start_call(id, workflow_type);
    match ask(transport, call).await {
        Ok(Started { run, .. }) => run,
        other => panic!("not started: {other:?}"),
    }
}

pub(crate) async fn closed(transport: &dyn Transport, id: &str) -> Close {
    match ask(transport, AwaitClose { target: target(id) }).await {
        Ok(Closed { how, .. }) => how,
        other => panic!("not closed: {other:?}"),
    }
}

/// How many runs there are.
pub(crate) async fn count(transport: &dyn Transport) -> Result<u64, CallError> {
    ask(transport, CountRuns { filter: Default::default() }).await.map(|Count(count)| count)
}

pub(crate) async fn describe(
    transport: &dyn Transport,
    target: RunTarget,
) -> Result<Description, CallError> {
    ask(transport, Describe { target }).await.map(|shown| *shown)
}

pub(crate) fn worker(session: &str) -> Worker {
    Worker { session: session.into(), identity: session.into(), build: Some("build".into()) }
}

pub(crate) fn queue(kind: WorkKind) -> QueueKey {
    QueueKey { namespace: "default".into(), queue: "queue".into(), kind }
}

/// A session that takes work of both kinds.
pub(crate) async fn connect(transport: &dyn Transport, name: &str) -> Box<dyn Session> {
    let session = transport.connect(worker(name), Vec::new()).await.expect("the worker connects");
    for kind in [WorkKind::Workflow, WorkKind::Activity] {
        session.sender().credit(queue(kind), 1000);
    }
    session
}

/// What the session is given next.
pub(crate) async fn next_work(session: &mut Box<dyn Session>) -> Dispatch {
    loop {
        match session.next().await.expect("the stream goes on") {
            Given::Work(dispatch) => return dispatch,
            Given::PresentAttempts(_) => {}
        }
    }
}

pub(crate) fn programs<const N: usize>(programs: [(&str, Vec<Node>); N]) -> Programs {
    let named = programs.into_iter().map(|(name, steps)| (name.into(), Program::new(steps)));
    Arc::new(named.collect())
}

pub(crate) fn activity(activity_type: &str) -> Node {
    Node::Activity(Activity {
        activity_type: activity_type.into(),
        start_to_close: Some(Duration::from_secs(60)),
        ..Activity::default()
    })
}

/// A worker that runs until it is aborted.
pub(crate) async fn spawn_worker(
    transport: &Arc<GrpcTransport>,
    name: &str,
    programs: &Programs,
) -> JoinHandle<()> {
    let session = connect(&**transport, name).await;
    tokio::spawn(work(Arc::clone(transport), session, Arc::clone(programs)))
}

async fn work(transport: Arc<GrpcTransport>, mut session: Box<dyn Session>, programs: Programs) {
    let sender = session.sender();
    while let Some(given) = session.next().await {
        let Given::Work(dispatch) = given else { continue };
        match dispatch {
            Dispatch::Workflow { token, given, recent, .. } => {
                let history = whole_history(&*transport, &token, recent, &given).await;
                run_task(&*sender, token, given, history, &programs).await;
            }
            Dispatch::Activity { token, .. } => {
                let result = Resolution::Completed(vec![Payload::new("done")]);
                // A refusal shows in the run, which the tests look at.
                drop(sender.report(Report::ResolveActivity(token, result)).await);
            }
            Dispatch::Query { token, query, .. } => {
                let answer = Report::AnswerQuery(token, Ok(query.input));
                drop(sender.report(answer).await);
            }
        }
    }
}

/// The events of the log that the task builds on.
async fn whole_history(
    transport: &dyn Transport,
    token: &TaskToken,
    recent: Option<Vec<Bytes>>,
    given: &GivenTask,
) -> Vec<Event> {
    let rows = match recent.filter(|_| given.previous == 0) {
        Some(rows) => rows,
        None => {
            let target = RunTarget { workflow: token.workflow.clone(), run: Some(token.run) };
            let request = History { target, from: 0, follow: None };
            ask(transport, request).await.expect("the history is there").rows
        }
    };
    decode(rows)
}

pub(crate) fn decode(rows: Vec<Bytes>) -> Vec<Event> {
    let decode = |row| codec::decode_events(row).expect("a good row");
    rows.into_iter().flat_map(decode).collect()
}

async fn run_task(
    sender: &dyn SessionSender,
    token: TaskToken,
    given: GivenTask,
    mut events: Vec<Event>,
    programs: &Programs,
) {
    events.extend(given.tail);
    let Fact::RunStarted(started) = &events[0].body.fact else {
        panic!("a history begins with RunStarted");
    };
    let mut replay = Replay::new(programs[&started.spec.workflow_type].code());
    replay.feed(events).expect("the history fits");
    let admitted = |(update, request)| UpdateAdmitted { update, request };
    let updates: Vec<_> = given.updates.into_iter().map(admitted).collect();
    let turn = replay.turn(&updates).expect("the code fits");
    let completion = TaskCompletion {
        commands: turn.commands,
        flags: turn.flags,
        eager_activities: 1,
        ..TaskCompletion::default()
    };
    // A refusal shows in the run, which the tests look at.
    drop(sender.report(Report::CompleteTask(token, Box::new(completion))).await);
}

/// A run whose description is as large as limits allow, above 120 kB.
pub(crate) async fn described_run(transport: &dyn Transport) {
    let mut call = start_call("hello", "hello");
    let large = Payload::new(vec![7; 60 << 10]);
    call.spec.memo.insert("large".into(), large);
    let create = CreateSearchAttribute {
        namespace: call.workflow.namespace.clone(),
        name: "large".into(),
        kind: AttributeKind::Text,
    };
    ask(transport, create).await.expect("it is registered");
    let text = Payload::new(format!("\"{}\"", "x".repeat(60 << 10)));
    call.spec.search_attributes.insert("large".into(), text);
    ask(transport, call).await.expect("it is started");
}
