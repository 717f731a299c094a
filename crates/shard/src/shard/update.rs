//! Updates: requested, looked up by id, or requested together with a start. A caller waits for the
//! run that has the update, which may be an earlier or a later run of the chain than the one it
//! named.

use abide_core::{
    event::UpdateRequest,
    ids::{RunId, UpdateId, WorkflowKey},
    operation::{
        AnyAnswer, AwaitUpdate, CallError, Operation as _, RunTarget, StartUpdate, Started, Ticket,
        Update, UpdateAnswer, UpdateWait,
    },
    run::{Close, Input, Refusal, Reply, Run, Stage, Status},
};

use super::{Shard, Todo, request::Request, waiters::Until};

/// Bytes of an update that needs no room among the large ones. A run bounds the number of its updates.
const SMALL_UPDATE: usize = 16 << 10;

/// A completed start whose update is still in progress.
#[derive(Clone, Copy, Debug)]
pub(super) struct Begun {
    run: RunId,
    started: bool,
}

/// An update that a caller waits for.
#[derive(Debug)]
pub(super) struct AwaitedUpdate {
    /// The update, and the stage to wait for.
    pub(super) asked: AwaitUpdate,
    /// The update request; none for a lookup.
    request: Option<UpdateRequest>,
}

impl From<Update> for AwaitedUpdate {
    fn from(asked: Update) -> Self {
        let Update { target, update, request, until, wait_while_blocked } = asked;
        let asked = AwaitUpdate { target, update, until, wait_while_blocked };
        Self { asked, request: Some(request) }
    }
}

impl From<AwaitUpdate> for AwaitedUpdate {
    fn from(asked: AwaitUpdate) -> Self {
        Self { asked, request: None }
    }
}

impl AwaitedUpdate {
    /// The same request for another run of the workflow.
    pub(super) fn at(self, run: RunId) -> Request {
        let AwaitUpdate { target, update, until, wait_while_blocked } = self.asked;
        let target = RunTarget { run: Some(run), ..target };
        match self.request {
            Some(request) => Update { target, update, request, until, wait_while_blocked }.into(),
            None => AwaitUpdate { target, update, until, wait_while_blocked }.into(),
        }
    }
}

impl Shard {
    /// Requests an update, and waits until it reaches the requested stage.
    pub(super) fn update(&mut self, run: RunId, ticket: Ticket, asked: Update) {
        let (update, request) = (asked.update.clone(), asked.request.clone());
        match self.admit(run, update, request, asked.wait_while_blocked) {
            Ok(Reply::Update(Stage::CompletedIn(earlier))) => {
                self.with_run(
                    earlier,
                    Todo::Request(ticket, AwaitedUpdate::from(asked).at(earlier)),
                );
            }
            Ok(_) => self.await_run(run, ticket, Until::Update(Box::new(asked.into()))),
            Err(error) if Self::busy(&error) => {
                self.park_busy(run, Todo::Request(ticket, asked.into()));
            }
            Err(CallError::Refused(Refusal::RunClosed)) => {
                // A retried start means the whole chain that it began, so the update goes to the
                // next run.
                match self.next_of(run).filter(|_| self.memory.begun.contains_key(&ticket)) {
                    Some(next) => {
                        let asked = AwaitedUpdate::from(asked).at(next);
                        self.with_run(next, Todo::Request(ticket, asked));
                    }
                    None => self.reply(ticket, Err(Refusal::RunClosed.into())),
                }
            }
            Err(error) => self.reply_after(run, ticket, Err(error)),
        }
    }

    /// Passes an update to the run. A blocked run, whose code does not fit its history, cannot
    /// accept it before it is unblocked, and not every caller wants to wait for that. Waiting updates are
    /// only in memory, so a shard has room for few large ones. Small ones need not wait for those, which
    /// may belong to a run without a worker.
    pub(super) fn admit(
        &mut self,
        run: RunId,
        update: UpdateId,
        request: UpdateRequest,
        wait_while_blocked: bool,
    ) -> Result<Reply, CallError> {
        let entry = self.memory.cache.peek(run);
        let new = entry.filter(|entry| entry.run.update_stage(&update).is_none());
        let blocked = new.and_then(|entry| entry.run.blocked()).filter(|_| !wait_while_blocked);
        if let Some(blocked) = blocked {
            return Err(CallError::Blocked(Box::new(blocked.clone())));
        }
        let takes_room = request.memory() > SMALL_UPDATE && new.is_some_and(|new| new.run.open());
        if takes_room && self.in_memory_only().updates >= self.limits.waiting_update_bytes {
            return Err(CallError::Overloaded);
        }
        self.decide(run, Input::AdmitUpdate { update, request, wait_while_blocked })
    }

    /// Waits until an update that was requested before, by any caller, reaches the requested stage.
    pub(super) fn look_up_update(&mut self, run: RunId, ticket: Ticket, asked: AwaitUpdate) {
        let Some(entry) = self.memory.cache.peek(run) else { return };
        let elsewhere = match entry.run.update_stage(&asked.update) {
            Some(Stage::CompletedIn(earlier)) => Some(earlier),
            Some(_) => {
                return self.await_run(run, ticket, Until::Update(Box::new(asked.into())));
            }
            None => self.next_of(run),
        };
        match elsewhere {
            Some(other) => {
                let asked = AwaitedUpdate::from(asked).at(other);
                self.with_run(other, Todo::Request(ticket, asked));
            }
            None => {
                let unknown = Refusal::UnknownUpdate(asked.update);
                self.reply_after(run, ticket, Err(unknown.into()));
            }
        }
    }

    /// A start is done: answers its caller, or first waits for the update that came with it.
    pub(super) fn start_done(
        &mut self,
        begun: (RunId, bool),
        ticket: Ticket,
        workflow: WorkflowKey,
        update: Option<Box<StartUpdate>>,
    ) {
        let (run, started) = begun;
        let Some(update) = update else {
            let started = Started { run, started, update: None };
            return self.reply_after(run, ticket, Ok(started.into()));
        };
        self.memory.begun.insert(ticket, Begun { run, started });
        let StartUpdate { update, request, until, wait_while_blocked } = *update;
        let target = RunTarget { workflow, run: Some(run) };
        let asked = Update { target, update, request, until, wait_while_blocked };
        self.with_run(run, Todo::Request(ticket, asked.into()));
    }

    /// Combines the answer to an update with the start that the same call made, and returns the run
    /// of that start. A passing error is returned alone, so that the caller retries the whole call.
    pub(super) fn with_start(
        &mut self,
        ticket: Ticket,
        reply: Result<AnyAnswer, CallError>,
    ) -> (Option<RunId>, Result<AnyAnswer, CallError>) {
        match self.memory.begun.remove(&ticket) {
            None => (None, reply),
            Some(Begun { run, .. }) if reply.as_ref().is_err_and(CallError::passing) => {
                (Some(run), reply)
            }
            Some(Begun { run, started }) => {
                let update = Some(reply.and_then(Update::answer));
                (Some(run), Ok(Started { run, started, update }.into()))
            }
        }
    }

    fn next_of(&self, run: RunId) -> Option<RunId> {
        match self.memory.cache.peek(run)?.run.status {
            Status::Open => None,
            Status::Closed { next_run, .. } => next_run,
        }
    }
}

const fn moves_on(how: Close) -> bool {
    matches!(how, Close::ContinuedAsNew | Close::Terminated)
}

/// The answer to a caller that waits for an update; none while it must wait longer.
pub(super) fn answer(run: &Run, asked: &AwaitUpdate) -> Option<Result<AnyAnswer, CallError>> {
    let at = |stage| Some(Ok(UpdateAnswer::Reached { run: run.id, stage }.into()));
    let (how, next_run) = match run.status {
        Status::Open => (None, None),
        Status::Closed { how, next_run, .. } => (Some(how), next_run),
    };
    let AwaitUpdate { update, until, wait_while_blocked, .. } = asked;
    let stage = run.update_stage(update);
    let accepted = matches!(stage, Some(Stage::Accepted));
    let blocked = run.blocked().filter(|_| !*wait_while_blocked);
    match (stage, how) {
        (Some(stage @ Stage::Completed(_)), _) => at(stage),
        (Some(Stage::Rejected(failure)), _) => Some(Ok(UpdateAnswer::Rejected(failure).into())),
        (Some(stage @ Stage::Accepted), _) if *until == UpdateWait::Accepted => at(stage),
        (Some(stage), None) if *until == UpdateWait::Admitted => at(stage),
        (_, None) if blocked.is_some() => {
            blocked.map(|blocked| Err(CallError::Blocked(Box::new(blocked.clone()))))
        }
        (Some(_), None) => None,
        (None, None) => Some(Err(CallError::Reset)),
        // The next run has the update, or receives it now. An accepted update moves on only with a
        // continue-as-new or a reset, the one termination that another run follows.
        (_, Some(how)) if next_run.is_some() && (!accepted || moves_on(how)) => None,
        (_, Some(how)) => Some(Err(CallError::UpdateAborted { run: run.id, how, accepted })),
    }
}
