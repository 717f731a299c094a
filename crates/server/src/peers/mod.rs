//! Several servers on one database form a cluster: each serves its share of the shards and talks to
//! the others. `link` is the connection to one other node, `accept` the accepting end,
//! `credentials` how nodes authenticate each other, `proof` how they prove knowledge of the secret,
//! `wary` what they may send before that, `conversion` the messages.

mod accept;
mod conversion;
mod credentials;
mod link;
mod proof;
mod wary;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, Weak},
    time::Duration,
};

use abide_core::{
    operation::{AnyAnswer, CallError, RunOperation},
    report::{Report, ReportAnswer},
};
use abide_engine::{
    Engine,
    peers::{PeerAnswer, PeerMessage, Peers},
};
use abide_proto::{
    CONNECTION_WINDOW, STREAM_WINDOW,
    generated::{peer_answer, peer_call},
};
use tokio::sync::watch;
use tonic::transport::{ClientTlsConfig, Endpoint};

use self::link::{Ends, Link};
pub(crate) use self::{accept::Accept, credentials::Credentials, proof::ProofKey};

use crate::lock::lock;

/// Version of the protocol between nodes.
const PROTOCOL_VERSION: u32 = 2;

/// Time limit for connecting. A live node accepts much sooner.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Silence after which the other node gets a keepalive ping; after as long again without a reply,
/// the link is broken. This limits how long calls wait for an unreachable node.
const SILENCE: Duration = Duration::from_secs(2);

/// The links of a node to all others.
pub(crate) struct PeerLinks {
    own: String,
    credentials: Credentials,
    tls: Option<ClientTlsConfig>,
    /// The engine that receives messages of the other nodes. Set once it has started.
    engine: watch::Sender<Weak<Engine>>,
    links: Mutex<BTreeMap<String, Link>>,
}

impl PeerLinks {
    /// The links of the node whose address is `own`.
    pub(crate) fn new(own: String, credentials: Credentials, tls: Option<ClientTlsConfig>) -> Self {
        let engine = watch::Sender::new(Weak::new());
        Self { own, credentials, tls, engine, links: Mutex::default() }
    }

    /// Sets the engine that receives messages of the other nodes. It may have asked for links
    /// already.
    pub(crate) fn set_engine(&self, engine: Weak<Engine>) {
        self.engine.send_replace(engine);
    }

    fn begin(&self, node: &str) -> Option<Link> {
        let place = self.endpoint(node);
        if place.is_none() {
            tracing::error!(node, "the address of another node is invalid");
        }
        let engine = self.engine.subscribe();
        let (own, credentials) = (self.own.clone(), self.credentials.clone());
        let ends = Ends { own, node: node.to_owned(), credentials };
        Some(Link::keep(ends, place?, engine))
    }

    fn endpoint(&self, node: &str) -> Option<Endpoint> {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let place = Endpoint::from_shared(format!("{scheme}://{node}")).ok()?;
        let place = place
            .connect_timeout(CONNECT_TIMEOUT)
            .http2_keep_alive_interval(SILENCE)
            .keep_alive_timeout(SILENCE)
            .keep_alive_while_idle(true)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW);
        match &self.tls {
            Some(tls) => place.tls_config(tls.clone()).ok(),
            None => Some(place),
        }
    }

    /// Makes a call to a node, if there is a link to it.
    fn call_at(&self, node: &str, call: peer_call::Call) -> PeerAnswer<peer_answer::Answer> {
        match lock(&self.links).get(node) {
            Some(link) => Box::pin(link.call(call)),
            None => Box::pin(async { Err(CallError::NotServed) }),
        }
    }
}

impl Peers for PeerLinks {
    fn keep(&self, nodes: BTreeSet<String>) {
        let mut links = lock(&self.links);
        let gone: Vec<_> = links.keys().filter(|node| !nodes.contains(*node)).cloned().collect();
        let ended: Vec<_> = gone.into_iter().filter_map(|node| links.remove_entry(&node)).collect();
        for node in nodes {
            if !links.contains_key(&node)
                && let Some(link) = self.begin(&node)
            {
                links.insert(node, link);
            }
        }
        drop(links);
        for (node, link) in ended {
            drop(link);
            let engine = self.engine.borrow().upgrade();
            if let Some(engine) = engine {
                engine.unlinked(&node);
            }
        }
    }

    fn ask(&self, node: &str, operation: Box<RunOperation>) -> PeerAnswer<AnyAnswer> {
        match conversion::operation_to_wire(operation) {
            Ok(call) => {
                let answer = self.call_at(node, call);
                Box::pin(async move { conversion::answer_from_wire(answer.await?) })
            }
            Err(failed) => Box::pin(async { Err(failed) }),
        }
    }

    fn report(&self, node: &str, report: Report) -> PeerAnswer<ReportAnswer> {
        let answer = self.call_at(node, conversion::report_to_wire(report));
        Box::pin(async move { conversion::acknowledged_from_wire(answer.await?) })
    }

    fn send(&self, node: &str, message: PeerMessage) {
        if let Some(link) = lock(&self.links).get(node) {
            link.send(message);
        }
    }
}
