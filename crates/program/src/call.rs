//! Activities and children of a program, and the retries that the program makes itself: after each
//! failure comes a timer whose origin names what it delays, then a new attempt.

use crate::{
    Activity, Child,
    context::{Context, Outcome},
};
use abide_core::{
    command::Ask,
    event::{ActivitySpec, ChildSpec, Origin, ParentClosePolicy, ReusePolicy, RunSpec},
    ids::{ActivityId, ExecutionId, TimerId, WorkflowId},
    payload::PayloadMap,
    retry::{RetryDecision, RetryPolicy},
};

/// The current attempt of a call.
#[derive(Clone, Debug)]
pub(super) struct Attempt<Id, First> {
    /// From 1.
    pub(super) number: u32,
    /// Identifies the first attempt, which retries refer to.
    pub(super) first: First,
    pub(super) state: AttemptState<Id>,
}

#[derive(Clone, Debug)]
pub(super) enum AttemptState<Id> {
    Running(Id),
    /// Waits for the delay before the next attempt.
    Waiting(TimerId),
}

impl Attempt<ActivityId, Option<ExecutionId>> {
    /// Continues as far as possible; `true` when the activity is done.
    pub(super) fn poll(&mut self, call: &Activity, context: &mut Context) -> bool {
        match &self.state {
            AttemptState::Running(activity) => {
                let Some((execution, outcome)) = context.activities.remove(activity) else {
                    return false;
                };
                let first = self.first.get_or_insert(execution).clone();
                let policy = call.retry.as_ref().filter(|policy| policy.recorded);
                let origin = Origin::ActivityRetry { execution: first };
                match retry_timer(policy, self.number, &outcome, origin, context) {
                    Some(timer) => self.state = AttemptState::Waiting(timer),
                    None => return ends(context, &call.activity_type, outcome),
                }
                false
            }
            AttemptState::Waiting(timer) => {
                if context.fired.remove(timer) {
                    self.number += 1;
                    let activity = call.schedule(self.first.clone(), self.number, context);
                    self.state = AttemptState::Running(activity);
                }
                false
            }
        }
    }
}

impl Attempt<u64, WorkflowId> {
    /// Continues as far as possible; `true` when the child is done.
    pub(super) fn poll(&mut self, call: &Child, context: &mut Context) -> bool {
        match &self.state {
            AttemptState::Running(child) => {
                let Some(outcome) = context.children.remove(child) else { return false };
                let origin = Origin::ChildWorkflowRetry { workflow: self.first.clone() };
                match retry_timer(call.retry.as_ref(), self.number, &outcome, origin, context) {
                    Some(timer) => self.state = AttemptState::Waiting(timer),
                    None => return ends(context, &call.workflow_type, outcome),
                }
                false
            }
            AttemptState::Waiting(timer) => {
                if context.fired.remove(timer) {
                    self.number += 1;
                    let workflow = format!("{}-attempt-{}", self.first, self.number);
                    let child = context.count("child");
                    call.start(workflow.into(), Some(self.first.clone()), context);
                    self.state = AttemptState::Running(child);
                }
                false
            }
        }
    }
}

impl Activity {
    pub(super) fn schedule(
        &self,
        retry_of: Option<ExecutionId>,
        attempt: u32,
        context: &mut Context,
    ) -> ActivityId {
        let activity = ActivityId::from(context.next_id("activity"));
        context.ask(Ask::ScheduleActivity(ActivitySpec {
            activity: activity.clone(),
            activity_type: self.activity_type.clone(),
            queue: context.spec.queue.clone(),
            input: Vec::new(),
            header: PayloadMap::new(),
            schedule_to_close: None,
            schedule_to_start: None,
            start_to_close: self.start_to_close,
            heartbeat: self.heartbeat,
            retry: self.retry.clone(),
            delivery: self.delivery,
            retry_of,
            attempt,
        }));
        activity
    }
}

impl Child {
    pub(super) fn start(
        &self,
        workflow: WorkflowId,
        retry_of: Option<WorkflowId>,
        context: &mut Context,
    ) {
        let spec = RunSpec {
            workflow_type: self.workflow_type.clone(),
            queue: context.spec.queue.clone(),
            ..RunSpec::default()
        };
        context.ask(Ask::StartChild(Box::new(ChildSpec {
            workflow: context.neighbour(workflow),
            spec,
            parent_close: ParentClosePolicy::default(),
            reuse: ReusePolicy::default(),
            retry_of,
            attempt: 0,
            recorded_retry: None,
        })));
    }
}

/// Records how a call ended.
pub(super) fn ends(context: &mut Context, what: &str, outcome: Outcome) -> bool {
    match outcome {
        Ok(value) => context.note(format!("{what}={value}")),
        Err(failure) => context.note(format!("{what} failed: {}", failure.message)),
    }
    true
}

/// Starts the delay before the next attempt, if there is one.
fn retry_timer(
    policy: Option<&RetryPolicy>,
    attempt: u32,
    outcome: &Outcome,
    origin: Origin,
    context: &mut Context,
) -> Option<TimerId> {
    let failure = outcome.as_ref().err()?;
    let delay = match policy?.judge(attempt, failure) {
        RetryDecision::After(delay) => delay,
        RetryDecision::Stop(_) => return None,
    };
    Some(context.start_timer(Some(delay), origin))
}
