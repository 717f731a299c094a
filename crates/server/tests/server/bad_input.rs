//! What cannot be is refused with a typed error that names the field and the bound, and changes
//! nothing.

use crate::support::count;
use crate::support::describe;
use abide_core::{
    attempt::ActivityToken,
    command::Ask,
    dispatch::{Dispatch, WorkKind},
    event::{SignalReceived, TaskFailureCause, UpdateRequest},
    ids::WorkflowKey,
    limits::{Exceeded, InvalidField},
    list::{RunFilter, WaitFilter},
    operation::{
        AnyOperation, AwaitClose, AwaitUpdate, CallError, ListRuns, ListWaits, Operation, Repair,
        RescheduleTimer, Signal, Start, StartUpdate, Terminate, UpdateWait,
    },
    payload::Payload,
    report::{QueryToken, Report, ReportAnswer, TaskCompletion, TaskToken},
    run::{Refusal, Resolution},
    time::Timestamp,
};
use abide_proto::{
    PROTOCOL_VERSION,
    error::from_status,
    generated::{
        self as wire, Hello, WorkerFrame, abide_client::AbideClient, workers_client::WorkersClient,
    },
};
use abide_sdk::transport::ask;
use abide_sdk::transport::{Session, Transport};
use abide_server::{Bounds, Config, Server};
use std::fmt::Debug;
use tokio_stream::{StreamExt as _, iter, pending, wrappers::UnboundedReceiverStream};
use tonic::{Code, transport::Channel};

use crate::support::{
    channel, client, config, connect, next_work, queue, server, start, start_call, target,
    transport, worker,
};

/// The call is refused because of this field, with a reason that contains `problem`, and no run and no
/// wait comes of it.
async fn check<O: Operation<Answer: Debug>>(server: &Server, call: O, field: &str, problem: &str) {
    let transport = transport(server);
    let before = count(&*transport).await.expect("the list");
    let invalid = match ask(&*transport, call).await {
        Err(CallError::Invalid(invalid)) => invalid,
        other => panic!("{field} should be refused: {other:?}"),
    };
    assert_eq!(invalid.field, field, "{invalid}");
    assert!(invalid.problem.contains(problem), "{invalid}");
    assert_eq!(count(&*transport).await, Ok(before));
    let waits = ListWaits { filter: WaitFilter::default(), limit: Some(1) };
    assert!(ask(&*transport, waits).await.expect("the list").rows.is_empty());
}

fn started(change: impl FnOnce(&mut Start)) -> Start {
    let mut start = start_call("hello", "hello");
    change(&mut start);
    start
}

#[tokio::test]
async fn ids_and_names_empty_or_over_the_bound() {
    let server = server(config()).await;
    let long = "x".repeat(1001);
    let limit = "the limit is 1000";
    let id = |id: &str| WorkflowKey { namespace: "default".into(), workflow: id.into() };
    check(&server, started(|start| start.workflow = id("")), "workflow id", "empty").await;
    check(&server, started(|start| start.workflow = id(&long)), "workflow id", limit).await;
    check(&server, started(|start| start.spec.workflow_type.clear()), "workflow type", "empty")
        .await;
    check(&server, started(|start| start.spec.queue.clear()), "queue", "empty").await;
    check(&server, started(|start| start.spec.queue = long.clone()), "queue", limit).await;
    let signal = SignalReceived { name: long.clone(), ..SignalReceived::default() };
    check(&server, started(|start| start.signal = Some(signal)), "signal name", limit).await;
    check(&server, started(|start| start.key = Some(long.as_str().into())), "key", limit).await;
}

#[tokio::test]
async fn payloads_over_the_bound() {
    let server = server(config()).await;
    let large = vec![Payload::new(vec![0; (2 << 20) + 1])];
    check(&server, started(|start| start.spec.input = large.clone()), "input", "2097152").await;
    let transport = transport(&server);
    start(&*transport, "hello", "hello").await;
    let signal = SignalReceived { name: "go".into(), input: large, ..SignalReceived::default() };
    check(
        &server,
        Signal { target: target("hello"), signal, extension: Default::default() },
        "signal input",
        "2097152",
    )
    .await;
}

#[tokio::test]
async fn a_request_over_the_message_bound() {
    let bounds = Bounds { message_bytes: 4096, ..Bounds::default() };
    let server = server(Config { bounds, ..config() }).await;
    let mut request: wire::StartRunRequest = start_call("hello", "hello").into();
    request.identity = "x".repeat(5000);
    let status = client(&server).await.start_run(request).await.expect_err("too large");
    assert_field(&status, "request", "the limit is 4096");
    let large = credit("default", &"x".repeat(5000), 1, 1);
    let status = say(&server, vec![hello(PROTOCOL_VERSION, "one"), large]).await;
    assert_field(&status, "request", "the limit is 4096");
    assert_eq!(count(&*transport(&server)).await, Ok(0));
}

#[tokio::test]
async fn an_unknown_namespace() {
    let server = server(config()).await;
    let elsewhere = WorkflowKey { namespace: "elsewhere".into(), workflow: "hello".into() };
    let known = "known namespaces: default";
    check(&server, started(|start| start.workflow = elsewhere), "namespace", known).await;
    let long = WorkflowKey { namespace: "x".repeat(1_001).into(), workflow: "hello".into() };
    check(&server, started(|start| start.workflow = long), "namespace", "the limit is 1000").await;
    let filter = RunFilter { namespace: Some("elsewhere".into()), ..RunFilter::default() };
    let listed = ask(&*transport(&server), ListRuns { filter, limit: None }).await;
    let listed = listed.expect_err("no such namespace");
    assert!(matches!(&listed, CallError::Invalid(invalid) if invalid.field == "namespace"));
}

#[tokio::test]
async fn an_unknown_workflow_run_or_timer() {
    let server = server(config()).await;
    let transport = transport(&server);
    let (to, signal, extension) = (target("nobody"), signal("go"), Default::default());
    let not_found: [AnyOperation; 3] = [
        AwaitClose { target: target("nobody") }.into(),
        Signal { target: to, signal, extension }.into(),
        Repair { target: target("nobody"), identity: "test".into() }.into(),
    ];
    for operation in not_found {
        assert_eq!(transport.ask(operation).await.expect_err("nobody"), CallError::NotFound);
    }
    assert_eq!(describe(&*transport, target("nobody")).await, Err(CallError::NotFound));
    start(&*transport, "hello", "hello").await;
    let mut another = target("hello");
    another.run = Some(abide_core::ids::RunId::MAX);
    assert_eq!(describe(&*transport, another).await, Err(CallError::NotFound));
    let reschedule = RescheduleTimer {
        target: target("hello"),
        what: "nothing".into(),
        fire_at: Timestamp::from_unix_millis(4_000_000_000_000),
        after: None,
        identity: "test".into(),
        key: None,
    };
    let refused = ask(&*transport, reschedule).await.expect_err("no such timer");
    assert_eq!(refused, CallError::Refused(Refusal::UnknownTimer("nothing".into())));
}

fn signal(name: &str) -> SignalReceived {
    SignalReceived { name: name.into(), ..SignalReceived::default() }
}

#[tokio::test]
async fn an_existing_run_is_named() {
    let server = server(config()).await;
    let transport = transport(&server);
    let run = start(&*transport, "hello", "hello").await;
    let again = started(|start| start.key = None);
    let workflow = crate::support::workflow("hello");
    let refused = ask(&*transport, again).await.expect_err("it runs");
    assert_eq!(refused, CallError::AlreadyExists { workflow, run });
}

/// A task of a run whose type nobody knows: to the server types are names.
async fn held_task(transport: &dyn Transport) -> (Box<dyn Session>, TaskToken) {
    let mut session = connect(transport, "one").await;
    start(transport, "hello", "nobody knows this type").await;
    match next_work(&mut session).await {
        Dispatch::Workflow { token, .. } => (session, token),
        other => panic!("a workflow task comes first: {other:?}"),
    }
}

fn complete(token: &TaskToken, asks: impl IntoIterator<Item = Ask>) -> Report {
    let commands = asks.into_iter().map(Into::into).collect();
    Report::CompleteTask(token.clone(), Box::new(TaskCompletion { commands, ..Default::default() }))
}

async fn refused_for_token(session: &dyn Session, report: Report) {
    match session.sender().report(report).await {
        Err(CallError::Invalid(invalid)) => {
            assert_eq!(invalid.field, "token");
            assert!(invalid.problem.contains("does not hold"), "{invalid}");
        }
        other => panic!("the token should be refused: {other:?}"),
    }
}

#[tokio::test]
async fn forged_tokens_and_tasks_of_others() {
    let server = server(config()).await;
    let transport = transport(&server);
    let (holder, token) = held_task(&*transport).await;
    let before = describe(&*transport, target("hello")).await.expect("it is there");
    let thief = transport.connect(worker("thief"), Vec::new()).await.expect("it connects");
    let finish = || complete(&token, [Ask::CompleteRun(Vec::new())]);
    refused_for_token(&*thief, finish()).await;
    let fail = Report::FailTask {
        token: token.clone(),
        cause: TaskFailureCause::WorkerFailure,
        failure: Default::default(),
        blocked: None,
    };
    refused_for_token(&*thief, fail).await;
    let (workflow, run) = (token.workflow.clone(), token.run);
    let query = QueryToken { workflow: workflow.clone(), run, ticket: 1, attempt: 1 };
    refused_for_token(&*thief, Report::AnswerQuery(query, Ok(Vec::new()))).await;
    let forged = ActivityToken { workflow, run, scheduled: 3, start: 1 };
    for call in [
        Report::ResolveActivity(forged.clone(), Resolution::Completed(Vec::new())),
        Report::Heartbeat(forged.clone(), Vec::new()),
        Report::PresentAttempt(forged, "one".into()),
    ] {
        let refused = thief.sender().report(call).await.expect_err("there is no such attempt");
        assert_eq!(refused, CallError::Refused(Refusal::StaleAttempt));
    }
    let mut other_start = token.clone();
    other_start.start.counter += 1;
    refused_for_token(&*holder, complete(&other_start, [])).await;
    assert_eq!(describe(&*transport, target("hello")).await, Ok(before));
    let taken = holder.sender().report(finish()).await;
    assert!(matches!(taken, Ok(ReportAnswer::TaskTaken { .. })), "{taken:?}");
    refused_for_token(&*holder, finish()).await;
}

#[tokio::test]
async fn stale_tokens() {
    let server = server(config()).await;
    let transport = transport(&server);
    let (holder, token) = held_task(&*transport).await;
    let terminate = Terminate {
        target: target("hello"),
        reason: "over".into(),
        identity: "test".into(),
        details: Vec::new(),
        key: None,
    };
    ask(&*transport, terminate).await.expect("it ends");
    let late = holder.sender().report(complete(&token, [Ask::CompleteRun(Vec::new())])).await;
    let stale = [Refusal::StaleTask, Refusal::RunClosed].map(CallError::Refused);
    assert!(late.as_ref().is_err_and(|error| stale.contains(error)), "{late:?}");
}

#[tokio::test]
async fn a_command_that_makes_no_sense() {
    let server = server(config()).await;
    let transport = transport(&server);
    let (session, token) = held_task(&*transport).await;
    let nonsense = complete(&token, [Ask::CancelTimer("nothing".into())]);
    match session.sender().report(nonsense).await {
        Ok(ReportAnswer::TaskRefused { cause: TaskFailureCause::BadCommand, message }) => {
            assert!(message.contains("nothing"), "{message}");
        }
        other => panic!("the command should be refused: {other:?}"),
    }
    let shown = describe(&*transport, target("hello")).await.expect("it is there");
    assert!(shown.waits.is_empty() && shown.activities.is_empty());
    assert_eq!(shown.trouble.expect("the task failed").cause, TaskFailureCause::BadCommand);
}

#[tokio::test]
async fn messages_that_are_malformed() {
    let server = server(config()).await;
    let mut client = client(&server).await;
    let missing = client.start_run(wire::StartRunRequest::default()).await;
    assert_field(&missing.expect_err("nothing is there"), "workflow", "is missing");
    let mut request: wire::StartRunRequest = start_call("hello", "hello").into();
    request.run = Some(b"short".as_slice().into());
    assert_field(&client.start_run(request).await.expect_err("no run id"), "run", "be absent");
    let mut request: wire::StartRunRequest = start_call("hello", "hello").into();
    request.conflict = 77;
    assert_field(&client.start_run(request).await.expect_err("no policy"), "conflict", "77");
    let token = b"forged".as_slice().into();
    let request = wire::ListRunsRequest { page_token: token, ..Default::default() };
    let refused = client.list_runs(request).await.expect_err("no token");
    assert_field(&refused, "page_token", "was not issued");
    assert_eq!(count(&*transport(&server)).await, Ok(0));
}

fn assert_field(status: &tonic::Status, field: &str, problem: &str) {
    assert_eq!(status.code(), Code::InvalidArgument, "{status}");
    match from_status(status) {
        CallError::Invalid(InvalidField { field: found, problem: why }) => {
            assert_eq!(found, field);
            assert!(why.contains(problem), "{why}");
        }
        other => panic!("{field} should be named: {other:?}"),
    }
}

#[tokio::test]
async fn text_that_is_not_utf_8() {
    let server = server(config()).await;
    // The same tag, as bytes: that is how a broken client would write it.
    let reason = abide_core::codec::generated::Payload {
        metadata: Default::default(),
        data: b"\xff\xfe".as_slice().into(),
    };
    let mut grpc = tonic::client::Grpc::new(channel(&server).await);
    grpc.ready().await.expect("the server listens");
    let path = "/abide.v1.Abide/TerminateRun".parse().expect("a path");
    let codec: abide_proto::codec::Codec<_, wire::DoneResponse> = Default::default();
    let status = grpc.unary(tonic::Request::new(reason), path, codec).await;
    assert_field(&status.expect_err("not UTF-8"), "reason", "UTF-8");
}

async fn say(server: &Server, frames: Vec<WorkerFrame>) -> tonic::Status {
    let mut client = WorkersClient::new(channel(server).await);
    match client.connect(iter(frames).chain(pending())).await {
        Err(status) => status,
        Ok(told) => {
            let mut told = told.into_inner();
            loop {
                match told.message().await {
                    Ok(Some(_)) => {}
                    Ok(None) => panic!("the stream should end with an error"),
                    Err(status) => return status,
                }
            }
        }
    }
}

fn hello(protocol_version: u32, session: &str) -> WorkerFrame {
    let (session, identity) = (session.into(), "test".into());
    let hello = Hello { protocol_version, session, identity, ..Hello::default() };
    WorkerFrame { hello: Some(hello), ..WorkerFrame::default() }
}

#[tokio::test]
async fn a_worker_that_introduces_itself_badly() {
    let server = server(config()).await;
    let status = say(&server, vec![hello(7, "one")]).await;
    assert_field(&status, "hello.protocol_version", "this server supports 1");
    let status = say(&server, vec![hello(PROTOCOL_VERSION, "")]).await;
    assert_field(&status, "hello.session", "is empty");
    let status = say(&server, vec![WorkerFrame::default()]).await;
    assert_field(&status, "hello", "first frame");
    let status = say(&server, vec![hello(1, "one"), hello(1, "one")]).await;
    assert_field(&status, "hello", "already sent");
}

#[tokio::test]
async fn a_worker_that_says_nothing() {
    let bounds = Bounds { hello_timeout_ms: 200, ..Bounds::default() };
    let server = server(Config { bounds, ..config() }).await;
    let status = say(&server, Vec::new()).await;
    assert_field(&status, "hello", "within 200 ms");
}

fn credit(namespace: &str, queue: &str, kind: i32, credits: u32) -> WorkerFrame {
    let (namespace, queue) = (namespace.into(), queue.into());
    let credit = wire::Credit { namespace, queue, kind, credits };
    WorkerFrame { credits: vec![credit], ..WorkerFrame::default() }
}

#[tokio::test]
async fn credits_that_cannot_be() {
    let server = server(config()).await;
    let hello = || hello(PROTOCOL_VERSION, "one");
    let status = say(&server, vec![hello(), credit("elsewhere", "queue", 1, 1)]).await;
    assert_field(&status, "namespace", "known namespaces: default");
    let status = say(&server, vec![hello(), credit("default", "", 1, 1)]).await;
    assert_field(&status, "queue", "is empty");
    let status = say(&server, vec![hello(), credit("default", "queue", 0, 1)]).await;
    assert_field(&status, "kind", "is missing");
    let status = say(&server, vec![hello(), credit("default", "queue", 1, 0)]).await;
    assert_field(&status, "credits", "is 0");
    let status = say(&server, vec![hello(), credit("default", "queue", 1, 10_001)]).await;
    assert_eq!(status.code(), Code::ResourceExhausted);
    let what = "credits and tasks of the session".into();
    let limit = CallError::Refused(Refusal::Limit(Exceeded { what, limit: 10_000 }));
    assert_eq!(from_status(&status), limit);
}

#[tokio::test]
async fn more_streams_than_the_server_has() {
    let bounds = Bounds { streams: 2, ..Bounds::default() };
    let server = server(Config { bounds, ..config() }).await;
    let mut client: AbideClient<Channel> = client(&server).await;
    let mut one = client.calls(pending()).await.expect("the first").into_inner();
    let _two = client.calls(pending()).await.expect("the second");
    let welcome = one.next().await.expect("a frame").expect("the welcome");
    assert!(welcome.message_bytes > 0);
    let next = one.next();
    // The stream is idle, so it makes room for the third.
    let (status, three) = tokio::join!(next, client.calls(pending()));
    three.expect("the third");
    let status = status.expect("a reason").expect_err("it had to leave");
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert!(status.message().contains("bounds.streams"), "{status}");
    assert_eq!(from_status(&status), CallError::Overloaded);
}

#[tokio::test]
async fn more_streams_than_the_server_has_and_all_are_busy() {
    let bounds = Bounds { streams: 1, ..Bounds::default() };
    let server = server(Config { bounds, ..config() }).await;
    let transport = transport(&server);
    let _worker = connect(&*transport, "busy").await;
    let status = WorkersClient::new(channel(&server).await)
        .connect(iter([hello(PROTOCOL_VERSION, "another")]).chain(pending()))
        .await
        .expect_err("there is one place");
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert!(status.message().contains("close some, or raise the limit"), "{status}");
}

/// Each queue that a worker names is kept while the worker is there.
#[tokio::test]
async fn a_worker_of_very_many_queues() {
    let bounds = Bounds { queues_per_session: 2, ..Bounds::default() };
    let server = server(Config { bounds, ..config() }).await;
    // A queue that is named again is not another one; the last one has another kind of work.
    let named = [("a", 1), ("b", 1), ("a", 1), ("a", 2)];
    let credits = named.map(|(queue, kind)| credit("default", queue, kind, 1));
    let frames = std::iter::once(hello(PROTOCOL_VERSION, "many")).chain(credits).collect();
    assert_field(&say(&server, frames).await, "credits", "queues_per_session");
}

/// A worker that gives credit and never reads gets no more than its credit, and others are served.
#[tokio::test]
async fn a_worker_that_reads_nothing() {
    let server = server(config()).await;
    let transport = transport(&server);
    let mut deaf = WorkersClient::new(channel(&server).await);
    let (said, frames) = tokio::sync::mpsc::unbounded_channel();
    said.send(hello(PROTOCOL_VERSION, "deaf")).expect("a receiver");
    said.send(credit("default", "queue", 1, 3)).expect("a receiver");
    let frames = UnboundedReceiverStream::new(frames);
    let unread = deaf.connect(frames).await.expect("it connects");
    for n in 0..8 {
        start(&*transport, &format!("hello-{n}"), "hello").await;
    }
    let mut session = connect(&*transport, "reader").await;
    for _ in 0..5 {
        next_work(&mut session).await;
    }
    drop((unread, said));
    session.sender().credit(queue(WorkKind::Workflow), 3);
    for _ in 0..3 {
        next_work(&mut session).await;
    }
}

#[tokio::test]
async fn updates_that_cannot_be() {
    let server = server(config()).await;
    let update = |change: fn(&mut StartUpdate)| {
        let request = UpdateRequest { name: "pay".into(), ..UpdateRequest::default() };
        let mut update = StartUpdate {
            update: "u".into(),
            request,
            until: UpdateWait::Completed,
            wait_while_blocked: false,
        };
        change(&mut update);
        started(|start| start.update = Some(Box::new(update)))
    };
    let long = |update: &mut StartUpdate| update.update = "x".repeat(1001).as_str().into();
    check(&server, update(long), "update id", "the limit is 1000").await;
    check(&server, update(|update| update.update = "".into()), "update id", "empty").await;
    check(&server, update(|update| update.request.name.clear()), "update name", "empty").await;
    let large = |update: &mut StartUpdate| {
        update.request.input = vec![Payload::new(vec![0; (2 << 20) + 1])];
    };
    check(&server, update(large), "update input", "2097152").await;
    let look_up = |workflow: &str, update: &str| AwaitUpdate {
        target: target(workflow),
        update: update.into(),
        until: UpdateWait::Completed,
        wait_while_blocked: false,
    };
    let unnamed = look_up("w", "");
    check(&server, unnamed, "update id", "empty").await;

    let request = wire::StartRunRequest::from(start_call("hello", "hello"));
    let error = client(&server).await.update_with_start(request).await.expect_err("no update");
    assert_eq!(error.code(), Code::InvalidArgument);
    assert_eq!(from_status(&error), InvalidField::new("update", "is missing").into());
    let lost = look_up("nobody", "u");
    assert_eq!(ask(&*transport(&server), lost).await.expect_err("no run"), CallError::NotFound);
}
