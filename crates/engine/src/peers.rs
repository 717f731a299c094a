//! The transport to the other nodes of a cluster. A node is identified by the address at which
//! others reach it.

use std::{collections::BTreeSet, future::Future, pin::Pin};

use abide_core::{
    operation::{AnyAnswer, CallError, RunOperation},
    report::{Report, ReportAnswer},
};
pub use abide_shard::node::PeerMessage;

/// The answer of another node.
pub type PeerAnswer<T> = Pin<Box<dyn Future<Output = Result<T, CallError>> + Send>>;

/// A transport to other nodes.
pub trait Peers: Send + Sync + 'static {
    /// Sets the other nodes: keeps links to these and closes all others. The engine is notified of
    /// each link that opens or closes.
    fn keep(&self, nodes: BTreeSet<String>);

    /// Performs an operation on a node, which does not forward it. [`CallError::NotServed`] if the
    /// operation did not reach the node.
    fn ask(&self, node: &str, operation: Box<RunOperation>) -> PeerAnswer<AnyAnswer>;

    /// Delivers a worker's report to a node, in the same way.
    fn report(&self, node: &str, report: Report) -> PeerAnswer<ReportAnswer>;

    /// Sends a message to a node, in order and without blocking. A message is lost if there is no
    /// link, or if the link closes while it is in flight; the engine is notified when a link
    /// closes.
    fn send(&self, node: &str, message: PeerMessage);
}

/// The transport of a node that no other can reach: it must be the only one.
pub struct NoPeers;

impl Peers for NoPeers {
    fn keep(&self, _: BTreeSet<String>) {}

    fn ask(&self, _: &str, _: Box<RunOperation>) -> PeerAnswer<AnyAnswer> {
        Box::pin(async { Err(CallError::NotServed) })
    }

    fn report(&self, _: &str, _: Report) -> PeerAnswer<ReportAnswer> {
        Box::pin(async { Err(CallError::NotServed) })
    }

    fn send(&self, _: &str, _: PeerMessage) {}
}
