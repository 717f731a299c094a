//! What one client or worker cannot do to the runs of another.

use std::{collections::BTreeSet, sync::Arc};

use crate::support::count;
use crate::support::describe;
use abide_core::{
    command::{Ask, Command},
    dispatch::{Dispatch, WorkKind, Worker},
    event::{
        ActivitySpec, CancelMode, DeliveryFailure, Fact, RunTerminated, SignalReceived, Target,
    },
    ids::WorkflowKey,
    operation::{AnyOperation, AwaitClose, CallError, History, RunTarget, Signal, Terminate},
    report::{Report, TaskCompletion, TaskToken},
};
use abide_proto::{error, generated as wire};
use abide_sdk::transport::ask;
use abide_sdk::transport::{Session, Transport};
use abide_server::{Config, NamespaceConfig, Server};
use abide_store::memory::MemoryStore;
use prost::Message as _;

use crate::support::{
    client, config, decode, next_work, queue, server, start, start_call, target, transport,
};

/// A server with the namespaces `default` and `other`, of which `other` accepts commands from these.
async fn two_namespaces(accepts_from: &[&str]) -> Server {
    let namespaces = BTreeSet::from(["default".to_owned(), "other".to_owned()]);
    let accepts_from = accepts_from.iter().map(|name| (*name).to_owned()).collect();
    let other = ("other".to_owned(), NamespaceConfig { accepts_from });
    let config = Config { namespaces, namespace: [other].into(), ..config() };
    Server::start(config, Arc::new(MemoryStore::default())).await.expect("it starts")
}

fn in_namespace(namespace: &str, id: &str) -> WorkflowKey {
    WorkflowKey { namespace: namespace.into(), workflow: id.into() }
}

fn signal(target: RunTarget) -> Signal {
    let signal = SignalReceived { name: "go".into(), ..SignalReceived::default() };
    Signal { target, signal, extension: Default::default() }
}

fn terminate(target: RunTarget) -> Terminate {
    let RunTerminated { reason, identity, details, key, .. } = RunTerminated::default();
    Terminate { target, reason, identity, details, key }
}

/// A session of its own secret, which takes work of one queue of `default`.
async fn connect(transport: &dyn Transport, session: &str) -> Box<dyn Session> {
    let worker =
        Worker { session: session.into(), identity: "worker".into(), build: Some("build".into()) };
    let session = transport.connect(worker, Vec::new()).await.expect("the worker connects");
    for kind in [WorkKind::Workflow, WorkKind::Activity] {
        session.sender().credit(queue(kind), 10);
    }
    session
}

async fn next_task(session: &mut Box<dyn Session>) -> TaskToken {
    match next_work(session).await {
        Dispatch::Workflow { token, .. } => token,
        other => panic!("not a workflow task: {other:?}"),
    }
}

async fn complete(session: &dyn Session, token: TaskToken, asks: Vec<Ask>) {
    let commands = asks.into_iter().map(Command::from).collect();
    let completion = TaskCompletion { commands, ..TaskCompletion::default() };
    let call = Report::CompleteTask(token, Box::new(completion));
    session.sender().report(call).await.expect("the completion is taken");
}

#[tokio::test]
async fn a_start_that_names_the_run_of_another_is_refused_and_changes_nothing() {
    let server = server(config()).await;
    let (transport, mut client) = (transport(&server), client(&server).await);
    let victim = start(&*transport, "victim", "hello").await;
    for number in 0..100 {
        let mut request: wire::StartRunRequest =
            start_call(&format!("intruder-{number}"), "hello").into();
        request.run = Some(victim.as_bytes().to_vec().into());
        let status = client.start_run(request).await.expect_err("the engine draws ids");
        let refused = error::from_status(&status);
        assert!(
            matches!(&refused, CallError::Invalid(invalid) if invalid.field == "run"),
            "{refused}"
        );
    }
    assert_eq!(count(&*transport).await, Ok(1));
    ask(&*transport, signal(target("victim"))).await.expect("its owner goes on");
}

#[tokio::test]
async fn a_run_is_found_in_its_own_namespace_only() {
    let server = two_namespaces(&[]).await;
    let transport = transport(&server);
    let mut call = start_call("hidden", "hello");
    call.workflow = in_namespace("other", "hidden");
    ask(&*transport, call).await.expect("it starts");
    let there = RunTarget { workflow: in_namespace("other", "hidden"), run: None };
    let run = describe(&*transport, there).await.expect("it is there").run;
    for id in ["hidden", "other"] {
        let here = RunTarget { workflow: in_namespace("default", id), run: Some(run) };
        assert_eq!(describe(&*transport, here.clone()).await, Err(CallError::NotFound));
        let hidden: [AnyOperation; 3] = [
            signal(here.clone()).into(),
            terminate(here.clone()).into(),
            AwaitClose { target: here }.into(),
        ];
        for operation in hidden {
            assert_eq!(transport.ask(operation).await.expect_err("hidden"), CallError::NotFound);
        }
    }
}

#[tokio::test]
async fn a_description_does_not_show_the_session_of_a_worker() {
    let server = server(config()).await;
    let transport = transport(&server);
    let mut session = connect(&*transport, "secret-session").await;
    start(&*transport, "hello", "hello").await;
    let token = next_task(&mut session).await;
    let activity = ActivitySpec {
        activity: "a".into(),
        activity_type: "greet".into(),
        queue: String::new(),
        input: Vec::new(),
        header: Default::default(),
        schedule_to_close: None,
        schedule_to_start: None,
        start_to_close: Some(std::time::Duration::from_secs(60)),
        heartbeat: None,
        retry: None,
        delivery: Default::default(),
        retry_of: None,
        attempt: 0,
    };
    complete(&*session, token, vec![Ask::ScheduleActivity(activity)]).await;
    assert!(matches!(next_work(&mut session).await, Dispatch::Activity { .. }));
    let request = wire::DescribeRunRequest { target: Some(target("hello").into()) };
    let shown = client(&server).await.describe_run(request).await.expect("it is there");
    let bytes = shown.into_inner().encode_to_vec();
    let shows = |text: &str| bytes.windows(text.len()).any(|part| part == text.as_bytes());
    assert!(shows("worker") && !shows("secret-session"));
}

/// A worker of `default` tries to terminate a workflow of `other`. Answers whether it could.
async fn terminated_from_outside(accepts_from: &[&str]) -> bool {
    let server = two_namespaces(accepts_from).await;
    let transport = transport(&server);
    let mut call = start_call("victim", "hello");
    call.workflow = in_namespace("other", "victim");
    ask(&*transport, call).await.expect("it starts");
    let mut session = connect(&*transport, "session").await;
    start(&*transport, "source", "hello").await;
    let token = next_task(&mut session).await;
    let target = Target { workflow: in_namespace("other", "victim"), run: None, child: None };
    let (mode, reason) = (CancelMode::Terminate, String::new());
    complete(&*session, token, vec![Ask::CancelExternal { target, mode, reason }]).await;
    // What became of the command comes as the next task.
    let token = next_task(&mut session).await;
    let asked = RunTarget { workflow: token.workflow.clone(), run: Some(token.run) };
    let request = History { target: asked, from: 0, follow: None };
    let events = decode(ask(&*transport, request).await.expect("it is there").rows);
    let refused = events.iter().any(|event| {
        matches!(&event.body.fact, Fact::ExternalCancelFailed(failed)
            if failed.cause == DeliveryFailure::NamespaceRefused)
    });
    let victim = RunTarget { workflow: in_namespace("other", "victim"), run: None };
    let open = describe(&*transport, victim).await.expect("it is there").closed_at.is_none();
    assert_eq!(open, refused);
    !open
}

#[tokio::test]
async fn a_worker_does_nothing_to_another_namespace_unless_that_accepts_it() {
    assert!(!terminated_from_outside(&[]).await);
    assert!(!terminated_from_outside(&["other"]).await);
    assert!(terminated_from_outside(&["default"]).await);
}
