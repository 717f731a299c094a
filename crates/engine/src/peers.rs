//! The way to the other nodes of a cluster. A node is known by the address at which others reach it.

use std::{collections::BTreeSet, future::Future, pin::Pin};

use abide_core::{
    operation::{AnyAnswer, CallError, RunOperation},
    report::{Report, ReportAnswer},
};
pub use abide_shard::node::PeerMessage;

/// What another node answers.
pub type PeerAnswer<T> = Pin<Box<dyn Future<Output = Result<T, CallError>> + Send>>;

/// The way to other nodes.
pub trait Peers: Send + Sync + 'static {
    /// These are the other nodes from now on. Links to them are kept, others are given up; the engine
    /// is told of each link that begins or ends.
    fn keep(&self, nodes: BTreeSet<String>);

    /// Performs an operation at a node, which passes it on to nobody. [`CallError::NotServed`] if it did
    /// not get there.
    fn ask(&self, node: &str, operation: Box<RunOperation>) -> PeerAnswer<AnyAnswer>;

    /// Tells a node what a worker says of its work, in the same way.
    fn report(&self, node: &str, report: Report) -> PeerAnswer<ReportAnswer>;

    /// Tells a node something, in order, without waiting for anything. What cannot be told is lost, as is
    /// what is in flight when the link ends; the engine is told of the end.
    fn send(&self, node: &str, message: PeerMessage);
}
