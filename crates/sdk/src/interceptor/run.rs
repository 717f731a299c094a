//! Workflow code, as interceptors see it.

use std::rc::Rc;

use abide_core::{
    ids::{NamespaceId, RunId, WorkflowId},
    payload::{PayloadMap, Payloads},
    time::Timestamp,
};

use super::{Headers, Interceptors, headers};
use crate::{
    executor::Board,
    future::LocalBoxFuture,
    payload::{PayloadError, PayloadValue},
    returned::ReturnedError,
};

/// The main code of a run: its encoded result, or the error that it returned.
pub type RunFuture = LocalBoxFuture<'static, Result<Payloads, ReturnedError>>;

/// The facts about a run. Clones are of the same run.
#[derive(Clone, Debug)]
pub struct RunInfo {
    board: Rc<Board>,
}

/// A signal, query or update that arrives at a run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Message {
    /// What it is.
    pub kind: MessageKind,
    /// The name of the handler.
    pub name: String,
    /// What tells it from others of the run: the number of a signal's event, the id of an update;
    /// empty for a query.
    pub id: String,
    /// The headers that came with it.
    pub headers: Headers,
}

/// The kinds of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MessageKind {
    /// Input without an answer.
    Signal,
    /// A question about the state.
    Query,
    /// Input with an answer.
    Update,
}

/// Something that workflow code is about to ask for.
#[derive(Debug)]
#[non_exhaustive]
pub struct Outgoing<'a> {
    /// What it is.
    pub kind: OutgoingKind,
    /// The type of the activity or workflow, or the name of the signal; empty for a sleep.
    pub name: &'a str,
    /// The id of the child, or of the workflow that gets the signal.
    pub workflow: Option<&'a WorkflowId>,
    /// The headers that travel with it. Those of a sleep go nowhere.
    pub headers: Headers,
}

/// The kinds of things that workflow code asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OutgoingKind {
    /// An activity.
    Activity,
    /// An activity in the worker of the workflow.
    LocalActivity,
    /// A child.
    Child,
    /// A signal to another workflow.
    Signal,
    /// A sleep.
    Sleep,
    /// The next run, after this one has closed. Its headers are those of this run.
    ContinueAsNew,
}

impl RunInfo {
    pub(crate) const fn new(board: Rc<Board>) -> Self {
        Self { board }
    }

    /// The namespace of the workflow.
    pub fn namespace(&self) -> &NamespaceId {
        &self.board.started().namespace
    }

    /// The workflow's id, which stays the same when another run follows this one.
    pub fn workflow_id(&self) -> &WorkflowId {
        &self.board.started().workflow
    }

    /// The id of this run, unique among all runs.
    pub fn run_id(&self) -> RunId {
        self.board.started().run
    }

    /// The type of the workflow.
    pub fn workflow_type(&self) -> &str {
        &self.board.started().spec.workflow_type
    }

    /// The number of this run among the retries of the workflow, from 1.
    pub fn attempt(&self) -> u32 {
        self.board.started().attempt
    }

    /// A header of the run, as its start or its parent has set it.
    pub fn header<T: PayloadValue>(&self, name: &str) -> Result<Option<T>, PayloadError> {
        headers::read(self.header_map(), name)
    }

    /// All headers of the run.
    pub fn headers(&self) -> Headers {
        Headers(self.header_map().clone())
    }

    pub(crate) fn header_map(&self) -> &PayloadMap {
        &self.board.started().spec.header
    }

    /// The signal or update whose handler is running; none in other code.
    pub fn handled(&self) -> Option<Rc<Message>> {
        self.board.handled()
    }

    /// When the run began: the same on replay.
    pub fn began(&self) -> Timestamp {
        self.board.began()
    }

    /// The time of the current task: the same on replay.
    pub fn now(&self) -> Timestamp {
        self.board.now()
    }

    /// Whether the current step is in history already: what observers did the first time they must
    /// not do again. No decision about the run may depend on it.
    pub fn is_replaying(&self) -> bool {
        self.board.replaying()
    }
}

impl Interceptors {
    pub(crate) fn around_run(&self, run: &RunInfo, code: RunFuture) -> RunFuture {
        // The first interceptor is the outermost, so it wraps last.
        self.iter().rev().fold(code, |code, interceptor| interceptor.run(run, code))
    }

    pub(crate) fn message(&self, run: &RunInfo, message: &Message) -> Result<(), String> {
        self.iter().try_for_each(|interceptor| interceptor.message(run, message))
    }

    /// Shows the call to all; returns its headers.
    pub(crate) fn outgoing(&self, run: &RunInfo, mut call: Outgoing<'_>) -> PayloadMap {
        for interceptor in self.iter() {
            interceptor.outgoing(run, &mut call);
        }
        call.headers.0
    }
}
