//! The run that goes on when this one continues as new.

use std::time::Duration;

use abide_core::{event::RunSpec, payload::Payloads, retry::RetryPolicy};

use crate::{
    error::Error,
    executor::Board,
    payload::{Data, PayloadError},
};

/// How a workflow goes on in a new run; see [`Context::next_run`](super::Context::next_run). What is
/// not said stays as it is. Returned by the run as an error, it ends the run.
#[derive(Clone, Debug)]
#[must_use = "nothing happens until the run returns it as an error"]
pub struct NextRun {
    spec: RunSpec,
    unsendable: Option<PayloadError>,
}

impl NextRun {
    pub(super) fn new(
        board: &Board,
        workflow_type: &str,
        input: Result<Payloads, PayloadError>,
    ) -> Self {
        let (input, unsendable) = match input {
            Ok(input) => (input, None),
            Err(error) => (Payloads::new(), Some(error)),
        };
        let workflow_type = workflow_type.to_owned();
        Self { spec: RunSpec { workflow_type, input, ..board.started().spec.clone() }, unsendable }
    }

    /// The queue whose workers run it.
    pub fn queue(mut self, queue: impl Into<String>) -> Self {
        self.spec.queue = queue.into();
        self
    }

    /// Limits the new run. The limit of the whole workflow stays: its time began with the first run.
    pub const fn run_timeout(mut self, limit: Duration) -> Self {
        self.spec.run_timeout = Some(limit);
        self
    }

    /// Limits one workflow task.
    pub const fn task_timeout(mut self, limit: Duration) -> Self {
        self.spec.task_timeout = Some(limit);
        self
    }

    /// Starts a new run when it fails. Attempts are counted anew.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.spec.retry = Some(policy);
        self
    }

    /// Starts further runs at each of these times. The new run itself begins at once.
    pub fn cron(mut self, schedule: impl Into<String>) -> Self {
        self.spec.cron = Some(schedule.into());
        self
    }

    /// Adds a fact for people, shown with the run.
    pub fn memo<T: Data>(mut self, name: impl Into<String>, value: &T) -> Self {
        let name = name.into();
        match value.to_payload() {
            Ok(payload) => drop(self.spec.memo.insert(name, payload.unwrap_or_default())),
            Err(error) => self.unsendable = Some(error.of(format!("memo {name}"))),
        }
        self
    }

    pub(crate) const fn spec(&self) -> &RunSpec {
        &self.spec
    }
}

impl From<NextRun> for Error {
    fn from(mut next: NextRun) -> Self {
        match next.unsendable.take() {
            Some(error) => error.into(),
            None => Self::ContinueAsNew(Box::new(next)),
        }
    }
}
