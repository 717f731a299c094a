//! What is read from the store: histories and lists.

use bytes::Bytes;

use super::RunTarget;
use crate::{
    ids::{EventNumber, RunId},
    list::{RunFilter, RunRow, WaitFilter, WaitRow},
    node::NodeListing,
    time::Timestamp,
};

/// Reads a page of a run's history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct History {
    pub target: RunTarget,
    /// Where the page begins: zero, or the `next` of the page before.
    pub from: u64,
    /// Wait until the run has an event after this one, or is closed.
    pub follow: Option<EventNumber>,
}

/// A page of a run's history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryPage {
    pub run: RunId,
    /// Log rows as they are stored: pieces of a `History` message.
    pub rows: Vec<Bytes>,
    /// Where the next page begins.
    pub next: u64,
    /// There is more already.
    pub more: bool,
    /// The run is closed: nothing will follow the last page.
    pub closed: bool,
}

/// Lists runs, newest first unless their query says otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListRuns {
    /// Which runs, and after which.
    pub filter: RunFilter,
    /// How many; the engine's bound if none is said.
    pub limit: Option<usize>,
}

/// A page of runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRows {
    pub rows: Vec<RunRow>,
    /// What the next page begins after; `None` if there is none.
    pub next: Option<(Timestamp, RunId)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountRuns {
    pub filter: RunFilter,
}

/// How many there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count(pub u64);

/// Lists what runs wait for, by the end of the wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListWaits {
    /// Which waits, and after which.
    pub filter: WaitFilter,
    /// How many; the engine's bound if none is said.
    pub limit: Option<usize>,
}

/// A page of waits. One of large rows ends before its limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitRows {
    pub rows: Vec<WaitRow>,
    /// There may be more.
    pub more: bool,
}

/// Lists the nodes that serve the runs, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListNodes;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nodes(pub Vec<NodeListing>);
