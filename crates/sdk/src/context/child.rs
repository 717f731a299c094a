//! Children: runs that this run starts and may wait for.

use std::{fmt, marker::PhantomData, rc::Rc, time::Duration};

use abide_core::{
    event::{self, ChildSpec, Origin, RunSpec},
    ids::WorkflowId,
    payload::Payloads,
    retry::{self, RetryDecision},
};

use super::{
    OnCancel,
    external::{ExternalCall, ExternalWorkflow},
    operation::{Operation, OperationResult, Pending, Progress, awaitable},
    site::Site,
};
use crate::{
    arguments::{ArgumentList, IntoArguments},
    definition::{SignalDef, Workflow},
    error::{ChildFailure, Error, Result},
    executor::{Child, ChildClosed, Resolution, Subject, Terms, Wait},
    failure::FailureKind,
    payload::{PayloadError, PayloadValue},
    policy::{ParentClosePolicy, ReusePolicy},
    retry::RetryPolicy,
    search::AttributeChange,
};

/// A call of a child; see [`Context::child`](super::Context::child). Awaiting it returns the
/// result.
#[must_use = "nothing happens until it is awaited"]
pub struct ChildCall<C: Workflow> {
    link: ChildLink<C>,
    spec: ChildSpec,
    unsendable: Option<PayloadError>,
    retries: Option<Retries>,
    /// The policy of the call; the default depends on how the child is waited for.
    on_cancel: Option<OnCancel>,
}

/// Recorded retries: each attempt is a separate child, and the delay before it a timer.
struct Retries {
    policy: retry::RetryPolicy,
    /// The number of attempts so far.
    attempts: u32,
    /// The id of the first attempt, which the others extend.
    first: WorkflowId,
}

/// The start of a child; awaiting it returns a handle once the child runs.
#[must_use = "nothing happens until it is awaited"]
pub struct ChildStart<C: Workflow>(ChildCall<C>);

/// A running child. Dropping the handle does not affect the child.
pub struct ChildHandle<C: Workflow> {
    link: ChildLink<C>,
    external: ExternalWorkflow<C>,
    on_cancel: OnCancel,
}

/// The result of a running child.
#[must_use = "nothing happens until it is awaited"]
pub struct ChildResult<C: Workflow> {
    link: ChildLink<C>,
    on_cancel: OnCancel,
}

struct ChildLink<C> {
    board: Site,
    workflow: WorkflowId,
    /// The number of the child within the run; zero before it is started.
    number: u64,
    child: PhantomData<fn() -> C>,
}

impl<C: Workflow> ChildCall<C> {
    pub(super) fn new(board: Site, workflow: WorkflowId, input: &C::Input) -> Self {
        let (input, unsendable) = match C::encode_input(input) {
            Ok(input) => (input, None),
            Err(error) => (Payloads::new(), Some(error)),
        };
        let spec = RunSpec {
            workflow_type: C::NAME.into(),
            queue: board.started().spec.queue.clone(),
            input,
            ..RunSpec::default()
        };
        let spec = ChildSpec {
            workflow: board.neighbour(workflow.clone()),
            spec,
            parent_close: event::ParentClosePolicy::default(),
            reuse: event::ReusePolicy::default(),
            retry_of: None,
            attempt: 0,
            recorded_retry: None,
        };
        let link = ChildLink { board, workflow, number: 0, child: PhantomData };
        Self { link, spec, unsendable, retries: None, on_cancel: None }
    }

    /// The queue whose workers run the child; by default the queue of this run.
    pub fn queue(mut self, queue: impl Into<String>) -> Self {
        self.spec.spec.queue = queue.into();
        self
    }

    /// What happens to the child when this run closes first; by default it is terminated.
    pub fn parent_close(mut self, policy: ParentClosePolicy) -> Self {
        self.spec.parent_close = policy.into();
        self
    }

    /// Whether the id of a closed workflow may be reused; by default it may.
    pub fn reuse(mut self, policy: ReusePolicy) -> Self {
        self.spec.reuse = policy.into();
        self
    }

    /// The longest duration of each run of the child.
    pub const fn run_timeout(mut self, limit: Duration) -> Self {
        self.spec.spec.run_timeout = Some(limit);
        self
    }

    /// The longest duration of the child with all its runs.
    pub const fn execution_timeout(mut self, limit: Duration) -> Self {
        self.spec.spec.execution_timeout = Some(limit);
        self
    }

    /// The longest duration of one workflow task of the child.
    pub const fn task_timeout(mut self, limit: Duration) -> Self {
        self.spec.spec.task_timeout = Some(limit);
        self
    }

    /// Runs the child at each time of this cron schedule. Its result is that of the last run, so
    /// start such a child rather than await it: it ends when it is cancelled or its execution
    /// timeout has passed.
    pub fn cron(mut self, schedule: impl Into<String>) -> Self {
        self.spec.spec.cron = Some(schedule.into());
        self
    }

    /// Adds a named value that is shown with the child's run.
    pub fn memo<T: PayloadValue>(mut self, name: impl Into<String>, value: &T) -> Self {
        let name = name.into();
        match value.to_payload() {
            Ok(payload) => drop(self.spec.spec.memo.insert(name, payload.unwrap_or_default())),
            Err(error) => self.unsendable = Some(error.of(format!("memo {name}"))),
        }
        self
    }

    /// Sets a search attribute of the child's run.
    pub fn search_attribute(mut self, change: AttributeChange) -> Self {
        if let Err(error) = change.add_to(&mut self.spec.spec.search_attributes) {
            self.unsendable = Some(error);
        }
        self
    }

    /// Retries when the child fails: with a new run under the same id, or, if the policy asks for
    /// recorded retries, with a new child for each attempt, whose id ends with the attempt's
    /// number. The timers of recorded retries name the first child. A child with recorded retries
    /// must be awaited as a whole.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        let policy = retry::RetryPolicy::from(policy);
        if policy.recorded {
            let first = self.link.workflow.clone();
            self.spec.recorded_retry = Some(policy.clone());
            self.retries = Some(Retries { policy, attempts: 1, first });
        } else {
            self.spec.spec.retry = Some(policy);
        }
        self
    }

    /// What happens to the child when the wait for it is cancelled. By default a child that is
    /// awaited as a whole is asked to cancel itself, and one that is held by a handle is left
    /// running.
    pub const fn on_cancel(mut self, policy: OnCancel) -> Self {
        self.on_cancel = Some(policy);
        self
    }

    /// Starts the child at once; awaiting the result returns a handle when the child runs.
    pub fn start(self) -> Pending<ChildStart<C>> {
        Pending::begun(ChildStart(self))
    }

    /// The policy for a child that is held by a handle.
    fn held_on_cancel(&self) -> OnCancel {
        self.on_cancel.unwrap_or(OnCancel::Abandon)
    }

    /// Starts the child and waits for the subject made from its number.
    fn ask(&mut self, subject: fn(u64) -> Subject, on_cancel: OnCancel) -> Result<Wait> {
        if let Some(error) = self.unsendable.take() {
            return Err(error.into());
        }
        self.link.number = self.link.board.start_child(self.spec.clone());
        Ok(self.link.board.wait_for_child(subject(self.link.number), on_cancel))
    }
}

awaitable!(without_start [C: Workflow] ChildCall<C> => Result<C::Output>);

impl<C: Workflow> Operation for ChildCall<C> {
    type Output = Result<C::Output>;

    fn refused(&self) -> bool {
        self.link.board.refuses()
    }

    fn begin(&mut self) -> Progress<Self::Output> {
        match self.ask(Subject::ChildClose, self.on_cancel.unwrap_or_default()) {
            Ok(wait) => Progress::Waits(wait),
            Err(error) => Progress::Done(Err(error)),
        }
    }

    fn resume(&mut self, answer: OperationResult) -> Progress<Self::Output> {
        // The delay before the next attempt is over.
        if let (Resolution::Fired, Some(retries)) = (&answer.0, &mut self.retries) {
            if self.link.board.refuses() {
                return Progress::Done(Err(Error::Cancelled));
            }
            let workflow = retries.next();
            self.spec.retry_of = Some(retries.first.clone());
            self.spec.attempt = retries.attempts;
            self.spec.workflow.workflow = workflow.clone();
            self.link.workflow = workflow;
            return self.begin();
        }
        let mut outcome = self.link.closed(&answer);
        let (Err(Error::Child(failed)), Some(retries)) = (&mut outcome, &self.retries) else {
            return Progress::Done(outcome);
        };
        // A child that was asked to cancel itself is not retried, however it ended.
        if self.link.board.refuses() || self.link.cancel_asked() {
            return Progress::Done(outcome);
        }
        match retries.judge(failed) {
            Some(RetryDecision::After(delay)) => {
                let board = &self.link.board;
                let origin = Origin::ChildWorkflowRetry { workflow: retries.first.clone() };
                let next = board.now().saturating_add(delay);
                Progress::Waits(board.start_timer(next, origin, Terms::default()))
            }
            // A history of an older engine does not tell the state of recorded retries.
            Some(RetryDecision::Stop(reason)) => {
                failed.retry_state = reason.into();
                Progress::Done(outcome)
            }
            None => Progress::Done(outcome),
        }
    }
}

impl Retries {
    /// The delay before the next attempt, or why there is none; nothing if the failure says that itself.
    fn judge(&self, failed: &ChildFailure) -> Option<RetryDecision> {
        // A child that could not be started would fail to start again, and a cancelled one is not
        // retried.
        let final_one =
            failed.not_started.is_some() || failed.failure.kind() == FailureKind::Cancelled;
        (!final_one).then(|| self.policy.judge(self.attempts, failed.failure.own()))
    }

    /// The id of the next attempt.
    fn next(&mut self) -> WorkflowId {
        self.attempts += 1;
        format!("{}-attempt-{}", self.first, self.attempts).into()
    }
}

impl<C: Workflow> Operation for ChildStart<C> {
    type Output = Result<C::Child>;

    fn refused(&self) -> bool {
        self.0.link.board.refuses()
    }

    fn begin(&mut self) -> Progress<Self::Output> {
        if self.0.retries.is_some() {
            return Progress::Done(Err(Error::new(format!(
                "child {} has recorded retries, so it has no single handle: await the call",
                self.0.link.workflow
            ))));
        }
        match self.0.ask(Subject::ChildStart, self.0.held_on_cancel()) {
            Ok(wait) => Progress::Waits(wait),
            Err(error) => Progress::Done(Err(error)),
        }
    }

    fn resume(&mut self, answer: OperationResult) -> Progress<Self::Output> {
        Progress::Done(match answer.0 {
            Resolution::ChildStarted => {
                let on_cancel = self.0.held_on_cancel();
                Ok(ChildHandle::new(self.0.link.clone(), on_cancel).into())
            }
            Resolution::Cancelled => Err(Error::Cancelled),
            _ => Err(self.0.link.outcome().err().unwrap_or_else(|| {
                Error::new(format!("child {} closed before it started", self.0.link.workflow))
            })),
        })
    }
}

impl<C: Workflow> ChildHandle<C> {
    fn new(link: ChildLink<C>, on_cancel: OnCancel) -> Self {
        let ChildLink { board, workflow, number, .. } = &link;
        let initiated = board.child(*number, |child| child.initiated).flatten();
        let external = ExternalWorkflow::of_child(Rc::clone(board), workflow.clone(), initiated);
        Self { link, external, on_cancel }
    }

    /// The child's workflow id.
    pub const fn workflow_id(&self) -> &WorkflowId {
        &self.link.workflow
    }

    /// Waits for the child's result, across all its runs. Can be called again.
    #[track_caller]
    pub fn result(&self) -> ChildResult<C> {
        let link = ChildLink { board: Site::here(&self.link.board), ..self.link.clone() };
        ChildResult { link, on_cancel: self.on_cancel }
    }

    /// Sends a signal to the child; resolves when it is delivered.
    #[track_caller]
    pub fn signal<I: ArgumentList>(
        &self,
        signal: SignalDef<C, I>,
        input: impl IntoArguments<I>,
    ) -> ExternalCall {
        self.external.signal(signal, input)
    }

    /// Asks the child to cancel itself; resolves when the request is delivered.
    #[track_caller]
    pub fn cancel(&self) -> ExternalCall {
        self.external.cancel()
    }
}

impl<C: Workflow> AsRef<ExternalWorkflow<C>> for ChildHandle<C> {
    fn as_ref(&self) -> &ExternalWorkflow<C> {
        &self.external
    }
}

awaitable!(without_start [C: Workflow] ChildResult<C> => Result<C::Output>);

impl<C: Workflow> Operation for ChildResult<C> {
    type Output = Result<C::Output>;

    fn refused(&self) -> bool {
        self.link.board.refuses()
    }

    fn begin(&mut self) -> Progress<Self::Output> {
        let ChildLink { board, number, .. } = &self.link;
        if board.child(*number, |child| child.outcome.is_some()) == Some(true) {
            return Progress::Done(self.link.outcome());
        }
        Progress::Waits(board.wait_for_child(Subject::ChildClose(*number), self.on_cancel))
    }

    fn resume(&mut self, answer: OperationResult) -> Progress<Self::Output> {
        Progress::Done(self.link.closed(&answer))
    }
}

impl<C: Workflow> ChildLink<C> {
    fn closed(&self, answer: &OperationResult) -> Result<C::Output> {
        match answer.0 {
            Resolution::Cancelled => Err(Error::Cancelled),
            _ => self.outcome(),
        }
    }

    fn cancel_asked(&self) -> bool {
        self.board.child(self.number, Child::cancel_asked) == Some(true)
    }

    fn outcome(&self) -> Result<C::Output> {
        match self.board.child(self.number, |child| child.outcome.clone()).flatten() {
            Some(Ok(result)) => Ok(C::decode_output(&result)?),
            Some(Err(closed)) => Err(self.failed(*closed)),
            None => Err(Error::new(format!("child {} has no outcome", self.workflow))),
        }
    }

    fn failed(&self, closed: ChildClosed) -> Error {
        let ChildClosed { failure, retry_state, not_started } = closed;
        Error::Child(Box::new(ChildFailure {
            workflow_type: C::NAME.into(),
            workflow: self.workflow.clone(),
            failure: failure.into(),
            retry_state: retry_state.into(),
            not_started: not_started.map(Into::into),
        }))
    }
}

impl<C> Clone for ChildLink<C> {
    fn clone(&self) -> Self {
        Self {
            board: self.board.clone(),
            workflow: self.workflow.clone(),
            number: self.number,
            child: PhantomData,
        }
    }
}

impl<C: Workflow> fmt::Debug for ChildHandle<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "child {} of type {}", self.link.workflow, C::NAME)
    }
}
