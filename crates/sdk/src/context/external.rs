//! Signals and cancel requests to other workflows.

use std::{fmt, marker::PhantomData, rc::Rc};

use abide_core::{
    command::Ask,
    event::Target,
    ids::{EventNumber, RunId, WorkflowId},
    payload::PayloadMap,
};

use super::{
    operation::{Operation, OperationResult, Progress, awaitable},
    site::Site,
};
use crate::{
    arguments::{ArgumentList, IntoArguments},
    definition::{SignalDef, Workflow},
    error::{Error, ExternalFailure, Result},
    executor::{Board, Resolution},
    payload::PayloadError,
};

/// Another workflow of the same namespace; see [`Context::external`](super::Context::external).
pub struct ExternalWorkflow<C> {
    board: Rc<Board>,
    target: Target,
    workflow: PhantomData<fn() -> C>,
}

impl<C: Workflow> ExternalWorkflow<C> {
    pub(super) fn new(board: Rc<Board>, workflow: WorkflowId) -> Self {
        let workflow = board.neighbour(workflow);
        let target = Target { workflow, run: None, child: None };
        Self { board, target, workflow: PhantomData }
    }

    /// The child of this run that was started by the event `initiated`.
    pub(super) fn of_child(
        board: Rc<Board>,
        workflow: WorkflowId,
        initiated: Option<EventNumber>,
    ) -> Self {
        let mut external = Self::new(board, workflow);
        external.target.child = initiated;
        external
    }

    /// The same workflow, but only this run of it instead of the current one.
    #[must_use]
    pub fn run(&self, run: RunId) -> C::External {
        let mut only = self.clone();
        only.target.run = Some(run);
        only.into()
    }

    /// Sends a signal; resolves when it is delivered to the other workflow.
    #[track_caller]
    pub fn signal<I: ArgumentList>(
        &self,
        signal: SignalDef<C, I>,
        input: impl IntoArguments<I>,
    ) -> ExternalCall {
        let (target, header) = (self.target.clone(), PayloadMap::new());
        let name = signal.name().into();
        let input = signal.encode(&input.into_arguments());
        let ask = input.map(|input| Ask::SignalExternal { target, name, input, header });
        self.call(ask)
    }

    /// Asks the other workflow to cancel itself; resolves when the request is delivered.
    #[track_caller]
    pub fn cancel(&self) -> ExternalCall {
        self.call(Ok(self.board.cancel_request(self.target.clone())))
    }

    #[track_caller]
    fn call(&self, ask: Result<Ask, PayloadError>) -> ExternalCall {
        let workflow = self.target.workflow.workflow.clone();
        ExternalCall { board: Site::here(&self.board), workflow, ask: Some(ask) }
    }
}

impl<C> Clone for ExternalWorkflow<C> {
    fn clone(&self) -> Self {
        let (board, target) = (Rc::clone(&self.board), self.target.clone());
        Self { board, target, workflow: PhantomData }
    }
}

impl<C> AsRef<Self> for ExternalWorkflow<C> {
    fn as_ref(&self) -> &Self {
        self
    }
}

impl<C> fmt::Debug for ExternalWorkflow<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExternalWorkflow").field("target", &self.target).finish_non_exhaustive()
    }
}

/// A signal or cancel request to another workflow.
#[derive(Debug)]
#[must_use = "nothing happens until it is awaited"]
pub struct ExternalCall {
    board: Site,
    workflow: WorkflowId,
    ask: Option<Result<Ask, PayloadError>>,
}

awaitable!([] ExternalCall => Result<()>);

impl Operation for ExternalCall {
    type Output = Result<()>;

    fn refused(&self) -> bool {
        self.board.refuses()
    }

    fn begin(&mut self) -> Progress<Result<()>> {
        match self.ask.take() {
            Some(Ok(ask)) => Progress::Waits(self.board.ask_external(ask)),
            Some(Err(error)) => Progress::Done(Err(error.into())),
            None => Progress::Done(Ok(())),
        }
    }

    fn resume(&mut self, answer: OperationResult) -> Progress<Result<()>> {
        Progress::Done(match answer.0 {
            Resolution::External(Err(cause)) => {
                let workflow = self.workflow.clone();
                let cause = cause.into();
                Err(Error::External(Box::new(ExternalFailure { workflow, cause })))
            }
            Resolution::Cancelled => Err(Error::Cancelled),
            _ => Ok(()),
        })
    }
}
