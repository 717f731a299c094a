//! Calling an activity.

use std::{marker::PhantomData, time::Duration};

use abide_core::{
    event::{ActivitySpec, Delivery, Origin},
    failure::Failure,
    payload::PayloadMap,
    retry::{self, RetryDecision, RetryState},
    time::Timestamp,
};

use super::{
    OnCancel,
    operation::{Operation, OperationResult, Progress, awaitable},
    site::Site,
};
use crate::{
    activity::ActivityDef,
    arguments::ArgumentList,
    error::{ActivityFailure, Error, Result},
    executor::{ActivityOutcome, Resolution, Terms},
    payload::{self, PayloadError, PayloadValue},
    retry::RetryPolicy,
};

/// The default limit of one attempt.
const START_TO_CLOSE: Duration = Duration::from_secs(60);

/// A call of an activity; see [`Context::activity`](super::Context::activity).
#[derive(Debug)]
#[must_use = "nothing happens until it is awaited"]
pub struct ActivityCall<O> {
    board: Site,
    spec: ActivitySpec,
    unsendable: Option<PayloadError>,
    on_cancel: OnCancel,
    /// For recorded retries: the number of attempts so far, and when the first began.
    attempt: u32,
    began: Option<Timestamp>,
    output: PhantomData<fn() -> O>,
}

impl<O> ActivityCall<O> {
    pub(super) fn new<S, I: ArgumentList>(
        board: Site,
        definition: &ActivityDef<S, I, O>,
        input: &I::Value,
    ) -> Self {
        let (input, unsendable) = match definition.encode(input) {
            Ok(input) => (input, None),
            Err(error) => (Vec::new(), Some(error)),
        };
        let spec = ActivitySpec {
            activity: "".into(),
            activity_type: definition.name().into(),
            queue: board.started().spec.queue.clone(),
            input,
            header: PayloadMap::new(),
            schedule_to_close: None,
            schedule_to_start: None,
            start_to_close: None,
            heartbeat: None,
            retry: Some(retry::RetryPolicy::default()),
            delivery: Delivery::AtLeastOnce,
            retry_of: None,
            attempt: 0,
        };
        let on_cancel = OnCancel::default();
        Self { board, spec, unsendable, on_cancel, attempt: 0, began: None, output: PhantomData }
    }

    /// The longest duration of one attempt; 60 seconds if neither this nor `schedule_to_close` is
    /// set.
    pub const fn start_to_close(mut self, limit: Duration) -> Self {
        self.spec.start_to_close = Some(limit);
        self
    }

    /// The longest duration of the whole activity, retries included.
    pub const fn schedule_to_close(mut self, limit: Duration) -> Self {
        self.spec.schedule_to_close = Some(limit);
        self
    }

    /// The longest time that an attempt waits for a worker.
    pub const fn schedule_to_start(mut self, limit: Duration) -> Self {
        self.spec.schedule_to_start = Some(limit);
        self
    }

    /// The longest time between two heartbeats of an attempt.
    pub const fn heartbeat_timeout(mut self, limit: Duration) -> Self {
        self.spec.heartbeat = Some(limit);
        self
    }

    /// How failed attempts are retried; by default without limit and with growing delays.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.spec.retry = Some(policy.into());
        self
    }

    /// The queue whose workers may run it; by default the queue of the run.
    pub fn queue(mut self, queue: impl Into<String>) -> Self {
        self.spec.queue = queue.into();
        self
    }

    /// Never retries an attempt that is lost with its worker: the activity fails instead.
    pub const fn at_most_once(mut self) -> Self {
        self.spec.delivery = Delivery::AtMostOnce;
        self
    }

    /// What happens to the activity when the wait for it is cancelled; by default it is asked to
    /// cancel itself. A running attempt learns of it through its heartbeats; an attempt that has
    /// not started never starts.
    pub const fn on_cancel(mut self, policy: OnCancel) -> Self {
        self.on_cancel = policy;
        self
    }

    /// The remaining time for the whole activity, if that is limited.
    fn time_left(&self) -> Option<Duration> {
        let (limit, began) = self.spec.schedule_to_close.zip(self.began)?;
        Some(limit.saturating_sub(self.board.now().saturating_since(began)))
    }

    /// Whether another attempt follows, if the policy records retries in the run.
    fn recorded_retry(&self, failure: &Failure) -> Option<RetryDecision> {
        let policy = self.spec.retry.as_ref().filter(|policy| policy.recorded)?;
        Some(match policy.judge(self.attempt, failure) {
            RetryDecision::After(delay) if self.time_left().is_some_and(|left| left <= delay) => {
                RetryDecision::Stop(RetryState::Timeout)
            }
            verdict => verdict,
        })
    }

    fn closed(&mut self, outcome: ActivityOutcome) -> Progress<Result<O>>
    where
        O: PayloadValue,
    {
        let (failure, retry_state) = match outcome.result {
            Ok(result) => {
                let subject = || format!("result of activity {}", self.spec.activity_type);
                let decoded = payload::decode(&result);
                return Progress::Done(
                    decoded.map_err(|error: PayloadError| error.of(subject()).into()),
                );
            }
            Err(failed) => failed,
        };
        // The engine says why no attempt follows, or leaves the decision to the run.
        let verdict = match retry_state {
            RetryState::InProgress | RetryState::PolicyNotSet => self.recorded_retry(&failure),
            RetryState::NonRetryableFailure
            | RetryState::Timeout
            | RetryState::MaximumAttemptsReached
            | RetryState::CancelRequested => None,
        };
        let retry_state = match verdict {
            Some(RetryDecision::After(_)) if self.board.refuses() => RetryState::CancelRequested,
            Some(RetryDecision::After(delay)) => {
                let execution = self.spec.retry_of.get_or_insert(outcome.execution).clone();
                let origin = Origin::ActivityRetry { execution };
                let next = self.board.now().saturating_add(delay);
                return Progress::Waits(self.board.start_timer(next, origin, Terms::default()));
            }
            Some(RetryDecision::Stop(reason)) => reason,
            None => retry_state,
        };
        Progress::Done(Err(self.failed(failure, retry_state)))
    }

    fn failed(&self, failure: Failure, retry_state: RetryState) -> Error {
        Error::Activity(Box::new(ActivityFailure {
            activity_type: self.spec.activity_type.clone(),
            activity: self.spec.activity.clone(),
            failure: failure.into(),
            retry_state: retry_state.into(),
        }))
    }
}

awaitable!([O: PayloadValue] ActivityCall<O> => Result<O>);

impl<O: PayloadValue> Operation for ActivityCall<O> {
    type Output = Result<O>;

    fn refused(&self) -> bool {
        self.board.refuses()
    }

    fn begin(&mut self) -> Progress<Self::Output> {
        if let Some(error) = self.unsendable.take() {
            return Progress::Done(Err(error.into()));
        }
        if self.spec.start_to_close.is_none() && self.spec.schedule_to_close.is_none() {
            self.spec.start_to_close = Some(START_TO_CLOSE);
        }
        self.attempt += 1;
        self.began.get_or_insert(self.board.now());
        let attempt = if self.spec.retry_of.is_some() { self.attempt } else { 0 };
        let schedule_to_close = self.time_left();
        let spec = ActivitySpec { attempt, schedule_to_close, ..self.spec.clone() };
        let (activity, wait) = self.board.schedule_activity(spec, self.on_cancel);
        self.spec.activity = activity;
        Progress::Waits(wait)
    }

    fn resume(&mut self, answer: OperationResult) -> Progress<Self::Output> {
        match answer.0 {
            Resolution::Activity(outcome) => self.closed(*outcome),
            // The delay before a recorded retry is over.
            Resolution::Fired if !self.board.refuses() => self.begin(),
            _ => Progress::Done(Err(Error::Cancelled)),
        }
    }
}
