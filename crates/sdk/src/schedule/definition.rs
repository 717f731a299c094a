//! What a schedule starts, and under which policy, as user code says it.

use std::time::Duration;

use abide_core::{
    event::RunSpec,
    ids::WorkflowId,
    payload::{PayloadMap, Payloads},
    schedule,
};

use super::Times;
use crate::{
    arguments::IntoArguments,
    client::ClientError,
    definition::Workflow,
    payload::{PayloadError, PayloadValue},
    retry::RetryPolicy,
    search::AttributeChange,
    worker::DEFAULT_QUEUE,
};

/// What a schedule starts, when, and what it does if an earlier run is still open.
///
/// ```
/// # extern crate abide_sdk as abide;
/// # use abide::{Context, schedule::{Overlap, Schedule, Times}, time::hours, workflow};
/// #[workflow]
/// async fn report(ctx: &Context, region: String) -> abide::Result<()> {
///     Ok(())
/// }
///
/// let nightly = Schedule::of::<report>("eu")
///     .times(Times::cron("0 2 * * *").time_zone("Europe/Berlin"))
///     .overlap(Overlap::BufferOne)
///     .run_timeout(hours(6));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    definition: schedule::Schedule,
    times: Times,
    problem: Option<PayloadError>,
}

/// What happens if a start is due while a run of an earlier one is open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Overlap {
    /// The start is left out.
    #[default]
    Skip,
    /// One start waits for the end of the open run; others are left out.
    BufferOne,
    /// Starts wait, and follow one by one.
    BufferAll,
    /// It starts beside the others.
    AllowAll,
    /// The open runs are asked to cancel themselves; the start follows when they are closed.
    CancelOther,
    /// The open runs are terminated; the start follows.
    TerminateOther,
}

impl Schedule {
    /// A schedule that starts this workflow with these arguments. It has no times yet.
    #[must_use]
    pub fn of<W: Workflow>(input: impl IntoArguments<W::Arguments>) -> Self {
        Self::encoded(W::NAME.into(), W::encode_input(&input.into_arguments()))
    }

    /// A schedule that starts a workflow by its type name, with encoded input.
    #[must_use]
    pub fn untyped(workflow_type: impl Into<String>, input: Payloads) -> Self {
        Self::encoded(workflow_type.into(), Ok(input))
    }

    fn encoded(workflow_type: String, input: Result<Payloads, PayloadError>) -> Self {
        let (input, problem) = match input {
            Ok(input) => (input, None),
            Err(error) => (Payloads::new(), Some(error)),
        };
        let queue = DEFAULT_QUEUE.into();
        let definition = schedule::Schedule {
            spec: schedule::Spec::default(),
            workflow: "".into(),
            run: RunSpec { workflow_type, queue, input, ..RunSpec::default() },
            overlap: None,
            catch_up: None,
            pause_on_failure: false,
            remaining: None,
        };
        Self { definition, times: Times::default(), problem }
    }

    pub(crate) fn from_core(mut definition: schedule::Schedule) -> Self {
        let times = Times::of(std::mem::take(&mut definition.spec));
        Self { definition, times, problem: None }
    }

    /// The schedule as it is sent. Without a workflow id, what it starts is named after the schedule.
    pub(crate) fn into_core(self, id: &str) -> Result<schedule::Schedule, ClientError> {
        let Self { mut definition, times, problem } = self;
        if let Some(problem) = problem {
            return Err(problem.into());
        }
        definition.spec = times.into_spec()?;
        if definition.workflow.as_str().is_empty() {
            definition.workflow = id.into();
        }
        Ok(definition)
    }

    fn with(mut self, change: impl FnOnce(&mut schedule::Schedule)) -> Self {
        change(&mut self.definition);
        self
    }

    /// When it is due, instead of what was said before.
    #[must_use]
    pub fn times(mut self, times: Times) -> Self {
        self.times = times;
        self
    }

    /// What happens if a start is due while a run of an earlier one is open; by default the start is
    /// left out.
    #[must_use]
    pub fn overlap(self, overlap: Overlap) -> Self {
        self.with(|schedule| schedule.overlap = Some(overlap.to_core()))
    }

    /// How late a start may be after downtime; by default a year. What is later is left out.
    #[must_use]
    pub fn catch_up(self, window: Duration) -> Self {
        self.with(|schedule| schedule.catch_up = Some(window))
    }

    /// Whether it pauses itself when a run that it started fails or times out; by default it does not.
    #[must_use]
    pub fn pause_on_failure(self, pause: bool) -> Self {
        self.with(|schedule| schedule.pause_on_failure = pause)
    }

    /// How many starts are left; by default any number. Triggers and backfills do not count.
    #[must_use]
    pub fn remaining(self, starts: impl Into<Option<u64>>) -> Self {
        self.with(|schedule| schedule.remaining = starts.into())
    }

    /// The beginning of the workflow ids of what it starts, to which a dash and the nominal time are
    /// appended; by default the schedule's own id.
    #[must_use]
    pub fn workflow_id(self, id: impl Into<WorkflowId>) -> Self {
        self.with(|schedule| schedule.workflow = id.into())
    }

    /// The workflow that it starts and its arguments, instead of what was said before.
    #[must_use]
    pub fn workflow<W: Workflow>(self, input: impl IntoArguments<W::Arguments>) -> Self {
        let Self { definition, problem, .. } = Self::of::<W>(input);
        let RunSpec { workflow_type, input, .. } = definition.run;
        let told = self.problem.clone().or(problem);
        Self { problem: told, ..self.workflow_untyped(workflow_type, input) }
    }

    /// The same by its type name, with encoded input.
    #[must_use]
    pub fn workflow_untyped(self, workflow_type: impl Into<String>, input: Payloads) -> Self {
        self.with(|schedule| {
            schedule.run.workflow_type = workflow_type.into();
            schedule.run.input = input;
        })
    }

    /// The queue whose workers run the workflow; by default `default`.
    #[must_use]
    pub fn queue(self, queue: impl Into<String>) -> Self {
        self.with(|schedule| schedule.run.queue = queue.into())
    }

    /// The longest duration of one run; after it the run times out.
    #[must_use]
    pub fn run_timeout(self, timeout: Duration) -> Self {
        self.with(|schedule| schedule.run.run_timeout = Some(timeout))
    }

    /// The longest duration of a run and all runs that follow it.
    #[must_use]
    pub fn execution_timeout(self, timeout: Duration) -> Self {
        self.with(|schedule| schedule.run.execution_timeout = Some(timeout))
    }

    /// The longest duration of one workflow task; after it the task is dispatched again.
    #[must_use]
    pub fn task_timeout(self, timeout: Duration) -> Self {
        self.with(|schedule| schedule.run.task_timeout = Some(timeout))
    }

    /// Starts a new run by this policy when a run fails. For the schedule all of them are one run.
    #[must_use]
    pub fn retry(self, policy: RetryPolicy) -> Self {
        self.with(|schedule| schedule.run.retry = Some(policy.into()))
    }

    /// Adds a named value that is shown with the runs. Each run has `schedule_id` and `scheduled_at` too.
    #[must_use]
    pub fn memo<T: PayloadValue>(mut self, name: impl Into<String>, value: &T) -> Self {
        let name = name.into();
        match value.to_payload() {
            Ok(payload) => self.with(|schedule| {
                schedule.run.memo.insert(name, payload.unwrap_or_default());
            }),
            Err(error) => {
                self.problem.get_or_insert_with(|| error.of(format!("memo {name}")));
                self
            }
        }
    }

    /// Sets a search attribute of the runs, by which lists find them.
    #[must_use]
    pub fn search_attribute(mut self, change: AttributeChange) -> Self {
        let mut changed = PayloadMap::new();
        match change.add_to(&mut changed) {
            Ok(()) => self.with(|schedule| schedule.run.search_attributes.extend(changed)),
            Err(error) => {
                self.problem.get_or_insert(error);
                self
            }
        }
    }

    /// Type of the workflows that it starts.
    pub fn workflow_type(&self) -> &str {
        &self.definition.run.workflow_type
    }

    /// Its times in short, for people.
    pub fn summary(&self) -> String {
        self.times.summary()
    }
}

impl Overlap {
    pub(crate) const fn to_core(self) -> schedule::Overlap {
        match self {
            Self::Skip => schedule::Overlap::Skip,
            Self::BufferOne => schedule::Overlap::BufferOne,
            Self::BufferAll => schedule::Overlap::BufferAll,
            Self::AllowAll => schedule::Overlap::AllowAll,
            Self::CancelOther => schedule::Overlap::CancelOther,
            Self::TerminateOther => schedule::Overlap::TerminateOther,
        }
    }
}
