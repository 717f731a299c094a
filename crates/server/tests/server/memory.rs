//! Strangers who hold open what they begin: what the server keeps for them is bounded, and others are
//! served meanwhile.

use std::{net::SocketAddr, pin::pin, time::Duration};

use crate::support::{count, described_run};
use abide_core::{
    codec::{Wire as _, generated::UpdateRequest},
    limits::Exceeded,
    operation::{AwaitClose, CallError, Signal},
    payload::Payload,
    run::Refusal,
};
use abide_proto::{
    PROTOCOL_VERSION,
    error::{from_detail, from_status},
    generated::{
        self as wire, CallsFrame, NumberedCall, abide_client::AbideClient, numbered_answer::Answer,
        numbered_call::Call as Asked, workers_client::WorkersClient,
    },
};
use abide_sdk::transport::Transport;
use abide_sdk::transport::ask;
use abide_server::{Bounds, Config, Server};
use bytes::Bytes;
use futures_util::{FutureExt, StreamExt, future::join_all, stream};
use http_body_util::StreamBody;
use hyper::body::Frame;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
};
use tonic::{
    Code, Status, Streaming,
    body::Body,
    codegen::{Service, http},
    transport::Channel,
};

use crate::{
    network::get,
    support::{channel, client, config, connect, server, start, start_call, target, transport},
};

const START: &str = "/abide.v1.Abide/StartRun";

/// A server whose bounds are small.
async fn small(bounds: Bounds) -> Server {
    let bounds = Bounds {
        message_bytes: 256 << 10,
        bytes_in_flight: 3 << 20,
        bytes_per_connection: 512 << 10,
        ..bounds
    };
    server(Config { bounds, ..config() }).await
}

/// Begins a message of this length, of which the last byte never comes. Tells how the call ends.
async fn unfinished(channel: Channel, method: &'static str, length: u32) -> Status {
    match begin(channel, method, length).await {
        Ok(response) => Status::from_header_map(response.headers()).expect("a call that failed"),
        Err(status) => status,
    }
}

/// The same, with the beginning of the answer.
async fn begin(
    mut channel: Channel,
    method: &'static str,
    length: u32,
) -> Result<http::Response<Body>, Status> {
    let mut begun = vec![0; length as usize + 4];
    begun[1..5].copy_from_slice(&length.to_be_bytes());
    let frames = stream::iter([Ok::<_, Status>(Frame::data(Bytes::from(begun)))]);
    let body = Body::new(StreamBody::new(frames.chain(stream::pending())));
    let request = http::Request::post(format!("http://server{method}"))
        .version(http::Version::HTTP_2)
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(body)
        .expect("a good request");
    std::future::poll_fn(|context| channel.poll_ready(context)).await.expect("it is connected");
    channel.call(request).await.map_err(|error| Status::from_error(error.into()))
}

/// A figure of the server.
async fn figure(server: &Server, name: &str) -> u64 {
    let page = get(server.http_address(), "/metrics").await;
    let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {name} in {page}"))
}

async fn evictions(server: &Server, kind: &str) -> u64 {
    figure(server, &format!("abide_evictions_total{{kind=\"{kind}\"}}")).await
}

/// Calls that are small are answered at once.
async fn is_served(transport: &dyn Transport) {
    for _ in 0..10 {
        count(transport).await.expect("it is served");
    }
}

#[tokio::test]
async fn who_holds_most_unfinished_messages_has_to_leave_and_is_told_why() {
    let server = small(Bounds::default()).await;
    let others = transport(&server);
    is_served(&*others).await;
    let greedy = channel(&server).await;
    let held = (0..100).map(|_| unfinished(greedy.clone(), START, 60 << 10));
    for status in join_all(held).await {
        assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
        assert!(status.message().contains("held the most"), "{status}");
        assert!(status.message().contains("bounds.bytes_in_flight"), "{status}");
        assert_eq!(from_status(&status), CallError::Overloaded);
    }
    is_served(&*others).await;
    assert_eq!(evictions(&server, "greedy").await, 1);
    assert!(figure(&server, "abide_bytes_in_flight").await < 256 << 10);
}

/// Large messages wait for each other within a connection, and who waits for another connection gets
/// its room in the end.
#[tokio::test]
async fn a_large_message_gets_the_room_of_one_that_never_ends() {
    let server = small(Bounds::default()).await;
    let greedy = [channel(&server).await, channel(&server).await, channel(&server).await];
    let held = greedy
        .iter()
        .flat_map(|greedy| (0..10).map(|_| unfinished(greedy.clone(), START, 200 << 10)));
    let mut held = pin!(join_all(held));
    let transport = transport(&server);
    let mut call = start_call("large", "hello");
    call.spec.input = vec![Payload::new(vec![7; 200 << 10])];
    // The small call shows that those who hold on have what they can get.
    tokio::select! {
        ended = &mut held => panic!("nothing was short: {ended:?}"),
        () = is_served(&*transport) => {}
    }
    tokio::select! {
        biased;
        started = ask(&*transport, call) => {
            started.expect("it is started");
        }
        ended = &mut held => panic!("all had to leave: {ended:?}"),
    }
    let evicted = evictions(&server, "greedy").await;
    assert!((1..=2).contains(&evicted), "{evicted}");
    assert!(figure(&server, "abide_bytes_in_flight").await < 3 << 20);
}

#[tokio::test]
async fn a_message_that_stands_still_is_given_up() {
    let server = small(Bounds { stall_ms: 100, ..Bounds::default() }).await;
    let channel = channel(&server).await;
    for length in [2, 200 << 10] {
        let status = unfinished(channel.clone(), START, length).await;
        assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
        assert!(status.message().contains("made no progress for 100 ms"), "{status}");
    }
    assert_eq!(evictions(&server, "unfinished").await, 2);
    is_served(&*transport(&server)).await;
    assert!(figure(&server, "abide_bytes_in_flight").await < 64 << 10);
}

/// A connection whose peer sends no more than is read, but for a little.
async fn narrow_channel(server: &Server) -> Channel {
    let endpoint = Channel::from_shared(format!("http://{}", server.grpc_address()));
    let endpoint = endpoint.expect("a good address").initial_stream_window_size(1 << 16);
    endpoint.connect().await.expect("the server listens")
}

/// Waits until the server has given up that something is read.
async fn until_unread(server: &Server) {
    while evictions(server, "unread").await == 0 {
        tokio::task::yield_now().await;
    }
}

/// Signals that make a history of as many pages.
async fn large_run(transport: &dyn Transport, pages: usize) {
    start(transport, "hello", "hello").await;
    for _ in 0..pages {
        let input = vec![Payload::new(vec![7; 1 << 20])];
        let signal =
            abide_core::event::SignalReceived { name: "go".into(), input, ..Default::default() };
        let call = Signal { target: target("hello"), signal, extension: Default::default() };
        ask(transport, call).await.expect("it is signalled");
    }
}

fn follow(after: u64) -> wire::FollowHistoryRequest {
    wire::FollowHistoryRequest { target: Some(target("hello").into()), after }
}

#[tokio::test]
async fn a_follower_that_stops_reading_is_told_and_goes_on_from_its_place() {
    let bounds = Bounds { stall_ms: 200, ..Bounds::default() };
    let server = server(Config { bounds, ..config() }).await;
    let transport = transport(&server);
    large_run(&*transport, 4).await;
    let mut client = AbideClient::new(narrow_channel(&server).await);
    let mut last = 0;
    let mut pages = client.follow_history(follow(0)).await.expect("it follows").into_inner();
    until_unread(&server).await;
    // Its page was given back, though it is still connected.
    assert!(figure(&server, "abide_bytes_in_flight").await < 256 << 10);
    let status = loop {
        match pages.message().await {
            Ok(page) => last = last_event(&page.expect("more")),
            Err(status) => break status,
        }
    };
    assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
    assert!(status.message().contains("not read for 200 ms"), "{status}");
    let mut pages = client.follow_history(follow(last)).await.expect("it follows").into_inner();
    while last < 6 {
        let page = pages.message().await.expect("it reads").expect("more");
        let first = page.history.as_ref().and_then(|history| history.events.first());
        assert_eq!(first.map(|event| event.number), Some(last + 1));
        last = last_event(&page);
    }
}

fn last_event(page: &wire::GetHistoryResponse) -> u64 {
    page.history.as_ref().and_then(|history| history.events.last()).map_or(0, |last| last.number)
}

/// Many followers on many connections hold no more than the bound together.
#[tokio::test]
async fn followers_that_read_nothing_share_the_bound() {
    let bounds = Bounds {
        message_bytes: 2 << 20,
        bytes_in_flight: 48 << 20,
        bytes_per_connection: 4 << 20,
        ..Bounds::default()
    };
    let server = server(Config { bounds, ..config() }).await;
    let transport = transport(&server);
    large_run(&*transport, 8).await;
    let mut unread = Vec::new();
    for _ in 0..4 {
        let client = client(&server).await;
        for _ in 0..25 {
            unread.push(client.clone().follow_history(follow(0)).await.expect("it follows"));
            assert!(figure(&server, "abide_bytes_in_flight").await <= 48 << 20);
        }
    }
    is_served(&*transport).await;
    assert!(figure(&server, "abide_bytes_in_flight").await <= 48 << 20);
    assert_eq!(evictions(&server, "greedy").await, 0);
}

/// A worker with credit for a thousand tasks, which reads none of them.
async fn deaf_worker(server: &Server) -> Streaming<wire::ServerFrame> {
    let hello = wire::Hello {
        protocol_version: PROTOCOL_VERSION,
        session: "deaf".into(),
        identity: "test".into(),
        ..wire::Hello::default()
    };
    let credit = wire::Credit {
        namespace: "default".into(),
        queue: "queue".into(),
        kind: wire::WorkKind::Workflow.into(),
        credits: 1_000,
    };
    let frame = wire::WorkerFrame {
        hello: Some(hello),
        credits: vec![credit],
        ..wire::WorkerFrame::default()
    };
    let said = stream::iter([frame]).chain(stream::pending());
    let mut deaf = WorkersClient::new(narrow_channel(server).await);
    deaf.connect(said).await.expect("it connects").into_inner()
}

/// Time stands still, so no task is late: others get the tasks because the stream was given up.
#[tokio::test]
async fn a_worker_that_stops_reading_loses_its_tasks_to_others() {
    let bounds = Bounds { stall_ms: 200, ..Bounds::default() };
    let server = server(Config { bounds, ..config() }).await;
    let transport = transport(&server);
    let told = deaf_worker(&server).await;
    for n in 0..1_000 {
        start(&*transport, &format!("a-workflow-with-a-rather-long-name-{n}"), "hello").await;
    }
    until_unread(&server).await;
    let mut session = connect(&*transport, "other").await;
    for _ in 0..1_000 {
        crate::support::next_work(&mut session).await;
    }
    drop(told);
}

/// Calls that wait hold no more bytes than their connection's share.
#[tokio::test]
async fn calls_that_wait_are_refused_over_the_share() {
    let server = small(Bounds::default()).await;
    let transport = transport(&server);
    start(&*transport, "hello", "hello").await;
    let update = |number| {
        let request = UpdateRequest {
            name: "never".into(),
            input: vec![Payload::new(vec![7; 100 << 10]).to_wire()],
            ..UpdateRequest::default()
        };
        let call = Asked::Update(wire::UpdateRunRequest {
            target: Some(target("hello").into()),
            update: format!("update-{number}"),
            request: Some(request),
            until: wire::UpdateWait::Completed.into(),
            ..wire::UpdateRunRequest::default()
        });
        let calls = vec![NumberedCall { number, call: Some(call) }];
        CallsFrame { calls, ..CallsFrame::default() }
    };
    let frames = stream::iter((0..10).map(update)).chain(stream::pending());
    let mut answers =
        client(&server).await.calls(frames).await.expect("the stream begins").into_inner();
    let what = "bytes of the connection's calls in flight".into();
    let limit = CallError::Refused(Refusal::Limit(Exceeded { what, limit: 512 << 10 }));
    let mut refused = 0;
    while refused < 5 {
        let frame = answers.message().await.expect("it goes on").expect("more");
        for answer in frame.answers {
            let Some(Answer::Error(detail)) = answer.answer else { panic!("{answer:?}") };
            assert_eq!(from_detail(detail), limit);
            refused += 1;
        }
    }
}

/// Answers count from when they exist, so that a client which reads none of them gets few.
#[tokio::test]
async fn answers_wait_for_a_client_that_does_not_read() {
    let server = small(Bounds { stall_ms: 300, ..Bounds::default() }).await;
    let others = transport(&server);
    described_run(&*others).await;
    let describe = |number| {
        let request = wire::DescribeRunRequest { target: Some(target("hello").into()) };
        NumberedCall { number, call: Some(Asked::Describe(request)) }
    };
    let frame = CallsFrame { calls: (0..200).map(describe).collect(), ..CallsFrame::default() };
    let frames = stream::iter([frame]).chain(stream::pending());
    let mut greedy = AbideClient::new(narrow_channel(&server).await);
    let unread = greedy.calls(frames).await.expect("the stream begins");
    while evictions(&server, "unread").await == 0 {
        assert!(figure(&server, "abide_bytes_in_flight").await < 3 << 20);
        tokio::task::yield_now().await;
    }
    drop(unread);
    is_served(&*others).await;
}

/// The transport does not even ask for the answer while the client has no window for it.
#[tokio::test]
async fn an_answer_without_a_window_is_given_up() {
    let server = small(Bounds { stall_ms: 100, ..Bounds::default() }).await;
    described_run(&*transport(&server)).await;
    let endpoint = Channel::from_shared(format!("http://{}", server.grpc_address()));
    let endpoint = endpoint.expect("a good address").initial_stream_window_size(0);
    let mut client = AbideClient::new(endpoint.connect().await.expect("the server listens"));
    let request = wire::DescribeRunRequest { target: Some(target("hello").into()) };
    let mut call = pin!(client.describe_run(request));
    tokio::select! {
        answer = &mut call => panic!("there is no window for {answer:?}"),
        () = until_unread(&server) => {}
    }
    assert!(figure(&server, "abide_bytes_in_flight").await < 64 << 10);
}

/// Clients that ask for the schema are read by the transport.
#[tokio::test]
async fn an_unfinished_question_for_the_schema_counts_and_is_given_up() {
    const SCHEMA: &str = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
    let patient = small(Bounds::default()).await;
    let greedy = channel(&patient).await;
    let held = join_all((0..100).map(|_| begin(greedy.clone(), SCHEMA, 60 << 10))).await;
    while evictions(&patient, "greedy").await == 0 {
        tokio::task::yield_now().await;
    }
    drop(held);
    let server = small(Bounds { stall_ms: 100, ..Bounds::default() }).await;
    let held = begin(channel(&server).await, SCHEMA, 60 << 10).await;
    while evictions(&server, "unfinished").await == 0 {
        tokio::task::yield_now().await;
    }
    drop(held);
}

/// A connection that has said that it speaks HTTP/2 and nothing else.
async fn idle(server: SocketAddr, from: [u8; 4]) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind((from, 0).into()).expect("an address of this machine");
    let mut stream = socket.connect(server).await.expect("the server listens");
    let hello = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    stream.write_all(hello).await.expect("it is open");
    stream
}

/// The server has taken the connection: it says its settings.
async fn taken(stream: &mut TcpStream) -> bool {
    let mut header = [0; 9];
    stream.read_exact(&mut header).await.is_ok() && header[3] == 4
}

const LOCAL: [u8; 4] = [127, 0, 0, 1];
const OTHER: [u8; 4] = [127, 0, 0, 2];

async fn ended(mut connection: TcpStream) {
    let mut said = Vec::new();
    // However it ends, it has ended.
    drop(connection.read_to_end(&mut said).await);
}

#[tokio::test]
async fn connections_that_are_idle_make_place_and_those_that_work_do_not() {
    let bounds = Bounds { connections: 4, ..Bounds::default() };
    let server = server(Config { bounds, ..config() }).await;
    let (waiting, working) = (transport(&server), transport(&server));
    start(&*waiting, "hello", "hello").await;
    let mut held = pin!(ask(&*waiting, AwaitClose { target: target("hello") }));
    assert!(held.as_mut().now_or_never().is_none());
    let mut session = connect(&*working, "worker").await;
    let mut before = Vec::new();
    for _ in 0..2 {
        let mut stream = idle(server.grpc_address(), LOCAL).await;
        assert!(taken(&mut stream).await);
        before.push(stream);
    }
    for _ in 0..20 {
        let mut stream = idle(server.grpc_address(), LOCAL).await;
        assert!(taken(&mut stream).await);
        before.push(stream);
        ended(before.remove(0)).await;
    }
    assert_eq!(evictions(&server, "idle").await, 20);
    // The session is the one from before, and so is the call.
    crate::support::next_work(&mut session).await;
    assert!(held.now_or_never().is_none());
}

/// The HTTP listener has places of its own, with the same rule.
#[tokio::test]
async fn idle_connections_to_the_http_listener_make_place() {
    let bounds = Bounds { connections: 2, ..Bounds::default() };
    let server = server(Config { bounds, ..config() }).await;
    let mut idle = Vec::new();
    for _ in 0..5 {
        idle.push(TcpStream::connect(server.http_address()).await.expect("it listens"));
        assert!(get(server.http_address(), "/healthz").await.contains("alive"));
    }
    for stream in idle.drain(..3) {
        ended(stream).await;
    }
}

#[tokio::test]
async fn an_address_has_no_more_than_its_share() {
    let bounds = Bounds { connections: 10, connections_per_address: 2, ..Bounds::default() };
    let server = server(Config { bounds, ..config() }).await;
    let (first, second) = (transport(&server), transport(&server));
    let sessions = [connect(&*first, "first").await, connect(&*second, "second").await];
    let refused = count(&*transport(&server)).await;
    let refused = refused.expect_err("there is no place").to_string();
    assert!(refused.contains("127.0.0.1 has 2 connections, all of them busy"), "{refused}");
    assert!(refused.contains("bounds.connections_per_address"), "{refused}");
    ended(idle(server.grpc_address(), LOCAL).await).await;
    assert!(taken(&mut idle(server.grpc_address(), OTHER).await).await);
    let [session, _] = sessions;
    drop((session, first));
    // A place is free as soon as the server has noticed.
    let again = async {
        while count(&*transport(&server)).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), again).await.expect("it is taken in the end");
}

#[tokio::test]
async fn a_large_request_does_not_wait_for_its_own_bytes() {
    let server = small(Bounds::default()).await;
    let mut client = client(&server).await;
    let target = || {
        let workflow = wire_key(&"x".repeat(200 << 10));
        Some(wire::RunTarget { workflow: Some(workflow), run: None })
    };
    let page = wire::GetHistoryRequest { target: target(), ..wire::GetHistoryRequest::default() };
    let described = wire::DescribeRunRequest { target: target() };
    let asked = async {
        let page = client.get_history(page).await.expect_err("no such run");
        let described = client.describe_run(described).await.expect_err("no such run");
        [page, described]
    };
    let refused = tokio::time::timeout(Duration::from_secs(60), asked).await.expect("an answer");
    for status in refused {
        assert_eq!(status.code(), Code::InvalidArgument, "{status}");
    }
}

fn wire_key(workflow: &str) -> abide_core::codec::generated::WorkflowKey {
    let (namespace, workflow) = ("default".to_owned(), workflow.to_owned());
    abide_core::codec::generated::WorkflowKey { namespace, workflow }
}

fn empty_payloads(count: usize) -> UpdateRequest {
    let input = vec![abide_core::codec::generated::Payload::default(); count];
    UpdateRequest { name: "update".into(), input, ..UpdateRequest::default() }
}

/// An update that no worker takes, in a call of its own.
fn update(id: &str, request: UpdateRequest) -> wire::UpdateRunRequest {
    wire::UpdateRunRequest {
        target: Some(target("waiting").into()),
        update: id.into(),
        request: Some(request),
        ..wire::UpdateRunRequest::default()
    }
}

/// An empty payload has two bytes on the wire, and takes fifty times as many in memory.
#[tokio::test]
async fn small_parts_of_waiting_requests_count_as_what_they_take() {
    let server = server(config()).await;
    // On shards of their own: one has no room for two such updates.
    for run in ["waiting", "waiting-0", "waiting-1"] {
        start(&*transport(&server), run, "hello").await;
    }
    let mut single: AbideClient<Channel> = client(&server).await;
    let mut streamed = single.clone();
    let first = update("single", empty_payloads(15_000));
    let waiting = tokio::spawn(async move { single.update_run(first).await });
    while figure(&server, "abide_bytes_in_flight").await < 1_500_000 {
        tokio::task::yield_now().await;
    }
    let calls = (0..2).map(|number| {
        let target = Some(target(&format!("waiting-{number}")).into());
        let update =
            wire::UpdateRunRequest { target, ..update("streamed", empty_payloads(15_000)) };
        NumberedCall { number, call: Some(Asked::Update(update)) }
    });
    let frame = CallsFrame { calls: calls.collect(), ..CallsFrame::default() };
    let frames = stream::iter([frame]).chain(stream::pending());
    let answers = streamed.calls(frames).await.expect("a stream").into_inner();
    while figure(&server, "abide_bytes_in_flight").await < 3 * 1_500_000 {
        tokio::task::yield_now().await;
    }
    drop((waiting, answers, streamed));
}

/// A request that waits for its answer has no claim to the room for messages that arrive.
#[tokio::test]
async fn waiting_updates_leave_room_for_large_messages() {
    let server = small(Bounds::default()).await;
    start(&*transport(&server), "waiting", "hello").await;
    let client: AbideClient<Channel> = client(&server).await;
    let large = |bytes| abide_core::codec::generated::Payload {
        data: vec![7; bytes].into(),
        ..abide_core::codec::generated::Payload::default()
    };
    let waiting = (0..2).map(|number| {
        let request = UpdateRequest {
            name: "update".into(),
            input: vec![large(250_000)],
            ..UpdateRequest::default()
        };
        let (mut client, id) = (client.clone(), number.to_string());
        tokio::spawn(async move { client.update_run(update(&id, request)).await })
    });
    let waiting: Vec<_> = waiting.collect();
    while figure(&server, "abide_bytes_in_flight").await < 500_000 {
        tokio::task::yield_now().await;
    }
    let signal = wire::Signal {
        name: "signal".into(),
        input: vec![large(100_000)],
        ..wire::Signal::default()
    };
    let signal = wire::SignalRunRequest {
        target: Some(target("waiting").into()),
        signal: Some(signal),
        ..wire::SignalRunRequest::default()
    };
    client.clone().signal_run(signal).await.expect("it does not wait for the updates");
    let refused = client.clone().update_run(update("another", empty_payloads(1))).await;
    let refused = refused.expect_err("the connection has its share of waiting bytes");
    assert!(refused.message().contains("bytes of the connection's calls in flight"), "{refused}");
    waiting.iter().for_each(tokio::task::JoinHandle::abort);
}
