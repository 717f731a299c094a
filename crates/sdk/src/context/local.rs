//! Calling an activity that runs in the worker of the workflow.

use std::{marker::PhantomData, time::Duration};

use abide_core::{
    event::Origin,
    failure::Failure,
    ids::ExecutionId,
    payload::{PayloadMap, Payloads},
    retry::{self, RetryState},
    time::Timestamp,
};

use super::{
    operation::{Operation, OperationResult, Progress, awaitable},
    site::Site,
};
use crate::{
    activity::{ActivityDef, LocalActivity, LocalEnd},
    arguments::ArgumentList,
    error::{ActivityFailure, Error, Result},
    executor::{Resolution, Terms},
    payload::{self, PayloadError, PayloadValue},
    retry::RetryPolicy,
};

/// The default limit of one attempt.
const START_TO_CLOSE: Duration = Duration::from_secs(10);

/// The longest delay within a task, for runs that set no task timeout: the default task timeout.
const LONGEST_DELAY: Duration = Duration::from_secs(10);

/// A call of a local activity; see [`Context::local_activity`](super::Context::local_activity).
#[derive(Debug)]
#[must_use = "nothing happens until it is awaited"]
pub struct LocalActivityCall<O> {
    board: Site,
    activity_type: &'static str,
    input: Payloads,
    unsendable: Option<PayloadError>,
    start_to_close: Option<Duration>,
    schedule_to_close: Option<Duration>,
    retry: retry::RetryPolicy,
    longest_delay: Option<Duration>,
    /// The id of the marker that ends the wait.
    id: String,
    /// The execution id of all attempts, and when the first was requested.
    execution: Option<(ExecutionId, Timestamp)>,
    attempts: u32,
    output: PhantomData<fn() -> O>,
}

impl<O> LocalActivityCall<O> {
    pub(super) fn new<S, I: ArgumentList>(
        board: Site,
        definition: &ActivityDef<S, I, O>,
        input: &I::Value,
    ) -> Self {
        let (input, unsendable) = match definition.encode(input) {
            Ok(input) => (input, None),
            Err(error) => (Vec::new(), Some(error)),
        };
        Self {
            board,
            activity_type: definition.name(),
            input,
            unsendable,
            start_to_close: None,
            schedule_to_close: None,
            retry: retry::RetryPolicy::default(),
            longest_delay: None,
            id: String::new(),
            execution: None,
            attempts: 0,
            output: PhantomData,
        }
    }

    /// The longest duration of one attempt; 10 seconds if neither this nor `schedule_to_close` is
    /// set.
    pub const fn start_to_close(mut self, limit: Duration) -> Self {
        self.start_to_close = Some(limit);
        self
    }

    /// The longest duration of the whole activity, retries and their delays included.
    pub const fn schedule_to_close(mut self, limit: Duration) -> Self {
        self.schedule_to_close = Some(limit);
        self
    }

    /// How failed attempts are retried; by default without limit and with growing delays.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = policy.into();
        self
    }

    /// The longest delay before a retry within a task. A longer delay becomes a durable timer, so
    /// that the run need not stay in memory. By default the timeout of the run's tasks.
    pub const fn local_retry_threshold(mut self, delay: Duration) -> Self {
        self.longest_delay = Some(delay);
        self
    }

    fn ask(&mut self) -> Progress<Result<O>> {
        let (board, now) = (self.board.clone(), self.board.now());
        let number = board.next_local();
        self.id = format!("local-{number}/{}", self.activity_type);
        let named = || format!("{}:local-{number}", board.started().original_run).into();
        let (execution, since) = self.execution.get_or_insert_with(|| (named(), now));
        let passed = now.saturating_since(*since);
        let task_timeout = board.started().spec.task_timeout;
        let activity = LocalActivity {
            id: self.id.clone(),
            activity_type: self.activity_type.into(),
            execution: execution.clone(),
            input: self.input.clone(),
            header: PayloadMap::new(),
            attempt: self.attempts + 1,
            start_to_close: self.start_to_close,
            schedule_to_close: self.schedule_to_close.map(|limit| limit.saturating_sub(passed)),
            retry: self.retry.clone(),
            longest_delay: self.longest_delay.or(task_timeout).unwrap_or(LONGEST_DELAY),
        };
        Progress::Waits(board.run_locally(activity))
    }

    fn ended(&mut self, end: LocalEnd) -> Progress<Result<O>>
    where
        O: PayloadValue,
    {
        match end {
            LocalEnd::Completed(result) => {
                let subject = || format!("result of activity {}", self.activity_type);
                let decoded = payload::decode(&result);
                Progress::Done(decoded.map_err(|error: PayloadError| error.of(subject()).into()))
            }
            LocalEnd::Failed(failure, state) => Progress::Done(Err(self.failed(failure, state))),
            LocalEnd::TryLater { failure, attempt, after } => {
                let Some((execution, _)) = &self.execution else {
                    return Progress::Done(Err(self.failed(failure, RetryState::PolicyNotSet)));
                };
                self.attempts = attempt;
                let origin = Origin::ActivityRetry { execution: execution.clone() };
                let next = self.board.now().saturating_add(after);
                Progress::Waits(self.board.start_timer(next, origin, Terms::default()))
            }
        }
    }

    fn failed(&self, failure: Failure, retry_state: RetryState) -> Error {
        Error::Activity(Box::new(ActivityFailure {
            activity_type: self.activity_type.into(),
            activity: self.id.as_str().into(),
            failure: failure.into(),
            retry_state: retry_state.into(),
        }))
    }
}

awaitable!([O: PayloadValue] LocalActivityCall<O> => Result<O>);

impl<O: PayloadValue> Operation for LocalActivityCall<O> {
    type Output = Result<O>;

    fn refused(&self) -> bool {
        self.board.refuses()
    }

    fn begin(&mut self) -> Progress<Self::Output> {
        if let Some(error) = self.unsendable.take() {
            return Progress::Done(Err(error.into()));
        }
        if self.start_to_close.is_none() && self.schedule_to_close.is_none() {
            self.start_to_close = Some(START_TO_CLOSE);
        }
        self.ask()
    }

    fn resume(&mut self, answer: OperationResult) -> Progress<Self::Output> {
        match answer.0 {
            Resolution::Local(end) => self.ended(*end),
            // The delay before the next attempt is over.
            Resolution::Fired => self.ask(),
            _ => Progress::Done(Err(Error::Cancelled)),
        }
    }
}
