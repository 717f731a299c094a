//! Workers over gRPC: runs complete, streams come back, and a session answers only for its own tasks.

use abide_core::{
    attempt::ActivityToken,
    dispatch::{Dispatch, WorkKind},
    ids::RunId,
    operation::{AwaitClose, CallError},
    report::{Report, ReportAnswer, TaskCompletion},
    run::{Close, Refusal, Resolution},
};
use abide_program::Node;
use abide_proto::generated::{
    ReportAttemptRequest,
    report_attempt_request::{Attempt as Named, Report as Said},
};
use abide_sdk::transport::Transport;
use abide_sdk::transport::ask;

use crate::support::{
    activity, client, closed, config, connect, next_work, programs, queue, server, spawn_worker,
    start, transport, worker, workflow,
};

#[tokio::test]
async fn runs_complete() {
    let server = server(config()).await;
    let transport = transport(&server);
    let programs = programs([
        ("parent", vec![Node::child("hello"), activity("farewell")]),
        ("hello", vec![activity("greet")]),
    ]);
    let worker = spawn_worker(&transport, "one", &programs).await;
    for n in 0..20 {
        start(&*transport, &format!("parent-{n}"), "parent").await;
    }
    for n in 0..20 {
        assert_eq!(closed(&*transport, &format!("parent-{n}")).await, Close::Completed);
    }
    worker.abort();
    server.shutdown().await.expect("it stops");
}

/// Starts a hello and takes it to its activity, which the session `one` then holds.
pub(crate) async fn with_attempt(
    transport: &dyn Transport,
) -> (Box<dyn abide_sdk::transport::Session>, Dispatch) {
    let mut session = connect(transport, "one").await;
    start(transport, "hello", "hello").await;
    let Dispatch::Workflow { token, given, recent, .. } = next_work(&mut session).await else {
        panic!("a workflow task comes first");
    };
    let rows = recent.expect("the first task has the whole history");
    let mut events = crate::support::decode(rows);
    events.extend(given.tail);
    let programs = programs([("hello", vec![activity("greet")])]);
    let mut replay = abide_core::replay::Replay::new(programs["hello"].code());
    replay.feed(events).expect("the history fits");
    let commands = replay.turn(&[]).expect("the code fits").commands;
    let completion = TaskCompletion { commands, ..TaskCompletion::default() };
    let taken = session.sender().report(Report::CompleteTask(token, Box::new(completion))).await;
    assert!(matches!(taken, Ok(ReportAnswer::TaskTaken { .. })), "{taken:?}");
    let attempt = next_work(&mut session).await;
    (session, attempt)
}

#[tokio::test]
async fn a_session_that_comes_back_presents_its_attempts() {
    let server = server(config()).await;
    let transport = transport(&server);
    let (session, attempt) = with_attempt(&*transport).await;
    let Dispatch::Activity { token, .. } = attempt else { panic!("an activity comes next") };
    drop(session);

    let stranger = transport.connect(worker("stranger"), Vec::new()).await.expect("it connects");
    let forged = Report::PresentAttempt(token.clone(), "one".into());
    let refused = stranger.sender().report(forged).await;
    assert_eq!(refused.unwrap_err(), CallError::Refused(Refusal::StaleAttempt));

    let back = transport.connect(worker("one"), Vec::new()).await.expect("it comes back");
    let presented = back.sender().report(Report::PresentAttempt(token.clone(), "one".into())).await;
    assert!(matches!(presented, Ok(ReportAnswer::Alive { .. })), "{presented:?}");
    let alive = back.sender().report(Report::Heartbeat(token.clone(), Vec::new())).await;
    assert!(matches!(alive, Ok(ReportAnswer::Alive { cancel_requested: false })), "{alive:?}");
    let resolved = Report::ResolveActivity(token, Resolution::Completed(Vec::new()));
    let done = back.sender().report(resolved).await;
    assert!(matches!(done, Ok(ReportAnswer::Done { repeat: false, .. })), "{done:?}");
}

#[tokio::test]
async fn an_attempt_that_ended_while_the_stream_was_lost_counts() {
    let server = server(config()).await;
    let transport = transport(&server);
    let (session, attempt) = with_attempt(&*transport).await;
    let Dispatch::Activity { token, .. } = attempt else { panic!("an activity comes next") };
    drop(session);
    let back = transport.connect(worker("one"), Vec::new()).await.expect("it comes back");
    let resolved = Report::ResolveActivity(token, Resolution::Completed(Vec::new()));
    let done = back.sender().report(resolved).await;
    assert!(matches!(done, Ok(ReportAnswer::Done { .. })), "{done:?}");
}

#[tokio::test]
async fn a_lost_stream_gives_its_task_to_another() {
    let server = server(config()).await;
    let transport = transport(&server);
    let mut first = connect(&*transport, "first").await;
    start(&*transport, "hello", "hello").await;
    let Dispatch::Workflow { token, .. } = next_work(&mut first).await else {
        panic!("a workflow task comes first");
    };
    drop(first);
    let mut second = connect(&*transport, "second").await;
    let Dispatch::Workflow { token: again, .. } = next_work(&mut second).await else {
        panic!("the task comes again");
    };
    assert_eq!((again.run, again.start != token.start), (token.run, true));
}

#[tokio::test]
async fn a_worker_that_withdraws_is_given_nothing_more() {
    let server = server(config()).await;
    let transport = transport(&server);
    let mut leaving = connect(&*transport, "leaving").await;
    leaving.sender().withdraw();
    // Once something said later is answered, the server has heard it.
    let run = RunId::from_parts(Default::default(), 1);
    let token = ActivityToken { workflow: workflow("none"), run, scheduled: 1, start: 1 };
    let unknown = leaving.sender().report(Report::PresentAttempt(token, "leaving".into())).await;
    unknown.expect_err("there is no such attempt");
    let mut staying = connect(&*transport, "staying").await;
    start(&*transport, "hello", "hello").await;
    tokio::select! {
        work = next_work(&mut leaving) => panic!("it withdrew, and is given {work:?}"),
        work = next_work(&mut staying) => assert!(matches!(work, Dispatch::Workflow { .. })),
    }
}

#[tokio::test]
async fn the_end_of_the_server_ends_streams_and_calls() {
    let server = server(config()).await;
    let transport = transport(&server);
    let mut session = connect(&*transport, "one").await;
    session.sender().credit(queue(WorkKind::Workflow), 1);
    start(&*transport, "hello", "nobody runs this").await;
    next_work(&mut session).await;
    let waiting = ask(&*transport, AwaitClose { target: crate::support::target("hello") });
    let (waited, stopped) = tokio::join!(waiting, server.shutdown());
    stopped.expect("it stops");
    assert!(matches!(waited, Err(CallError::Unavailable(_))), "{waited:?}");
    while session.next().await.is_some() {}
    let after = ask(&*transport, AwaitClose { target: crate::support::target("hello") }).await;
    assert!(matches!(after, Err(CallError::Unavailable(_))), "{after:?}");
}

#[tokio::test]
async fn an_attempt_that_was_left_is_completed_by_anybody_who_has_its_token() {
    let server = server(config()).await;
    let transport = transport(&server);
    let (session, attempt) = with_attempt(&*transport).await;
    let Dispatch::Activity { token, .. } = attempt else { panic!("an activity comes next") };
    let left = session.sender().report(Report::DetachAttempt(token.clone())).await;
    assert!(matches!(left, Ok(ReportAnswer::Done { .. })), "{left:?}");
    drop(session);

    let text = token.to_text();
    let mut client = client(&server).await;
    let mut say = async |attempt: Option<Named>, report: Option<Said>| {
        client.report_attempt(ReportAttemptRequest { attempt, report }).await
    };
    let by_token = |token: &str| Some(Named::Token(token.into()));
    let alive = say(by_token(&text), Some(Said::Heartbeat(Default::default()))).await;
    assert!(!alive.expect("it is alive").into_inner().cancel_requested);
    let done = || Some(Said::Completed(Default::default()));
    for (attempt, report, field) in [
        (None, done(), "attempt"),
        (by_token(&text), None, "report"),
        (by_token(&text[1..]), done(), "token"),
        (Some(Named::Activity(Default::default())), done(), "activity"),
    ] {
        let refused = say(attempt, report).await.expect_err("it makes no sense");
        assert_eq!(refused.code(), tonic::Code::InvalidArgument);
        assert!(refused.message().starts_with(field), "{}", refused.message());
    }
    say(by_token(&text), done()).await.expect("it is taken");
    let again = say(by_token(&text), done()).await.expect_err("it is over");
    assert_eq!(again.message(), "the activity attempt is no longer current");
    server.shutdown().await.expect("it stops");
}
