//! Updates: asked for, looked up by their id, or asked for together with a start. A caller waits for the
//! run that has the update, which may be an earlier or a later one of the chain than it named.

use abide_core::{
    call::{Call, CallError, CallReply, RunTarget, StartUpdate, Ticket, UpdateWait},
    event::UpdateRequest,
    ids::{RunId, UpdateId, WorkflowKey},
    run::{Close, Input, Refusal, Reply, Run, Stage, Status},
};

use super::{Shard, Todo, waiters::Until};

/// A start that is done, while the update that came with it is under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Begun {
    run: RunId,
    started: bool,
}

impl Shard {
    /// Asks for an update, and waits until it is so far.
    pub(super) fn update(&mut self, run: RunId, ticket: Ticket, call: Box<Call>) {
        let Call::Update { update, request, wait_while_blocked, .. } = (*call).clone() else {
            return;
        };
        match self.admit(run, update, request, wait_while_blocked) {
            Ok(Reply::Update(Stage::CompletedIn(earlier))) => {
                self.with_run(earlier, Todo::Call(ticket, Box::new(at_run(*call, earlier))))
            }
            Ok(_) => self.await_run(run, ticket, Until::Update(call)),
            Err(error) if Self::busy(&error) => self.park_busy(run, Todo::Call(ticket, call)),
            Err(CallError::Refused(Refusal::RunClosed)) => {
                // Whoever repeats a start means the chain that it began, wherever that is now.
                match self.next_of(run).filter(|_| self.begun.contains_key(&ticket)) {
                    Some(next) => {
                        self.with_run(next, Todo::Call(ticket, Box::new(at_run(*call, next))))
                    }
                    None => self.reply(ticket, Err(Refusal::RunClosed.into())),
                }
            }
            Err(error) => self.reply_after(run, ticket, Err(error)),
        }
    }

    /// Asks the run for an update. One whose code does not fit its history cannot judge it before it is
    /// repaired, which not every caller wants to wait for.
    pub(super) fn admit(
        &mut self,
        run: RunId,
        update: UpdateId,
        request: UpdateRequest,
        wait_while_blocked: bool,
    ) -> Result<Reply, CallError> {
        let entry = self.cache.peek(run).filter(|_| !wait_while_blocked);
        let new = entry.filter(|entry| entry.run.update_stage(&update).is_none());
        if let Some(blocked) = new.and_then(|entry| entry.run.blocked()) {
            return Err(CallError::Blocked(Box::new(blocked.clone())));
        }
        self.decide(run, Input::AdmitUpdate { update, request, wait_while_blocked })
    }

    /// Waits until an update is so far that was asked for before, by whomever.
    pub(super) fn look_up_update(&mut self, run: RunId, ticket: Ticket, call: Box<Call>) {
        let Call::AwaitUpdate { update, .. } = &*call else { return };
        let Some(entry) = self.cache.peek(run) else { return };
        match entry.run.update_stage(update) {
            Some(Stage::CompletedIn(earlier)) => {
                self.with_run(earlier, Todo::Call(ticket, Box::new(at_run(*call, earlier))))
            }
            Some(_) => self.await_run(run, ticket, Until::Update(call)),
            None => match self.next_of(run) {
                Some(next) => {
                    self.with_run(next, Todo::Call(ticket, Box::new(at_run(*call, next))))
                }
                None => {
                    let unknown = Refusal::UnknownUpdate(update.clone());
                    self.reply_after(run, ticket, Err(unknown.into()));
                }
            },
        }
    }

    /// A start is done: its caller is told, once the update that came with it is so far.
    pub(super) fn start_done(
        &mut self,
        begun: (RunId, bool),
        ticket: Ticket,
        workflow: WorkflowKey,
        update: Option<Box<StartUpdate>>,
    ) {
        let (run, started) = begun;
        let Some(update) = update else {
            return self.reply_after(run, ticket, Ok(CallReply::Started { run, started }));
        };
        self.begun.insert(ticket, Begun { run, started });
        let StartUpdate { update, request, until, wait_while_blocked } = *update;
        let target = RunTarget { workflow, run: Some(run) };
        let call = Call::Update { target, update, request, until, wait_while_blocked };
        self.with_run(run, Todo::Call(ticket, Box::new(call)));
    }

    /// The run of a start that this call has made, and what the caller is told of both parts. What
    /// passes is told as it is, so that the whole call is repeated.
    pub(super) fn with_start(
        &mut self,
        ticket: Ticket,
        reply: Result<CallReply, CallError>,
    ) -> (Option<RunId>, Result<CallReply, CallError>) {
        match self.begun.remove(&ticket) {
            None => (None, reply),
            Some(Begun { run, .. }) if reply.as_ref().is_err_and(CallError::passing) => {
                (Some(run), reply)
            }
            Some(Begun { run, started }) => {
                let update = Box::new(reply);
                (Some(run), Ok(CallReply::StartedWithUpdate { run, started, update }))
            }
        }
    }

    fn next_of(&self, run: RunId) -> Option<RunId> {
        match self.cache.peek(run)?.run.status {
            Status::Open => None,
            Status::Closed { next_run, .. } => next_run,
        }
    }
}

/// What a caller who waits for an update is told; nothing while there is more to come.
pub(super) fn answer(
    run: &Run,
    update: &UpdateId,
    until: UpdateWait,
    wait_while_blocked: bool,
) -> Option<Result<CallReply, CallError>> {
    let at = |stage| Some(Ok(CallReply::Update { run: run.id, stage }));
    let (how, next_run) = match run.status {
        Status::Open => (None, None),
        Status::Closed { how, next_run, .. } => (Some(how), next_run),
    };
    let stage = run.update_stage(update);
    let accepted = matches!(stage, Some(Stage::Accepted));
    let blocked = run.blocked().filter(|_| !wait_while_blocked);
    match (stage, how) {
        (Some(stage @ Stage::Completed(_)), _) => at(stage),
        (Some(Stage::Rejected(failure)), _) => Some(Ok(CallReply::UpdateRejected(failure))),
        (Some(stage @ Stage::Accepted), _) if until == UpdateWait::Accepted => at(stage),
        (Some(stage), None) if until == UpdateWait::Admitted => at(stage),
        (_, None) if blocked.is_some() => {
            blocked.map(|blocked| Err(CallError::Blocked(Box::new(blocked.clone()))))
        }
        (Some(_), None) => None,
        (None, None) => Some(Err(CallError::Reset)),
        // The next run has the update, or gets it now; but not what another try began.
        (_, Some(how)) if next_run.is_some() && (!accepted || how == Close::ContinuedAsNew) => None,
        (_, Some(how)) => Some(Err(CallError::UpdateAborted { run: run.id, how, accepted })),
    }
}

/// The same call for one run of the workflow.
pub(super) fn at_run(call: Call, run: RunId) -> Call {
    let at = |target: RunTarget| RunTarget { run: Some(run), ..target };
    match call {
        Call::Update { target, update, request, until, wait_while_blocked } => {
            Call::Update { target: at(target), update, request, until, wait_while_blocked }
        }
        Call::AwaitUpdate { target, update, until, wait_while_blocked } => {
            Call::AwaitUpdate { target: at(target), update, until, wait_while_blocked }
        }
        other => other,
    }
}
