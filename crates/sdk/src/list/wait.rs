//! What runs wait for, of one run and in lists, and which waits to list.

use std::fmt;

use abide_core::{
    codec,
    event::{Approval, Mover, WaitDetails},
    ids::{NamespaceId, RunId, TimerId, WorkflowId},
    list,
    payload::PayloadMap,
    run,
};

use super::{WaitEnd, WaitKind, WaitPosition};
use crate::{
    Timestamp,
    approval::concerns,
    payload::{PayloadError, PayloadValue},
};

/// Something that a run waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Wait {
    /// Identifies the wait within its run.
    pub key: WaitKey,
    /// What is waited for.
    pub kind: WaitKind,
    /// The name of the signal, the key of the condition or approval, or the id of the timer.
    pub name: String,
    /// When the wait began.
    pub since: Timestamp,
    /// When the wait ends at the latest; none without a deadline.
    pub until: Option<Timestamp>,
    /// The timer of the deadline; none without a deadline.
    pub timer: Option<TimerId>,
    /// What the wait is about, in a few words for people; empty if the code says nothing.
    pub subject: String,
    /// The people and roles that may act; empty if anyone may.
    pub actors: Vec<String>,
    /// The latest time to which clients may move the deadline.
    pub not_after: Option<Timestamp>,
    /// How often clients may move the deadline.
    pub max_extensions: Option<u32>,
    /// How often clients have moved the deadline.
    pub extensions: u32,
    /// The identity of the client that moved the deadline last; none if the code did, or if it was
    /// not moved.
    pub extended_by: Option<String>,
    data: PayloadMap,
}

/// A wait in a list of the waits of many runs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WaitRow {
    /// The id of the workflow that waits.
    pub workflow: WorkflowId,
    /// The type name of the workflow.
    pub workflow_type: String,
    /// The run that waits.
    pub run: RunId,
    /// Identifies the wait within its run.
    pub key: WaitKey,
    /// What is waited for.
    pub kind: WaitKind,
    /// The name of the signal, the key of the condition or approval, or the id of the timer.
    pub name: String,
    /// When the wait began.
    pub since: Timestamp,
    /// When the wait ends at the latest; none without a deadline.
    pub until: Option<Timestamp>,
    /// The timer of the deadline; none without a deadline.
    pub timer: Option<TimerId>,
    /// What the wait is about, in a few words for people; empty if the code says nothing.
    pub subject: String,
    /// The people and roles that may act; empty if anyone may.
    pub actors: Vec<String>,
    /// The row's position in lists: a page that begins [`after`](WaitFilter::after) it goes on from
    /// here.
    pub position: WaitPosition,
    pub(crate) data: PayloadMap,
    /// How to answer, if a person decides.
    pub(crate) approval: Option<Approval>,
}

/// Identifies a wait within its run. It displays as the id of the timer or of the condition.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WaitKey(pub(crate) run::WaitKey);

impl fmt::Display for WaitKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Wait {
    pub(crate) fn of(wait: run::ShownWait) -> Self {
        let WaitDetails { subject, actors, data, .. } = wait.details.unwrap_or_default();
        let extended_by = wait.moved_by.and_then(|mover| match mover {
            Mover::Code => None,
            Mover::Outside { identity, .. } => Some(identity),
        });
        Self {
            key: WaitKey(wait.key),
            kind: wait.kind.into(),
            name: wait.name,
            since: wait.since,
            until: finite(wait.until),
            timer: wait.timer,
            subject,
            actors,
            not_after: wait.guards.not_after,
            max_extensions: wait.guards.max_extensions,
            extensions: wait.moves,
            extended_by,
            data,
        }
    }

    /// What can end the wait. Cancelling it always can.
    pub fn ended_by(&self) -> Vec<WaitEnd> {
        ended_by(self.kind, self.until)
    }

    /// A named value that the code shows with the wait.
    pub fn data<T: PayloadValue>(&self, name: &str) -> Option<Result<T, PayloadError>> {
        decoded(&self.data, name)
    }

    /// The names of all values that the code shows with the wait.
    pub fn data_names(&self) -> impl Iterator<Item = &str> {
        self.data.keys().map(String::as_str)
    }

    /// Whether a person with one of these names or roles may act.
    pub fn concerns(&self, names: &[&str]) -> bool {
        concerns(&self.actors, names)
    }
}

impl WaitRow {
    /// The row; none if its key is of a kind that this version does not know.
    pub(crate) fn of(row: list::WaitRow) -> Option<Self> {
        let position = WaitPosition(row.position());
        // A row whose details are damaged is still worth showing.
        let details = codec::decode_wait_details(row.details).ok().flatten();
        let WaitDetails { subject, actors, data, approval } = details.unwrap_or_default();
        Some(Self {
            workflow: row.workflow,
            workflow_type: row.workflow_type,
            run: row.run,
            key: WaitKey(run::WaitKey::from_bytes(&row.wait)?),
            kind: row.kind.into(),
            name: row.name,
            since: row.since,
            until: finite(row.until),
            timer: row.timer,
            subject,
            actors,
            position,
            data,
            approval,
        })
    }

    /// What can end the wait. Cancelling it always can.
    pub fn ended_by(&self) -> Vec<WaitEnd> {
        ended_by(self.kind, self.until)
    }

    /// A named value that the code shows with the wait.
    pub fn data<T: PayloadValue>(&self, name: &str) -> Option<Result<T, PayloadError>> {
        decoded(&self.data, name)
    }

    /// The names of all values that the code shows with the wait.
    pub fn data_names(&self) -> impl Iterator<Item = &str> {
        self.data.keys().map(String::as_str)
    }

    /// Whether a person with one of these names or roles may act.
    pub fn concerns(&self, names: &[&str]) -> bool {
        concerns(&self.actors, names)
    }
}

/// The end of a wait, which the engine sorts by; none for the one that means no end.
fn finite(until: Timestamp) -> Option<Timestamp> {
    (!until.is_never()).then_some(until)
}

fn ended_by(kind: WaitKind, until: Option<Timestamp>) -> Vec<WaitEnd> {
    let ends = list::WaitKind::from(kind).ended_by(until.unwrap_or(Timestamp::NEVER));
    ends.into_iter().map(WaitEnd::from).collect()
}

pub(crate) fn decoded<T: PayloadValue>(
    data: &PayloadMap,
    name: &str,
) -> Option<Result<T, PayloadError>> {
    data.get(name).map(|payload| T::from_payload(Some(payload)))
}

/// Which waits to list. A new filter matches all waits of the client's namespace; each method narrows
/// it: `WaitFilter::new().kind(WaitKind::Signal).name("decide")`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use = "a filter does nothing until it is passed to a client"]
pub struct WaitFilter(list::WaitFilter);

impl WaitFilter {
    /// A filter that matches all waits.
    pub fn new() -> Self {
        Self::default()
    }

    /// Only waits of this workflow id.
    pub fn workflow(mut self, workflow: impl Into<WorkflowId>) -> Self {
        self.0.workflow = Some(workflow.into());
        self
    }

    /// Only waits of workflows of this type.
    pub fn workflow_type(mut self, name: impl Into<String>) -> Self {
        self.0.workflow_type = Some(name.into());
        self
    }

    /// Only waits of this kind.
    pub fn kind(mut self, kind: WaitKind) -> Self {
        self.0.kind = Some(kind.into());
        self
    }

    /// Only waits of this name: of a signal, condition, approval or timer. Needs a kind too.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.0.name = Some(name.into());
        self
    }

    /// Only waits that end at this time or before.
    pub const fn until(mut self, until: Timestamp) -> Self {
        self.0.until = Some(until);
        self
    }

    /// Only waits that began before this time.
    pub const fn since_before(mut self, before: Timestamp) -> Self {
        self.0.since_before = Some(before);
        self
    }

    /// Only waits that follow this position in the list.
    pub fn after(mut self, position: WaitPosition) -> Self {
        self.0.after = Some(position.0);
        self
    }

    pub(crate) fn in_namespace(self, namespace: &NamespaceId) -> list::WaitFilter {
        list::WaitFilter { namespace: Some(namespace.clone()), ..self.0 }
    }
}
