//! Replaces the code of a child: by a function of its arguments, or by nothing at all. It is a real
//! run of the child's type, so its parent uses the real engine.

use std::sync::Arc;

use abide_core::{
    command::{Ask, Command},
    event::TaskFailureCause,
    failure::{Failure, FailureKind},
    ids::TimerId,
    operation::QueryRequest,
    payload::Payloads,
    replay::{Code, Step},
    time::Timestamp,
};
use abide_sdk::{
    BoxError, ReturnedError, Workflow,
    executor::LocalWork,
    payload,
    registry::{TaskFault, WorkflowCode},
};

/// Replacement for the code of a workflow; `None` never ends by itself.
pub(crate) type Fake<W> =
    Option<Arc<dyn Fn(<W as Workflow>::Input) -> FakeResult<W> + Send + Sync>>;

/// Result of a fake child.
pub(crate) type FakeResult<W> = Result<<W as Workflow>::Output, BoxError>;

/// One run of a fake child.
pub(crate) struct FakeRun<W: Workflow> {
    fake: Fake<W>,
    closed: bool,
    fault: Option<TaskFault>,
}

impl<W: Workflow> FakeRun<W> {
    pub(crate) const fn new(fake: Fake<W>) -> Self {
        Self { fake, closed: false, fault: None }
    }

    fn start(&mut self, input: &Payloads) -> Option<Ask> {
        let fake = self.fake.clone()?;
        let input = match W::ARGUMENTS.decode(input) {
            Ok(input) => input,
            Err(error) => {
                let failure = refusal(format!("input of workflow {}: {error}", W::NAME));
                self.fault = Some(TaskFault { cause: TaskFailureCause::WorkerFailure, failure });
                return None;
            }
        };
        let encoded = fake(input).and_then(|output| Ok(payload::encode(&output)?));
        Some(match encoded {
            Ok(result) => Ask::CompleteRun(result),
            Err(error) => Ask::FailRun(ReturnedError::new(error).into_failure()),
        })
    }
}

impl<W: Workflow> Code for FakeRun<W> {
    #[expect(clippy::wildcard_enum_match_arm, reason = "a fake takes no notice of the others")]
    fn advance(&mut self, _at: Timestamp, step: Step<'_>) -> Vec<Command> {
        if self.closed {
            return Vec::new();
        }
        let ask = match step {
            Step::Start(started) => self.start(&started.spec.input),
            Step::CancelRequested(_) => Some(Ask::CancelRun(Vec::new())),
            Step::Update { update, .. } => {
                let failure = refusal(format!("workflow {} is replaced by the test", W::NAME));
                return vec![Ask::RejectUpdate { update, failure }.into()];
            }
            _ => None,
        };
        self.closed = ask.is_some();
        ask.into_iter().map(Command::from).collect()
    }
}

impl<W: Workflow> WorkflowCode for FakeRun<W> {
    fn query(
        &mut self,
        _request: &QueryRequest,
        _moves: Vec<(TimerId, Timestamp)>,
    ) -> Result<Payloads, Failure> {
        Err(refusal(format!("workflow {} is replaced by the test: it has no queries", W::NAME)))
    }

    /// A fake child runs no local activities.
    fn take_local_work(&mut self) -> LocalWork {
        LocalWork::default()
    }

    fn take_fault(&mut self) -> Option<TaskFault> {
        self.fault.take()
    }
}

fn refusal(message: String) -> Failure {
    Failure::server(FailureKind::Application, message)
}
