//! One run in memory: its code and the replay machine that drives it through history.

use std::{sync::Arc, time::Duration};

use abide_core::{
    event::{Event, Fact, UpdateAdmitted},
    failure::Failure,
    ids::{EventNumber, StartId},
    operation::QueryRequest,
    payload::Payloads,
    replay::{Completion, Error, Mismatch, Replay},
    report::TaskToken,
    run::GivenTask,
    time::Timestamp,
};

use super::{
    local::{Launcher, LocalRunner},
    shared::WorkerCore,
};
use crate::registry::{Registry, TaskFault, WorkflowCode};

pub(super) struct CachedRun {
    replay: Replay<Box<dyn WorkflowCode>>,
    workflow_type: Arc<str>,
    last_turn: Option<StartId>,
    /// The log position from which the machine may have missed events.
    log_position: u64,
    locals: LocalRunner,
    /// When the last task was scheduled, and when it was started.
    scheduled_at: Option<Timestamp>,
    started_at: Option<Timestamp>,
}

/// Why a run cannot continue in memory.
pub(super) enum Trouble {
    /// The machine in memory is stale for this task: the whole history is needed.
    Stale,
    Unreadable(String),
    UnknownType(String),
    UnknownLocal(String),
    /// The code panicked or did what workflow code must not do.
    Fault(TaskFault),
    /// The code does not match its history.
    Mismatch(Box<Mismatch>),
}

/// What the open task does about its local activities.
pub(super) enum Rest {
    /// No local activity ended: code is where it was.
    Nothing,
    /// Code progressed, and waits for none of them now.
    WentOn,
    /// Code waits for local activities that are running.
    Waits,
}

impl Trouble {
    /// The text for the log and the task's failure.
    pub(super) fn message(&self, shared: &WorkerCore) -> String {
        match self {
            Self::Stale => "the history does not lead to this task".into(),
            Self::Unreadable(error) => format!("the history cannot be read: {error}"),
            Self::UnknownType(name) => {
                let known: Vec<_> = shared.registry.workflow_types().collect();
                let (queue, known) = (&shared.queue, known.join(", "));
                format!(
                    "workflow {name} is not registered with this worker of queue {queue}; \
                     it has: {known}"
                )
            }
            Self::UnknownLocal(name) => {
                let known: Vec<_> = shared.registry.activity_types().collect();
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                format!(
                    "local activity {name} is not registered with the worker of its workflow; \
                     it has: {known}"
                )
            }
            Self::Fault(fault) => fault.failure.message.clone(),
            Self::Mismatch(mismatch) => mismatch.to_string(),
        }
    }
}

impl CachedRun {
    /// A machine at the start of the history that begins with these events.
    pub(super) fn new(registry: &Registry, events: &[Event]) -> Result<Self, Trouble> {
        let Some(Fact::RunStarted(started)) = events.first().map(|event| &event.body.fact) else {
            return Err(Trouble::Unreadable("it does not begin with RunStarted".into()));
        };
        let workflow_type = &started.spec.workflow_type;
        let workflow = abide_core::ids::WorkflowKey {
            namespace: started.namespace.clone(),
            workflow: started.workflow.clone(),
        };
        let code = registry
            .create(workflow_type, &workflow, started.run)
            .ok_or_else(|| Trouble::UnknownType(workflow_type.clone()))?;
        let workflow_type = workflow_type.as_str().into();
        Ok(Self {
            replay: Replay::new(code),
            workflow_type,
            last_turn: None,
            log_position: 0,
            locals: LocalRunner::default(),
            scheduled_at: None,
            started_at: None,
        })
    }

    pub(super) fn workflow_type(&self) -> &Arc<str> {
        &self.workflow_type
    }

    /// The start of the last task whose turn ran on this machine.
    pub(super) fn last_turn(&self) -> Option<StartId> {
        self.last_turn
    }

    /// The number of the last event that was fed to the machine.
    pub(super) fn seen(&self) -> EventNumber {
        self.replay.seen()
    }

    /// The log position from which to read on.
    pub(super) fn log_position(&self) -> u64 {
        self.log_position
    }

    /// Records that the machine was fed the log up to this position.
    pub(super) fn read_to(&mut self, position: u64) {
        self.log_position = position;
    }

    /// Feeds the next events of the log.
    pub(super) fn feed(&mut self, events: Vec<Event>) -> Result<(), Trouble> {
        for event in &events {
            match &event.body.fact {
                Fact::TaskScheduled(_) => self.scheduled_at = Some(event.time),
                Fact::TaskStarted(_) => self.started_at = Some(event.time),
                _ => {}
            }
        }
        let fed = self.replay.feed(events);
        self.checked(fed)
    }

    /// How long the last task waited for a worker.
    pub(super) fn waited(&self) -> Option<Duration> {
        let (scheduled, started) = self.scheduled_at.zip(self.started_at)?;
        Some(started.saturating_since(scheduled))
    }

    /// Runs the open task.
    pub(super) fn turn(
        &mut self,
        token: &TaskToken,
        given: &GivenTask,
    ) -> Result<Completion, Trouble> {
        self.feed(given.tail.clone())?;
        if self.replay.acknowledged() != given.previous {
            return Err(Trouble::Stale);
        }
        let updates: Vec<_> = given
            .updates
            .iter()
            .map(|(update, request)| UpdateAdmitted {
                update: update.clone(),
                request: request.clone(),
            })
            .collect();
        let turn = self.replay.turn(&updates);
        let completion = self.checked(turn)?;
        self.last_turn = Some(token.start);
        Ok(completion)
    }

    /// Starts and stops the local activities that the open task's code requests, and delivers the
    /// ends of those that have ended, in order of arrival. Returns what the task still waits for.
    pub(super) fn go_on_locally(
        &mut self,
        token: &TaskToken,
        launcher: &mut Launcher,
    ) -> Result<Rest, Trouble> {
        let mut went_on = false;
        while !self.replay.closes() {
            let work = self.replay.code_mut().take_local_work();
            self.locals.take(work, token, launcher).map_err(Trouble::UnknownLocal)?;
            let Some(ended) = self.locals.next_end() else { break };
            let told = self.replay.local_resolved(&ended);
            self.checked(told)?;
            went_on = true;
        }
        Ok(match self.locals.running() && !self.replay.closes() {
            true => Rest::Waits,
            false if went_on => Rest::WentOn,
            false => Rest::Nothing,
        })
    }

    /// The completion of the open task, as far as code has progressed.
    pub(super) fn completion(&self) -> Completion {
        self.replay.completion()
    }

    pub(super) fn locals(&mut self) -> &mut LocalRunner {
        &mut self.locals
    }

    /// Marks the current end of the log, so that queries see the latest state.
    pub(super) fn settle(&mut self) -> Result<(), Trouble> {
        let settled = self.replay.settle();
        self.checked(settled)
    }

    /// Answers a query from the current state.
    pub(super) fn query(&mut self, request: &QueryRequest) -> Result<Payloads, Failure> {
        let moves = self.replay.unseen_moves();
        self.replay.code_mut().query(request, moves)
    }

    /// A fault takes precedence over a mismatch: stopped code matches no history.
    fn checked<T>(&mut self, result: Result<T, Error>) -> Result<T, Trouble> {
        if let Some(fault) = self.replay.code_mut().take_fault() {
            return Err(Trouble::Fault(fault));
        }
        result.map_err(|error| match error {
            Error::Mismatch(mismatch) => Trouble::Mismatch(mismatch),
            Error::Gap { .. } | Error::TurnDiscarded { .. } | Error::NoOpenTask => Trouble::Stale,
        })
    }
}
