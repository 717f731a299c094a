//! What a worker's session holds: credits it gave that are not used up, and tasks it was given and has
//! not answered. It may answer for nothing else, and holds no more than its bound.

use std::collections::HashSet;

use abide_core::{
    call::{ActivityToken, Call, CallError, CallReply, Dispatch, QueryToken, TaskToken, Ticket},
    ids::{EventNumber, RunId, StartId},
    limits::InvalidField,
    run::Refusal,
};

use crate::handler::over;

/// Names a task within a session.
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

/// What a session holds.
pub(crate) struct Held {
    tasks: HashSet<HeldTask>,
    credits: usize,
    limit: usize,
}

/// A worker's call that may go to the engine.
#[derive(Debug)]
pub(crate) struct Permitted {
    /// The task that it answers for.
    pub(crate) task: HeldTask,
    /// The attempt must be presented first, because the session was given it on another stream.
    pub(crate) present: Option<ActivityToken>,
    /// The task is answered, unless the answer has to be repeated.
    pub(crate) answers: bool,
}

impl Held {
    pub(crate) fn new(limit: usize) -> Self {
        Self { tasks: HashSet::new(), credits: 0, limit }
    }

    /// Credits and tasks that the session may hold.
    pub(crate) const fn limit(&self) -> usize {
        self.limit
    }

    /// The worker takes so much more.
    pub(crate) fn credit(&mut self, credits: usize) -> Result<(), CallError> {
        let total = self.credits.saturating_add(self.tasks.len()).saturating_add(credits);
        if total > self.limit {
            return Err(over("credits and tasks of the session", self.limit));
        }
        self.credits += credits;
        Ok(())
    }

    /// The worker is given this.
    pub(crate) fn give(&mut self, dispatch: &Dispatch) {
        let (task, free) = match dispatch {
            Dispatch::Workflow { token, .. } => (token.into(), false),
            Dispatch::Activity { token, eager, .. } => (token.into(), *eager),
            Dispatch::Query { token, .. } => (token.into(), false),
        };
        self.tasks.insert(task);
        if !free {
            self.credits = self.credits.saturating_sub(1);
        }
    }

    /// Whether the worker may make the call. An attempt that it was not given on this stream it can
    /// only have from before, and the engine knows whether it does.
    pub(crate) fn permit(&self, call: &Call) -> Result<Permitted, CallError> {
        match call {
            Call::CompleteTask(token, completion) if completion.eager_activities > self.limit => {
                let problem = format!(
                    "is {}, the limit is {} for task {}",
                    completion.eager_activities, self.limit, token.run
                );
                Err(InvalidField::new("eager_activities", problem).into())
            }
            Call::CompleteTask(token, _) | Call::FailTask { token, .. } => self.given(token.into()),
            Call::AnswerQuery(token, _) => self.given(token.into()),
            Call::ResolveActivity(token, _) => Ok(self.attempt(token, true)),
            Call::Heartbeat(token, _) => Ok(self.attempt(token, false)),
            Call::PresentAttempt(token, _) => {
                Ok(Permitted { task: token.into(), present: None, answers: false })
            }
            _ => Err(InvalidField::new("completion", "is not a worker's call").into()),
        }
    }

    fn given(&self, task: HeldTask) -> Result<Permitted, CallError> {
        if self.tasks.contains(&task) {
            return Ok(Permitted { task, present: None, answers: true });
        }
        Err(InvalidField::new("token", "names a task that this session was not given").into())
    }

    fn attempt(&self, token: &ActivityToken, answers: bool) -> Permitted {
        let task = token.into();
        let present = (!self.tasks.contains(&task)).then(|| token.clone());
        Permitted { task, present, answers }
    }

    /// The engine has answered the call.
    pub(crate) fn settle(
        &mut self,
        task: HeldTask,
        answers: bool,
        result: &Result<CallReply, CallError>,
    ) {
        let repeat = matches!(
            result,
            Err(CallError::Reset
                | CallError::Unavailable(_)
                | CallError::Overloaded
                | CallError::Refused(Refusal::Busy))
        );
        match result {
            Ok(_) if !answers => {
                self.tasks.insert(task);
            }
            _ if repeat => {}
            Ok(_) | Err(_) => {
                self.tasks.remove(&task);
            }
        }
    }
}
