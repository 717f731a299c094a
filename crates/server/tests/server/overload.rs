//! Clients that ask for much and read nothing, or say very much at once: what the server holds for
//! them is bounded, and others are served.

use std::{
    iter::repeat_with,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use crate::support::count;
use abide_core::{
    event::SignalReceived,
    limits::Exceeded,
    operation::{CallError, Signal, Terminate},
    payload::Payload,
    run::Refusal,
};
use abide_proto::{
    PROTOCOL_VERSION,
    error::{from_detail, from_status},
    generated::{
        self as wire, AnswersFrame, CallsFrame, Completion, Hello, NumberedAnswer, NumberedCall,
        WorkerFrame, numbered_answer::Answer, numbered_call::Call as Asked,
        workers_client::WorkersClient,
    },
};
use abide_sdk::transport::Transport;
use abide_sdk::transport::ask;
use abide_server::{Bounds, Config, Server};
use abide_store::Store;
use prost::Message;
use tokio_stream::{StreamExt as _, iter, once, pending};
use tonic::{Code, Streaming};

use crate::{
    observed::ObservedStore,
    support::{channel, client, config, server, start, target, transport},
};

fn bounded(bounds: Bounds) -> Config {
    Config { bounds, ..config() }
}

/// A stream of calls on which one frame was sent, and more may follow.
async fn calls(server: &Server, calls: Vec<NumberedCall>) -> Streaming<AnswersFrame> {
    let frame = CallsFrame { calls, ..CallsFrame::default() };
    let mut client = client(server).await.max_decoding_message_size(usize::MAX);
    client.calls(once(frame).chain(pending())).await.expect("the stream begins").into_inner()
}

fn numbered(calls: impl IntoIterator<Item = Asked>) -> Vec<NumberedCall> {
    let number = |(number, call)| NumberedCall { number, call: Some(call) };
    (0..).zip(calls).map(number).collect()
}

/// The frames of so many answers.
async fn frames(answers: &mut Streaming<AnswersFrame>, mut count: usize) -> Vec<AnswersFrame> {
    let mut frames = Vec::new();
    while count > 0 {
        let frame = answers.message().await.expect("no error").expect("more answers");
        count = count.checked_sub(frame.answers.len()).expect("no more answers than calls");
        frames.push(frame);
    }
    frames
}

/// The error that ends the stream.
async fn error_of<T>(mut frames: Streaming<T>) -> tonic::Status {
    loop {
        match frames.message().await {
            Ok(frame) => drop(frame.expect("an error ends the stream")),
            Err(status) => return status,
        }
    }
}

fn refused_for_items(status: &tonic::Status, problem: &str) {
    match from_status(status) {
        CallError::Invalid(invalid) => {
            assert_eq!(invalid.field, "frame");
            assert!(invalid.problem.contains(problem), "{invalid}");
        }
        other => panic!("the frame should be refused: {other:?}"),
    }
}

#[tokio::test]
async fn a_frame_of_very_many_calls_ends_its_stream() {
    let server = server(config()).await;
    let status = error_of(calls(&server, vec![NumberedCall::default(); 4_097]).await).await;
    refused_for_items(&status, "has 4097 items, the limit is 4096");
    let status = error_of(calls(&server, vec![NumberedCall::default(); 100_000]).await).await;
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(status.message().contains("65536 parts"), "{status}");
    assert_eq!(count(&*transport(&server)).await, Ok(0));
}

#[tokio::test]
async fn a_frame_of_very_many_completions_ends_its_stream() {
    let server = server(bounded(Bounds { items_per_frame: 10, ..Bounds::default() })).await;
    let hello = Hello {
        protocol_version: PROTOCOL_VERSION,
        session: "one".into(),
        identity: "test".into(),
        ..Hello::default()
    };
    let hello = WorkerFrame { hello: Some(hello), ..WorkerFrame::default() };
    let frame = |count| WorkerFrame {
        completions: vec![Completion::default(); count],
        ..WorkerFrame::default()
    };
    let mut client = WorkersClient::new(channel(&server).await);
    let said = iter([hello, frame(10), frame(11)]).chain(pending());
    let told = client.connect(said).await.expect("it connects").into_inner();
    let status = error_of(told).await;
    refused_for_items(&status, "has 11 items, the limit is 10");
}

/// Calls over the bound are refused one by one, without a trace of them staying behind.
#[tokio::test]
async fn calls_over_the_bound_of_their_stream() {
    let server = server(bounded(Bounds { calls_per_stream: 2, ..Bounds::default() })).await;
    let transport = transport(&server);
    start(&*transport, "hello", "hello").await;
    let wait =
        || Asked::AwaitClose(wire::AwaitCloseRequest { target: Some(target("hello").into()) });
    let mut answers = calls(&server, numbered((0..1_000).map(|_| wait()))).await;
    let refused = frames(&mut answers, 998).await;
    let what = "calls of the stream".into();
    let limit = CallError::Refused(Refusal::Limit(Exceeded { what, limit: 2 }));
    for NumberedAnswer { number, answer } in refused.into_iter().flat_map(|frame| frame.answers) {
        let Some(Answer::Error(detail)) = answer else { panic!("not an error: {answer:?}") };
        assert!(number >= 2);
        assert_eq!(from_detail(detail), limit);
    }
    let terminate = Terminate {
        target: target("hello"),
        reason: String::new(),
        identity: String::new(),
        details: Vec::new(),
        key: None,
    };
    ask(&*transport, terminate).await.expect("it ends");
    frames(&mut answers, 2).await;
}

/// A run whose log has eight rows of a megabyte.
async fn large_run(transport: &dyn Transport) {
    start(transport, "hello", "hello").await;
    for _ in 0..8 {
        let input = vec![Payload::new(vec![7; 1 << 20])];
        let signal = SignalReceived { name: "go".into(), input, ..SignalReceived::default() };
        let call = Signal { target: target("hello"), signal, extension: Default::default() };
        ask(transport, call).await.expect("it is signalled");
    }
}

/// The most that a page or a frame has: it is full at a mebibyte, and the last item may be larger.
const PAGE_BYTES: usize = (1 << 20) + (1 << 20) + 4096;

#[tokio::test]
async fn pages_and_frames_of_large_rows_are_bounded() {
    let server = server(config()).await;
    let transport = transport(&server);
    large_run(&*transport).await;
    let mut client = client(&server).await;
    let mut request =
        wire::GetHistoryRequest { target: Some(target("hello").into()), ..Default::default() };
    let mut signals = 0;
    loop {
        let page = client.get_history(request.clone()).await.expect("a page").into_inner();
        assert!(page.encoded_len() <= PAGE_BYTES, "{}", page.encoded_len());
        let events = page.history.expect("events").events;
        signals += events.iter().filter(|event| event.encoded_len() > 1 << 20).count();
        if page.next_page_token.is_empty() {
            break;
        }
        request.page_token = page.next_page_token;
    }
    assert_eq!(signals, 8);
    let page = |from| {
        let target = Some(target("hello").into());
        Asked::History(wire::HistoryRowsRequest { target, from, follow: None })
    };
    let mut answers = calls(&server, numbered((0..8).map(page))).await;
    for frame in frames(&mut answers, 8).await {
        assert!(frame.encoded_len() <= PAGE_BYTES + PAGE_BYTES, "{}", frame.encoded_len());
    }
}

/// A server, and how often it reads the log.
async fn counted() -> (Server, Arc<ObservedStore>) {
    let store = Arc::new(ObservedStore::default());
    let server = Server::start(config(), Arc::clone(&store) as Arc<dyn Store>).await;
    let server = server.expect("it starts");
    server.ready().await;
    (server, store)
}

/// Others are served, far longer than the server needs to do all that the unread streams allow.
async fn others_are_served(transport: &dyn Transport) {
    for n in 0..100 {
        start(transport, &format!("other-{n}"), "hello").await;
    }
    assert_eq!(count(transport).await, Ok(101));
}

/// Pages that nobody reads are not read from the store either, but for a few.
#[tokio::test]
async fn a_client_that_asks_for_pages_and_reads_nothing() {
    let (server, store) = counted().await;
    let transport = transport(&server);
    large_run(&*transport).await;
    let page = |_| {
        let target = Some(target("hello").into());
        Asked::History(wire::HistoryRowsRequest { target, from: 0, follow: Some(1) })
    };
    let _unread = calls(&server, numbered((0..4_000).map(page))).await;
    others_are_served(&*transport).await;
    assert!(store.log_reads() <= 50, "{}", store.log_reads());
}

#[tokio::test]
async fn clients_that_follow_histories_and_read_nothing() {
    let (server, store) = counted().await;
    let transport = transport(&server);
    large_run(&*transport).await;
    let mut unread = Vec::new();
    for _ in 0..20 {
        let request = wire::FollowHistoryRequest { target: Some(target("hello").into()), after: 0 };
        unread.push(client(&server).await.follow_history(request).await.expect("it follows"));
    }
    others_are_served(&*transport).await;
    // Of nine pages each: those that the client's window takes, and one that waits for it.
    assert!(store.log_reads() <= 20 * 4, "{}", store.log_reads());
}

/// While answers are not read, calls are not read either, so that the client's own window holds it.
#[tokio::test]
async fn a_client_that_sends_calls_and_reads_nothing() {
    let server = server(config()).await;
    let transport = transport(&server);
    large_run(&*transport).await;
    let sent = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&sent);
    let frames = repeat_with(move || {
        let target = Some(target("hello").into());
        let call = Asked::History(wire::HistoryRowsRequest { target, from: 0, follow: None });
        let number = u64::try_from(count.fetch_add(1, Ordering::SeqCst)).expect("a small number");
        // Nobody waits for these, and they make the frame as large as many.
        let abandoned = vec![u64::MAX; 4_000];
        CallsFrame { calls: vec![NumberedCall { number, call: Some(call) }], abandoned }
    });
    let _unread = client(&server).await.calls(iter(frames)).await.expect("the stream begins");
    others_are_served(&*transport).await;
    let sent = sent.load(Ordering::SeqCst);
    assert!(sent <= 200, "{sent}");
}
