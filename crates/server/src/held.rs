//! What a worker session holds: unused credits, and tasks that it was given and has not completed.
//! It may report on no other task, and holds no more than its bound.

use std::collections::HashMap;

use abide_core::{
    attempt::ActivityToken,
    dispatch::Dispatch,
    ids::{EventNumber, RunId, StartId},
    limits::InvalidField,
    operation::{CallError, Ticket},
    report::{QueryToken, Report, ReportAnswer, TaskToken},
};

use crate::handler::over;

/// Identifies a task within a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum HeldTask {
    Workflow(RunId, StartId),
    Activity(RunId, EventNumber, u32),
    Query(RunId, Ticket, u32),
}

impl From<&TaskToken> for HeldTask {
    fn from(token: &TaskToken) -> Self {
        Self::Workflow(token.run, token.start)
    }
}

impl From<&ActivityToken> for HeldTask {
    fn from(token: &ActivityToken) -> Self {
        Self::Activity(token.run, token.scheduled, token.start)
    }
}

impl From<&QueryToken> for HeldTask {
    fn from(token: &QueryToken) -> Self {
        Self::Query(token.run, token.ticket, token.attempt)
    }
}

pub(crate) struct SessionWork {
    tasks: HashMap<HeldTask, CreditUse>,
    credits: usize,
    /// Number of tasks in [`CreditUse::Taken`].
    in_places: usize,
    limit: usize,
}

/// How a held task counts against the session's bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CreditUse {
    /// It occupies the place of the credit that it was given for.
    Taken,
    /// It occupied such a place, and its completion is in flight: the worker may already grant more
    /// credit.
    Left,
    /// It was given without a credit, or on another stream.
    None,
}

/// A worker's report that may be passed to the engine.
#[derive(Debug)]
pub(crate) struct Permitted {
    /// The task that the report is about.
    pub(crate) task: HeldTask,
    /// The attempt to present first, if the session was given it on another stream.
    pub(crate) present: Option<ActivityToken>,
    /// Whether the report completes the task, unless it has to be repeated.
    pub(crate) answers: bool,
}

impl SessionWork {
    pub(crate) fn new(limit: usize) -> Self {
        Self { tasks: HashMap::new(), credits: 0, in_places: 0, limit }
    }

    /// Number of credits and tasks that the session may hold.
    pub(crate) const fn limit(&self) -> usize {
        self.limit
    }

    /// The worker grants more credits.
    pub(crate) fn credit(&mut self, credits: usize) -> Result<(), CallError> {
        let total = self.credits.saturating_add(self.in_places).saturating_add(credits);
        if total > self.limit {
            return Err(over("credits and tasks of the session", self.limit));
        }
        self.credits += credits;
        Ok(())
    }

    /// The worker withdraws all unused credits.
    pub(crate) fn withdraw(&mut self) {
        self.credits = 0;
    }

    /// The worker is given a task.
    pub(crate) fn give(&mut self, dispatch: &Dispatch) {
        let (task, free) = match dispatch {
            Dispatch::Workflow { token, .. } => (token.into(), false),
            Dispatch::Activity { token, eager, .. } => (token.into(), *eager),
            Dispatch::Query { token, .. } => (token.into(), false),
        };
        if free {
            self.put(task, CreditUse::None);
        } else {
            self.put(task, CreditUse::Taken);
            self.credits = self.credits.saturating_sub(1);
        }
    }

    fn put(&mut self, task: HeldTask, place: CreditUse) {
        let before = self.tasks.insert(task, place);
        self.in_places += usize::from(place == CreditUse::Taken);
        self.in_places -= usize::from(before == Some(CreditUse::Taken));
    }

    /// Whether the worker may make this report. It can only have an attempt that it was not given
    /// on this stream from an earlier one; the engine knows whether that is so.
    pub(crate) fn permit(&mut self, report: &Report) -> Result<Permitted, CallError> {
        let permitted = self.permitted(report)?;
        if permitted.answers && self.tasks.get(&permitted.task) == Some(&CreditUse::Taken) {
            self.put(permitted.task, CreditUse::Left);
        }
        Ok(permitted)
    }

    fn permitted(&self, report: &Report) -> Result<Permitted, CallError> {
        match report {
            Report::CompleteTask(token, completion) if completion.eager_activities > self.limit => {
                let problem = format!(
                    "is {}, the limit is {} for task {}",
                    completion.eager_activities, self.limit, token.run
                );
                Err(InvalidField::new("eager_activities", problem).into())
            }
            Report::CompleteTask(token, _) | Report::FailTask { token, .. } => {
                self.given(token.into())
            }
            Report::AnswerQuery(token, _) => self.given(token.into()),
            Report::ResolveActivity(token, _) | Report::DetachAttempt(token) => {
                Ok(self.attempt(token, true))
            }
            Report::Heartbeat(token, _) => Ok(self.attempt(token, false)),
            Report::PresentAttempt(token, _) => {
                Ok(Permitted { task: token.into(), present: None, answers: false })
            }
        }
    }

    fn given(&self, task: HeldTask) -> Result<Permitted, CallError> {
        if self.tasks.contains_key(&task) {
            return Ok(Permitted { task, present: None, answers: true });
        }
        Err(InvalidField::new("token", "identifies a task that this session does not hold").into())
    }

    fn attempt(&self, token: &ActivityToken, answers: bool) -> Permitted {
        let task = token.into();
        let present = (!self.tasks.contains_key(&task)).then(|| token.clone());
        Permitted { task, present, answers }
    }

    /// The engine has answered the report.
    pub(crate) fn settle(
        &mut self,
        task: HeldTask,
        answers: bool,
        result: &Result<ReportAnswer, CallError>,
    ) {
        match result {
            Ok(_) if !answers => {
                self.tasks.entry(task).or_insert(CreditUse::None);
            }
            Err(failed) if answered_again(failed) => {
                if self.tasks.get(&task) == Some(&CreditUse::Left) {
                    self.put(task, CreditUse::Taken);
                }
            }
            Ok(_) | Err(_) => {
                let place = self.tasks.remove(&task);
                self.in_places -= usize::from(place == Some(CreditUse::Taken));
            }
        }
    }
}

/// Whether the worker still owes a completion: the same again, or another one because this one is
/// invalid.
fn answered_again(failed: &CallError) -> bool {
    failed.passing() || matches!(failed, CallError::Invalid(_))
}

#[cfg(test)]
mod tests {
    use abide_core::ids::WorkflowKey;

    use super::*;

    fn query(ticket: Ticket) -> QueryToken {
        let workflow = WorkflowKey { namespace: "default".into(), workflow: "hello".into() };
        let run = RunId::from_parts(Default::default(), 1);
        QueryToken { workflow, run, ticket, attempt: 1 }
    }

    fn give(held: &mut SessionWork, ticket: Ticket) {
        let query_asked = abide_core::operation::QueryRequest::new("state", Vec::new());
        held.give(&Dispatch::Query { token: query(ticket), last_event: 1, query: query_asked });
    }

    fn answer(held: &mut SessionWork, ticket: Ticket) -> HeldTask {
        held.permit(&Report::AnswerQuery(query(ticket), Ok(Vec::new()))).expect("it is held").task
    }

    /// For example because the shard was moving to another node.
    #[test]
    fn a_task_whose_answer_has_to_be_repeated_is_still_held() {
        for passing in [CallError::NotServed, CallError::Reset, CallError::Overloaded] {
            let mut held = SessionWork::new(1);
            held.credit(1).expect("there is room");
            give(&mut held, 1);
            let task = answer(&mut held, 1);
            held.settle(task, true, &Err(passing));
            assert_eq!(answer(&mut held, 1), task);
        }
    }

    #[test]
    fn an_answer_under_way_makes_room_for_credit() {
        let mut held = SessionWork::new(1);
        held.credit(1).expect("there is room");
        give(&mut held, 1);
        held.credit(1).expect_err("the task has the only place");
        let task = answer(&mut held, 1);
        held.credit(1).expect("the place is free again");
        held.settle(task, true, &Err(CallError::StaleQuery));
        held.credit(1).expect_err("the credit has the place");
    }

    #[test]
    fn an_answer_that_must_be_repeated_keeps_its_place() {
        let mut held = SessionWork::new(1);
        held.credit(1).expect("there is room");
        give(&mut held, 1);
        let task = answer(&mut held, 1);
        held.settle(task, true, &Err(CallError::Reset));
        held.credit(1).expect_err("the task has the place");
        let task = answer(&mut held, 1);
        held.settle(task, true, &Err(CallError::StaleQuery));
        held.credit(1).expect("the task is answered");
    }

    #[test]
    fn an_answer_that_cannot_be_leaves_its_task_to_be_answered_otherwise() {
        let mut held = SessionWork::new(1);
        held.credit(1).expect("there is room");
        give(&mut held, 1);
        let task = answer(&mut held, 1);
        let too_large = InvalidField::new("query result", "is too large");
        held.settle(task, true, &Err(too_large.into()));
        answer(&mut held, 1);
    }

    #[test]
    fn credit_that_was_withdrawn_counts_no_more() {
        let mut held = SessionWork::new(2);
        held.credit(2).expect("there is room");
        held.withdraw();
        held.credit(2).expect("there is room again");
    }
}
