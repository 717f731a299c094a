//! Who is no node and speaks as one: it is not heard, and takes the place of nobody.

use std::{sync::Arc, time::Duration};

use crate::support::describe;
use abide_core::{
    codec,
    effect::{Action, Effect},
    event::{SignalReceived, Target},
    ids::RunId,
    operation::Signal,
};
use abide_proto::generated::{
    PeerAnswers, PeerEffect, PeerEffectKey, PeerFrame, PeerHello, PeerMessage,
    peer_message::Message, peers_client::PeersClient,
};
use abide_sdk::transport::ask;
use abide_server::{Config, NodeConfig, Secret, Server};
use abide_store::{Store, memory::MemoryStore};
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::{Code, Status, Streaming};

use crate::support::{channel, config, node_config, start, target, transport, workflow};

async fn node(store: &Arc<MemoryStore>, node: NodeConfig) -> Server {
    let config = Config { node: Some(node), ..config() };
    let server = Server::start(config, Arc::clone(store) as Arc<dyn Store>).await;
    let server = server.expect("it starts");
    server.ready().await;
    server
}

/// A link that somebody opens, with a hello that is as it should be.
struct Raw {
    say: mpsc::UnboundedSender<PeerFrame>,
    answers: Streaming<PeerAnswers>,
}

impl Raw {
    async fn open(server: &Server, address: &str) -> Result<Self, Status> {
        let (say, said) = mpsc::unbounded_channel();
        let (address, nonce) = (address.to_owned(), vec![7; 32].into());
        let hello = Some(PeerHello { protocol_version: 2, address, nonce });
        say.send(PeerFrame { hello, ..PeerFrame::default() }).expect("it is read");
        let mut peers = PeersClient::new(channel(server).await);
        let answers = peers.link(UnboundedReceiverStream::new(said)).await?.into_inner();
        Ok(Self { say, answers })
    }

    fn say(&self, frame: PeerFrame) {
        // The server may have ended the link by now; `end` tells how.
        drop(self.say.send(frame));
    }

    /// How the link ends, after the challenge.
    async fn end(mut self) -> Status {
        let challenge = self.answers.message().await.expect("an answer").expect("a frame");
        assert_eq!(challenge.challenge.len(), 32);
        assert!(challenge.proof.is_empty(), "strangers are shown nothing that is signed");
        self.answers.message().await.expect_err("it is refused")
    }
}

/// A signal for `victim` that says to come from a run.
fn forged() -> PeerMessage {
    let effect = Effect {
        target: Target { workflow: workflow("victim"), run: None, child: None },
        action: Action::Signal {
            name: "forged".into(),
            input: Vec::new(),
            header: Default::default(),
        },
        initiated: Some(5),
    };
    let key = PeerEffectKey {
        shard: workflow("victim").slot().shard().number().into(),
        workflow: Some(codec::Wire::to_wire(&workflow("source"))),
        run: RunId::MAX.as_bytes().to_vec().into(),
        number: 1,
    };
    let effect = codec::encode_effect(&effect);
    PeerMessage { message: Some(Message::Deliver(PeerEffect { key: Some(key), effect })) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_does_not_know_the_secret_is_not_heard_and_displaces_nobody() {
    let store = Arc::new(MemoryStore::default());
    let (one, two) =
        (node(&store, node_config("one")).await, node(&store, node_config("two")).await);
    let transport = transport(&one);
    start(&*transport, "victim", "hello").await;
    let before = describe(&*transport, target("victim")).await.expect("it is there").last_event;
    let proofs: [&[u8]; 3] = [&[], &[0; 32], &[1; 4096]];
    for server in [&one, &two] {
        for proof in proofs {
            // In the name of the other node, whose link it would take over.
            let address = if std::ptr::eq(server, &one) { &two } else { &one }.grpc_address();
            let raw = Raw::open(server, &address.to_string()).await.expect("it is greeted");
            let (proof, messages) = (proof.to_vec().into(), vec![forged()]);
            raw.say(PeerFrame { proof, messages: messages.clone(), ..PeerFrame::default() });
            raw.say(PeerFrame { messages, ..PeerFrame::default() });
            assert_eq!(raw.end().await.code(), Code::Unauthenticated);
        }
    }
    // The nodes still speak with each other: both reach the runs of both.
    for number in 0..20 {
        start(&*transport, &format!("after-{number}"), "hello").await;
    }
    let after = describe(&*transport, target("victim")).await.expect("it is there").last_event;
    assert_eq!(after, before, "nothing was signalled");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_begins_with_a_hello_that_makes_sense() {
    let store = Arc::new(MemoryStore::default());
    let server = node(&store, node_config("one")).await;
    let long = "x".repeat(301);
    let refused = Raw::open(&server, &long).await.err().expect("no host has such a name");
    assert!(refused.message().contains("hello.address"), "{refused}");
    let mut peers = PeersClient::new(channel(&server).await);
    for (hello, problem) in [
        (None, "must be in the first frame"),
        (Some(PeerHello { protocol_version: 1, ..PeerHello::default() }), "protocol_version"),
        (Some(PeerHello { protocol_version: 2, ..PeerHello::default() }), "hello.nonce"),
    ] {
        let frame = PeerFrame { hello, messages: vec![forged()], ..PeerFrame::default() };
        let refused = peers.link(tokio_stream::once(frame)).await.expect_err("it is refused");
        assert!(refused.message().contains(problem), "{refused}");
    }
}

/// What is said between nodes may be large, but not before it is known that they are.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_has_not_proven_to_be_a_node_says_little() {
    let store = Arc::new(MemoryStore::default());
    let server = node(&store, node_config("one")).await;
    let large = PeerFrame { proof: vec![1; 70_000].into(), ..PeerFrame::default() };
    let mut peers = PeersClient::new(channel(&server).await);
    let refused = peers.link(tokio_stream::once(large.clone())).await.expect_err("it is no hello");
    let raw = Raw::open(&server, "127.0.0.1:1").await.expect("it is greeted");
    raw.say(large);
    for refused in [refused, raw.end().await] {
        assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
        assert!(refused.message().contains("the limit is 65536"), "{refused}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_of_different_secrets_do_not_speak() {
    let store = Arc::new(MemoryStore::default());
    let one = node(&store, node_config("one")).await;
    let secret = Some(Secret::draw());
    let two = node(&store, NodeConfig { secret, ..node_config("two") }).await;
    assert_eq!((one.engine().figures().links, two.engine().figures().links), (0, 0));
    let transport = transport(&one);
    let signal = |id: &str| {
        let signal = SignalReceived { name: "go".into(), ..SignalReceived::default() };
        Signal { target: target(id), signal, extension: Default::default() }
    };
    // About half of all runs are at the other node, which cannot be asked.
    let mut unreached = 0;
    for number in 0..20 {
        let call = ask(&*transport, signal(&format!("nobody-{number}")));
        let answer = tokio::time::timeout(Duration::from_millis(100), call).await;
        unreached += usize::from(answer.is_err());
    }
    assert!(unreached > 0);
}

#[tokio::test]
async fn a_server_that_is_alone_has_no_service_for_nodes() {
    let alone = crate::support::server(config()).await;
    let refused = Raw::open(&alone, "127.0.0.1:1").await.err().expect("nobody is there");
    assert_eq!(refused.code(), Code::Unimplemented);
    // So is one on a database that was told of no others.
    let store = Arc::new(MemoryStore::default());
    let hermit = node(&store, NodeConfig { lease_ms: Some(1_000), ..NodeConfig::default() }).await;
    let refused = Raw::open(&hermit, "127.0.0.1:1").await.err().expect("nobody is there");
    assert_eq!(refused.code(), Code::Unimplemented);
    start(&*transport(&hermit), "hello", "hello").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_server_without_a_secret_ends_and_says_why() {
    let store = Arc::new(MemoryStore::default());
    let hermit = || NodeConfig { lease_ms: Some(1_000), ..NodeConfig::default() };
    let first = node(&store, hermit()).await;
    for second in [hermit(), node_config("two")] {
        let config = Config { node: Some(second), ..config() };
        let store = Arc::clone(&store) as Arc<dyn Store>;
        let mut second = Server::start(config, store).await.expect("it starts");
        let why = second.failed().await.to_string();
        assert!(why.contains("abide nodes secret"), "{why}");
        second.shutdown().await.expect("it stops");
    }
    start(&*transport(&first), "hello", "hello").await;
}
