//! Every operation, by single calls as clients in other languages make them, and on the stream of
//! calls.

use std::time::Duration;

use crate::support::count;
use abide_core::{
    codec::{Wire, generated as history},
    event::{Fact, UpdateRequest},
    list::RunFilter,
    operation::{
        AwaitClose, CallError, History, ListRuns, Start, StartUpdate, Update, UpdateAnswer,
        UpdateWait,
    },
    payload::Payload,
    run::{Close, Refusal, Stage},
};
use abide_program::Node;
use abide_proto::{
    error::from_status,
    generated::{self as wire, abide_client::AbideClient, update_run_response::Stage as WireStage},
};
use abide_sdk::transport::ask;
use tonic::transport::Channel;

use crate::support::{
    activity, client, closed, config, decode, programs, server, server_with_clock, spawn_worker,
    start, start_call, target, transport,
};

fn wire_target(id: &str) -> Option<wire::RunTarget> {
    Some(target(id).into())
}

async fn start_run(client: &mut AbideClient<Channel>, id: &str, workflow_type: &str) {
    let request: wire::StartRunRequest = start_call(id, workflow_type).into();
    let started = client.start_run(request).await.expect("it starts").into_inner();
    assert!(started.started && started.run.len() == 16);
}

#[tokio::test]
async fn signals_updates_and_queries() {
    let server = server(config()).await;
    let transport = transport(&server);
    let programs = programs([("waiter", vec![Node::signal("go")])]);
    let worker = spawn_worker(&transport, "one", &programs).await;
    let mut client = client(&server).await;
    start_run(&mut client, "waiter", "waiter").await;

    let request = history::UpdateRequest { name: "change".into(), ..Default::default() };
    let update = wire::UpdateRunRequest {
        target: wire_target("waiter"),
        update: "update-1".into(),
        request: Some(request),
        until: wire::UpdateWait::Unspecified.into(),
        wait_while_blocked: false,
    };
    let answer = client.update_run(update.clone()).await.expect("it is answered").into_inner();
    assert!(matches!(answer.stage, Some(WireStage::Completed(_))), "{answer:?}");
    let rejected = wire::UpdateRunRequest {
        update: "update-2".into(),
        request: Some(history::UpdateRequest { name: "reject".into(), ..Default::default() }),
        ..update
    };
    let answer = client.update_run(rejected).await.expect("it is answered").into_inner();
    assert!(matches!(answer.stage, Some(WireStage::Rejected(_))), "{answer:?}");

    let input = vec![Payload::new("question").to_wire()];
    let query = wire::QueryRunRequest {
        target: wire_target("waiter"),
        name: "echo".into(),
        input: input.clone(),
        ..Default::default()
    };
    let answer = client.query_run(query).await.expect("it is answered").into_inner();
    let case = answer.outcome.and_then(|outcome| outcome.case);
    let expected = history::outcome::Case::Completed(history::Payloads { items: input });
    assert_eq!(case, Some(expected));

    let signal = wire::Signal { name: "go".into(), key: Some("k".into()), ..Default::default() };
    let signal = wire::SignalRunRequest {
        target: wire_target("waiter"),
        signal: Some(signal),
        extension: Default::default(),
    };
    let done = client.signal_run(signal.clone()).await.expect("it is taken").into_inner();
    assert!(!done.repeat);
    let target = wire_target("waiter");
    let end = client.await_close(wire::AwaitCloseRequest { target }).await.expect("it closes");
    assert_eq!(end.into_inner().how(), wire::Close::Completed);
    worker.abort();
}

/// What a client in another language reads from the status.
fn key_reused(status: &tonic::Status) -> Option<String> {
    match from_status(status) {
        CallError::Refused(Refusal::KeyReused(key)) => Some(key.as_str().to_owned()),
        _ => None,
    }
}

#[tokio::test]
async fn a_key_that_comes_back_with_something_else_is_refused() {
    let server = server(config()).await;
    let transport = transport(&server);
    let programs = programs([("waiter", vec![Node::signal("never")])]);
    let worker = spawn_worker(&transport, "one", &programs).await;
    let mut client = client(&server).await;
    start_run(&mut client, "waiter", "waiter").await;
    let other: wire::StartRunRequest = start_call("waiter", "another").into();
    let refused = client.start_run(other).await.expect_err("another type");
    assert_eq!(key_reused(&refused).as_deref(), Some("waiter"), "{refused:?}");

    let signal = |text: &str| wire::SignalRunRequest {
        target: wire_target("waiter"),
        signal: Some(wire::Signal {
            name: "go".into(),
            input: vec![Payload::new(text.to_owned()).to_wire()],
            key: Some("signal-key".into()),
            ..Default::default()
        }),
        extension: Default::default(),
    };
    client.signal_run(signal("one")).await.expect("it is taken");
    let again = client.signal_run(signal("one")).await.expect("it was taken").into_inner();
    assert!(again.repeat);
    let refused = client.signal_run(signal("two")).await.expect_err("another input");
    assert_eq!(key_reused(&refused).as_deref(), Some("signal-key"), "{refused:?}");

    let update = |name: &str| wire::UpdateRunRequest {
        target: wire_target("waiter"),
        update: "update-1".into(),
        request: Some(history::UpdateRequest { name: name.into(), ..Default::default() }),
        until: wire::UpdateWait::Unspecified.into(),
        wait_while_blocked: false,
    };
    client.update_run(update("change")).await.expect("it is answered");
    let refused = client.update_run(update("reject")).await.expect_err("another name");
    assert_eq!(key_reused(&refused).as_deref(), Some("update-1"), "{refused:?}");
    worker.abort();
}

#[tokio::test]
async fn signal_with_start_cancel_pause_and_terminate() {
    let server = server(config()).await;
    let transport = transport(&server);
    let sleep = Node::Sleep(Duration::from_secs(3600));
    let programs = programs([("sleeper", vec![sleep]), ("waiter", vec![Node::signal("go")])]);
    let worker = spawn_worker(&transport, "one", &programs).await;
    let mut client = client(&server).await;

    let mut request: wire::StartRunRequest = start_call("waiter", "waiter").into();
    let without = client.signal_with_start(request.clone()).await.expect_err("no signal");
    assert_eq!(without.message(), "signal is missing");
    request.signal = Some(wire::Signal { name: "go".into(), ..Default::default() });
    client.signal_with_start(request).await.expect("it starts");
    assert_eq!(closed(&*transport, "waiter").await, Close::Completed);

    start_run(&mut client, "cancelled", "sleeper").await;
    let pause = || wire::PauseRunRequest {
        target: wire_target("cancelled"),
        reason: "lunch".into(),
        identity: "test".into(),
        key: Some("lunch-1".into()),
    };
    for repeat in [false, true] {
        let paused = client.pause_run(pause()).await.expect("it pauses").into_inner();
        assert_eq!(paused.repeat, repeat);
    }
    let request = wire::DescribeRunRequest { target: wire_target("cancelled") };
    let shown = client.describe_run(request).await.expect("it is shown").into_inner();
    assert_eq!(shown.status(), wire::RunStatus::Paused);
    client.unpause_run(pause()).await.expect("it goes on");
    let cancel = wire::CancelRunRequest { target: wire_target("cancelled"), ..Default::default() };
    client.cancel_run(cancel).await.expect("it is asked");
    assert_eq!(closed(&*transport, "cancelled").await, Close::Cancelled);

    start_run(&mut client, "terminated", "sleeper").await;
    let terminate = wire::TerminateRunRequest {
        target: wire_target("terminated"),
        reason: "enough".into(),
        ..Default::default()
    };
    client.terminate_run(terminate).await.expect("it ends");
    assert_eq!(closed(&*transport, "terminated").await, Close::Terminated);
    worker.abort();
}

#[tokio::test]
async fn histories_by_page_and_followed() {
    let server = server(config()).await;
    let transport = transport(&server);
    let programs = programs([("waiter", vec![activity("greet"), Node::signal("go")])]);
    let mut client = client(&server).await;
    start_run(&mut client, "waiter", "waiter").await;
    let request = wire::FollowHistoryRequest { target: wire_target("waiter"), after: 1 };
    let mut followed = client.follow_history(request).await.expect("it is followed").into_inner();
    let worker = spawn_worker(&transport, "one", &programs).await;
    let signal = wire::SignalRunRequest {
        target: wire_target("waiter"),
        signal: Some(wire::Signal { name: "go".into(), ..Default::default() }),
        extension: Default::default(),
    };
    client.signal_run(signal).await.expect("it is taken");

    let mut numbers = Vec::new();
    let mut end = false;
    while let Some(page) = followed.message().await.expect("it goes on") {
        numbers.extend(page.history.into_iter().flat_map(|h| h.events).map(|e| e.number));
        end = page.closed;
    }
    assert!(end);
    let last = *numbers.last().expect("events");
    assert_eq!(numbers, (2..=last).collect::<Vec<_>>());

    let request = wire::FollowHistoryRequest { target: wire_target("waiter"), after: last - 1 };
    let mut end = client.follow_history(request).await.expect("it is followed").into_inner();
    let page = end.message().await.expect("it goes on").expect("a page");
    let numbers: Vec<_> =
        page.history.into_iter().flat_map(|h| h.events).map(|e| e.number).collect();
    assert_eq!((numbers, page.closed), (vec![last], true));

    let request = wire::GetHistoryRequest { target: wire_target("waiter"), ..Default::default() };
    let page = client.get_history(request).await.expect("a page").into_inner();
    let events = page.history.expect("a history").events;
    assert_eq!((events.len() as u64, page.closed), (last, true));
    assert!(page.next_page_token.is_empty());

    let request = History { target: target("waiter"), from: 0, follow: None };
    let page = ask(&*transport, request).await.expect("a page");
    let events = decode(page.rows);
    assert!(matches!(events[0].body.fact, Fact::RunStarted(_)));
    assert!(matches!(events.last().expect("events").body.fact, Fact::RunCompleted(_)));
    worker.abort();
}

#[tokio::test]
async fn lists_are_paged() {
    let (server, clock) = server_with_clock(config()).await;
    let transport = transport(&server);
    let programs = programs([("sleeper", vec![Node::Sleep(Duration::from_secs(3600))])]);
    let worker = spawn_worker(&transport, "one", &programs).await;
    let mut client = client(&server).await;
    for n in 0..5 {
        start_run(&mut client, &format!("sleeper-{n}"), "sleeper").await;
    }
    let filter = wire::RunFilter { workflow_type: Some("sleeper".into()), ..Default::default() };
    let mut names = Vec::new();
    let mut page_token = Default::default();
    loop {
        let request =
            wire::ListRunsRequest { filter: Some(filter.clone()), page_size: 2, page_token };
        let page = client.list_runs(request).await.expect("a page").into_inner();
        assert!(page.runs.len() <= 2);
        names.extend(page.runs.into_iter().filter_map(|run| Some(run.workflow?.workflow)));
        page_token = page.next_page_token;
        if page_token.is_empty() {
            break;
        }
    }
    names.sort();
    assert_eq!(names, (0..5).map(|n| format!("sleeper-{n}")).collect::<Vec<_>>());
    let count = client.count_runs(wire::CountRunsRequest { filter: Some(filter) }).await;
    assert_eq!(count.expect("a count").into_inner().count, 5);

    let mut waits = Vec::new();
    while waits.len() < 5 {
        waits.clear();
        let mut page_token = Default::default();
        loop {
            let request = wire::ListWaitsRequest { filter: None, page_size: 2, page_token };
            let page = client.list_waits(request).await.expect("a page").into_inner();
            waits.extend(page.waits);
            page_token = page.next_page_token;
            if page_token.is_empty() {
                break;
            }
        }
    }
    assert!(waits.iter().all(|wait| wait.kind() == wire::WaitKind::Timer));
    let sooner = server.engine().now().saturating_add(Duration::from_secs(1));
    let reschedule = wire::RescheduleTimerRequest {
        target: wire_target("sleeper-3"),
        timer: waits[0].name.clone(),
        fire_at: Some(sooner.to_wire()),
        ..Default::default()
    };
    client.reschedule_timer(reschedule).await.expect("it is moved");
    clock.move_to(sooner);
    assert_eq!(closed(&*transport, "sleeper-3").await, Close::Completed);
    let repair = wire::RepairRunRequest { target: wire_target("sleeper-4"), ..Default::default() };
    client.repair_run(repair).await.expect("there is nothing to do");
    worker.abort();
}

/// The SDK's calls: many at once on one stream, and one that nobody waits for any more.
#[tokio::test]
async fn many_calls_share_a_stream() {
    let server = server(config()).await;
    let transport = transport(&server);
    start(&*transport, "open", "waiter").await;
    let waiting = ask(&*transport, AwaitClose { target: target("open") });
    drop(tokio::time::timeout(Duration::from_millis(1), waiting).await);
    let mut starts = tokio::task::JoinSet::new();
    for n in 0..300 {
        let transport = transport.clone();
        starts.spawn(async move { start(&*transport, &format!("start-{n}"), "waiter").await });
    }
    let runs = starts.join_all().await;
    assert_eq!(runs.len(), 300);
    assert_eq!(count(&*transport).await, Ok(301));
    let runs = ListRuns { filter: RunFilter::default(), limit: Some(7) };
    let page = ask(&*transport, runs).await.expect("a page").rows;
    assert_eq!(page.len(), 7);
}

#[tokio::test]
async fn an_update_waits_for_acceptance_only() {
    let server = server(config()).await;
    let transport = transport(&server);
    let programs = programs([("waiter", vec![Node::signal("go")])]);
    let worker = spawn_worker(&transport, "one", &programs).await;
    let run = start(&*transport, "waiter", "waiter").await;
    let call = Update {
        target: target("waiter"),
        update: "update".into(),
        request: UpdateRequest { name: "change".into(), ..UpdateRequest::default() },
        until: UpdateWait::Accepted,
        wait_while_blocked: false,
    };
    match ask(&*transport, call).await {
        Ok(UpdateAnswer::Reached { run: of, stage: Stage::Accepted | Stage::Completed(_) }) => {
            assert_eq!(of, run);
        }
        other => panic!("it should be accepted: {other:?}"),
    }
    worker.abort();
}

/// A start with an update as a client in another language makes it, and the look-up of the update.
#[tokio::test]
async fn an_update_comes_with_a_start_and_is_looked_up() {
    let server = server(config()).await;
    let (transport, mut client) = (transport(&server), client(&server).await);
    let programs = programs([("waiter", vec![Node::signal("go")])]);
    let worker = spawn_worker(&transport, "one", &programs).await;
    let request = UpdateRequest { name: "change".into(), ..UpdateRequest::default() };
    let start: wire::StartRunRequest = Start {
        update: Some(Box::new(StartUpdate {
            update: "u".into(),
            request,
            until: UpdateWait::Completed,
            wait_while_blocked: false,
        })),
        ..start_call("waiter", "waiter")
    }
    .into();
    let first = client.update_with_start(start.clone()).await.expect("both").into_inner();
    let again = client.update_with_start(start).await.expect("the same").into_inner();
    assert_eq!(first, again);
    assert!(first.started);
    let Some(wire::start_run_response::UpdateAnswer::Update(update)) = first.update_answer else {
        panic!("the update is answered: {first:?}");
    };
    assert_eq!(update.run, Some(first.run));
    let look_up = |update: &str| wire::AwaitUpdateRequest {
        target: wire_target("waiter"),
        update: update.into(),
        until: wire::UpdateWait::Completed.into(),
        wait_while_blocked: false,
    };
    let found = client.await_update(look_up("u")).await.expect("it is known").into_inner();
    assert_eq!(found.stage, update.stage);
    let unknown = client.await_update(look_up("v")).await.expect_err("it is not known");
    assert_eq!(unknown.code(), tonic::Code::NotFound);
    assert_eq!(from_status(&unknown), Refusal::UnknownUpdate("v".into()).into());
    worker.abort();
}
