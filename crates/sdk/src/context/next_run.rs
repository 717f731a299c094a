//! The run that follows when this one continues as new.

use std::time::Duration;

use abide_core::{event::RunSpec, payload::Payloads};

use crate::{
    error::Error,
    executor::Board,
    payload::{PayloadError, PayloadValue},
    retry::RetryPolicy,
    search::AttributeChange,
};

/// The options of the next run; see [`Context::next_run`](super::Context::next_run). Options that
/// are not set stay as they are. The run ends by returning it as an error.
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
        Self { spec: RunSpec { workflow_type, input, ..board.current_spec() }, unsendable }
    }

    /// The queue whose workers run the new run.
    pub fn queue(mut self, queue: impl Into<String>) -> Self {
        self.spec.queue = queue.into();
        self
    }

    /// The longest duration of the new run. The execution timeout of the workflow stays: it counts
    /// from the first run.
    pub const fn run_timeout(mut self, limit: Duration) -> Self {
        self.spec.run_timeout = Some(limit);
        self
    }

    /// The longest duration of one workflow task.
    pub const fn task_timeout(mut self, limit: Duration) -> Self {
        self.spec.task_timeout = Some(limit);
        self
    }

    /// Starts a new run by this policy when the run fails. The attempt count starts again at one.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.spec.retry = Some(policy.into());
        self
    }

    /// Starts further runs at each time of this cron schedule. The new run itself starts at once.
    pub fn cron(mut self, schedule: impl Into<String>) -> Self {
        self.spec.cron = Some(schedule.into());
        self
    }

    /// Adds a named value that is shown with the run.
    pub fn memo<T: PayloadValue>(mut self, name: impl Into<String>, value: &T) -> Self {
        let name = name.into();
        match value.to_payload() {
            Ok(payload) => drop(self.spec.memo.insert(name, payload.unwrap_or_default())),
            Err(error) => self.unsendable = Some(error.of(format!("memo {name}"))),
        }
        self
    }

    /// Sets a search attribute of the new run, or removes one that this run has.
    pub fn search_attribute(mut self, change: AttributeChange) -> Self {
        if let Err(error) = change.add_to(&mut self.spec.search_attributes) {
            self.unsendable = Some(error);
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
