//! What is too large for the server fails alone: whoever shares its stream notices nothing.

use std::{sync::Arc, time::Duration};

use abide::{Client, Context, Worker};
use abide_core::{
    limits::Limits,
    operation::{AwaitClose, CallError, Closed, Started, Terminate},
    payload::Payload,
};
use abide_sdk::transport::ask;
use abide_sdk::{activities, workflow};
use abide_server::{Bounds, Config, Server};
use futures_util::future::join_all;
use tokio::sync::Barrier;

use crate::support::{config, server, start, start_call, target, transport};

const MESSAGE_BYTES: usize = 4096;
const OTHERS: usize = 50;

async fn small_server() -> Server {
    let bounds = Bounds { message_bytes: MESSAGE_BYTES, ..Bounds::default() };
    server(Config { bounds, ..config() }).await
}

/// Activities that end together, when all of them run.
struct Results(Barrier);

#[activities]
impl Results {
    #[activity]
    async fn large(&self) -> String {
        self.0.wait().await;
        "x".repeat(2 * MESSAGE_BYTES)
    }

    #[activity]
    async fn small(&self) -> u8 {
        self.0.wait().await;
        1
    }
}

#[derive(Default)]
struct Large;

#[workflow]
impl Large {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<usize> {
        Ok(ctx.activity(Results::large, ()).await?.len())
    }
}

#[derive(Default)]
struct Small;

#[workflow]
impl Small {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<u8> {
        ctx.activity(Results::small, ()).await
    }
}

#[tokio::test]
async fn a_result_that_is_too_large_fails_its_own_activity() {
    let server = small_server().await;
    let client = Client::new(transport(&server));
    let worker = Worker::new(&client)
        .build_id("test")
        .workflow::<Large>()
        .workflow::<Small>()
        .activities(Results(Barrier::new(OTHERS + 1)))
        .max_concurrent_activities(4 * OTHERS);
    let test = async {
        let large = client.start::<Large>("large", ()).await.expect("it starts");
        let mut others = Vec::new();
        for n in 0..OTHERS {
            others.push(client.start::<Small>(format!("small-{n}"), ()).await.expect("it starts"));
        }
        for small in others {
            assert_eq!(small.result().await.expect("it completes"), 1);
        }
        let failed = format!("{:?}", large.result().await.expect_err("it cannot complete"));
        assert!(failed.contains("the server accepts messages of up to 4096"), "{failed}");
    };
    // Whoever lost an answer to another's frame would wait for a time that stands still.
    let life = worker.run_until(Box::pin(test));
    let ended = tokio::time::timeout(Duration::from_secs(30), life).await;
    ended.expect("all have their results").expect("it works");
    server.shutdown().await.expect("it stops");
}

#[derive(Default)]
struct Archive;

#[workflow]
impl Archive {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<()> {
        ctx.receive(Self::END).await
    }

    #[signal]
    fn end();

    #[query]
    fn pages(&self, bytes: usize) -> String {
        "x".repeat(bytes)
    }

    #[update]
    fn print(&mut self, bytes: usize) -> String {
        "x".repeat(bytes)
    }
}

/// What is too large for a message and what is too large for the engine.
#[tokio::test]
async fn who_asks_a_query_or_an_update_is_told_that_the_answer_is_too_large() {
    let server = server(config()).await;
    let client = Client::new(transport(&server));
    let worker = Worker::new(&client).build_id("test").workflow::<Archive>();
    let test = async {
        let archive = client.start::<Archive>("archive", ()).await.expect("it starts");
        let bound = Limits::default().payload_bytes;
        for (bytes, named) in [(bound, bound), (17 << 20, Bounds::default().message_bytes)] {
            let failed = archive.query(Archive::PAGES, bytes).await.expect_err("it is too large");
            assert!(failed.to_string().contains(&named.to_string()), "{failed}");
        }
        let failed = archive.update(Archive::PRINT, bound).await.expect_err("it is too large");
        assert!(failed.to_string().contains(&bound.to_string()), "{failed}");
        assert_eq!(archive.query(Archive::PAGES, 2).await.expect("it fits"), "xx");
    };
    // Whoever is told nothing would wait for a time that stands still.
    let ended = tokio::time::timeout(Duration::from_secs(30), worker.run_until(test)).await;
    ended.expect("all are told").expect("it works");
    server.shutdown().await.expect("it stops");
}

#[tokio::test]
async fn a_call_that_is_too_large_fails_alone() {
    let server = small_server().await;
    let transport = transport(&server);
    start(&*transport, "waited-for", "hello").await;
    let waiting = tokio::spawn({
        let transport = Arc::clone(&transport);
        async move { ask(&*transport, AwaitClose { target: target("waited-for") }).await }
    });
    let starts = (0..=OTHERS).map(|n| {
        let mut call = start_call(&format!("hello-{n}"), "hello");
        if n == 0 {
            call.spec.input = vec![Payload::new("x".repeat(2 * MESSAGE_BYTES))];
        }
        ask(&*transport, call)
    });
    let mut started = join_all(starts).await.into_iter();
    match started.next() {
        Some(Err(CallError::Invalid(invalid))) => {
            assert_eq!(invalid.field, "call");
            assert!(invalid.problem.contains("messages of up to 4096"), "{invalid}");
        }
        other => panic!("too large: {other:?}"),
    }
    for started in started {
        assert!(matches!(started, Ok(Started { .. })), "{started:?}");
    }
    let terminate = Terminate {
        target: target("waited-for"),
        reason: "enough".into(),
        identity: "test".into(),
        details: Vec::new(),
        key: None,
    };
    ask(&*transport, terminate).await.expect("it is terminated");
    let closed = waiting.await.expect("no panic");
    assert!(matches!(closed, Ok(Closed { .. })), "{closed:?}");
}
