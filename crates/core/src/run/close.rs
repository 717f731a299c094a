//! How a run closes: what happens to its children, who is notified, and whether another run
//! follows.

use std::collections::BTreeSet;

use super::{
    Close, CompleteTask, Context, Decision, Reply, Run, StartRun, Status, cancel, draft::Draft,
    keys::newest,
};
use crate::{
    command::{Ask, ContinueAsNew},
    effect::{Action, ChildClosed, RunOutcome},
    event::{
        Body, CancelMode, CompletedUpdate, Event, Fact, Initiator, ParentClosePolicy, PreviousRun,
        RunCompleted, RunContinuedAsNew, RunFailed, RunTerminated, RunTimedOut, Target,
        UpdateAdmitted, UpdateRequest,
    },
    failure::{Failure, TimeoutKind},
    ids::{EventNumber, RunId, UpdateId},
    payload::{Extension, Payloads},
    retry::{RetryDecision, RetryState},
    run::KnownUpdate,
    schedule::{cron, id_of},
    time::Timestamp,
};

/// Run that follows this one, if any, and when.
struct NextRun {
    initiator: Initiator,
    at: Option<Timestamp>,
}

pub(super) fn complete(draft: &mut Draft<'_>, result: Payloads) -> Fact {
    let next = cron_run(draft.run, draft.context);
    let next_run = next.as_ref().map(|_| draft.context.next_run);
    if let Some(next) = next {
        follow(draft, next, None, Some(result.clone()));
    }
    RunCompleted { result, next_run }.into()
}

pub(super) fn fail(draft: &mut Draft<'_>, failure: Failure) -> Fact {
    let (retry_state, next) = retry_or_cron(draft.run, draft.context, &failure);
    let next_run = next.as_ref().map(|_| draft.context.next_run);
    if let Some(next) = next {
        follow(draft, next, Some(failure.clone()), None);
    }
    RunFailed { failure, retry_state, next_run }.into()
}

/// Closes a run that has timed out.
pub(super) fn time_out(mut draft: Draft<'_>) -> Decision {
    cancel::end_from_outside(&mut draft);
    let failure = Failure::timeout(TimeoutKind::StartToClose);
    let (retry_state, next) = retry_or_cron(draft.run, draft.context, &failure);
    let next_run = next.as_ref().map(|_| draft.context.next_run);
    if let Some(next) = next {
        follow(&mut draft, next, Some(failure), None);
    }
    draft.event(RunTimedOut { retry_state, next_run });
    draft.finish(Reply::Done)
}

/// Continues in a new run, with unread inputs and uncompleted updates.
pub(super) fn continue_as_new(
    draft: &mut Draft<'_>,
    command: ContinueAsNew,
    carried: Vec<Body>,
) -> Fact {
    let ContinueAsNew { spec, signals, updates } = command;
    let previous = previous(draft.run, draft.context, Initiator::ContinueAsNew);
    let mut start = successor(draft.run, draft.context, previous);
    start.spec = spec.clone();
    // This very task may have accepted an update.
    let accepted = draft.events().iter().map(|event| event.body.clone());
    let bodies: Vec<_> = carried.into_iter().chain(accepted).collect();
    let unread = bodies.iter().filter(|body| matches!(body.fact, Fact::SignalReceived(_)));
    let unfinished = updates.iter().filter_map(|update| admit_again(draft.run, update, &bodies));
    start.inputs = unread.cloned().chain(unfinished).collect();
    let next_run = start.run;
    draft.follow(start);
    RunContinuedAsNew { next_run, spec, signals, updates }.into()
}

/// A signal that a continue-as-new names but that does not exist.
pub(super) fn missing_signal(input: &CompleteTask) -> Option<EventNumber> {
    let Some(Ask::ContinueAsNew(command)) = input.commands.last().map(|command| &command.ask)
    else {
        return None;
    };
    let found = input.carried.iter().filter(|body| matches!(body.fact, Fact::SignalReceived(_)));
    let wanted: BTreeSet<_> = command.signals.iter().collect();
    if found.count() == wanted.len() { None } else { command.signals.last().copied() }
}

/// An update without an outcome is delivered again to the new run.
fn admit_again(run: &Run, update: &UpdateId, bodies: &[Body]) -> Option<Body> {
    let again = |request: &UpdateRequest, extension: &Extension| {
        let admitted = UpdateAdmitted { update: update.clone(), request: request.clone() };
        Body::new(admitted).with_extension(extension.clone())
    };
    match run.updates.get(update)? {
        KnownUpdate::Admitted(request) => Some(again(request, &Extension::new())),
        KnownUpdate::Accepted { .. } => bodies.iter().find_map(|body| {
            let Fact::UpdateAccepted(accepted) = &body.fact else { return None };
            (accepted.update == *update).then(|| again(&accepted.request, &body.extension))
        }),
        KnownUpdate::Completed { .. } | KnownUpdate::Rejected { .. } => None,
    }
}

fn retry_or_cron(
    run: &Run,
    context: &Context<'_>,
    failure: &Failure,
) -> (RetryState, Option<NextRun>) {
    // The next run would not know about the request.
    if run.cancel_requested {
        return (RetryState::CancelRequested, None);
    }
    let verdict = match &run.spec.retry {
        None => RetryDecision::Stop(RetryState::PolicyNotSet),
        // The workflow that started the run makes its retries.
        Some(policy) if policy.recorded => RetryDecision::Stop(RetryState::PolicyNotSet),
        Some(policy) => policy.judge(run.attempt, failure),
    };
    match verdict {
        RetryDecision::After(delay) => {
            let at = context.now.saturating_add(delay);
            if run.expires_at.is_some_and(|expires_at| at >= expires_at) {
                return (RetryState::Timeout, None);
            }
            (RetryState::InProgress, Some(NextRun { initiator: Initiator::Retry, at: Some(at) }))
        }
        RetryDecision::Stop(state) => (state, cron_run(run, context)),
    }
}

/// Next run of the schedule, unless cancellation was requested.
fn cron_run(run: &Run, context: &Context<'_>) -> Option<NextRun> {
    if run.cancel_requested {
        return None;
    }
    // A clock that was set back must not repeat a time of the schedule.
    let after = context.now.max(run.last_time);
    let at = cron::next_after(run.spec.cron.as_deref()?, after)?;
    let in_time = run.expires_at.is_none_or(|expires_at| at < expires_at);
    in_time.then_some(NextRun { initiator: Initiator::Cron, at: Some(at) })
}

fn follow(
    draft: &mut Draft<'_>,
    next: NextRun,
    failure: Option<Failure>,
    result: Option<Payloads>,
) {
    let mut previous = previous(draft.run, draft.context, next.initiator);
    previous.failure = failure;
    previous.last_result = result.or(previous.last_result);
    let mut start = successor(draft.run, draft.context, previous);
    start.first_task_at = next.at;
    if next.initiator == Initiator::Retry {
        start.attempt = draft.run.attempt + 1;
    }
    draft.follow(start);
}

pub(super) fn previous(run: &Run, context: &Context<'_>, initiator: Initiator) -> PreviousRun {
    let mut completed_updates = run.carried_updates.clone();
    let completed = run.updates.iter().filter(|(_, update)| update.over());
    completed_updates.extend(completed.map(|(id, update)| CompletedUpdate {
        update: id.clone(),
        run: run.id,
        asked: update.asked(),
    }));
    let limits = context.limits;
    let completed_updates =
        newest(&completed_updates, limits, |completed| completed.update.as_str().len());
    let signal_keys = run.signal_keys.carried(limits);
    PreviousRun {
        run: run.id,
        initiator,
        failure: None,
        last_result: run.last_result.clone(),
        signal_digests: run.signal_keys.digests(&signal_keys),
        signal_keys,
        reschedule_keys: run.reschedule_keys.carried(limits),
        completed_updates,
        cancel_keys: run.cancel_keys.carried(limits),
        pause_keys: run.pause_keys.carried(limits),
        unpause_keys: run.unpause_keys.carried(limits),
    }
}

pub(super) fn successor(run: &Run, context: &Context<'_>, previous: PreviousRun) -> StartRun {
    StartRun {
        ordinal: run.ordinal + 1,
        first_run: Some(run.first_run),
        previous: Some(previous),
        expires_at: run.expires_at,
        parent: run.parent.clone(),
        root: run.root.clone(),
        terminate_keys: run.end_keys(context.limits),
        reset_keys: run.reset_keys.carried(context.limits),
        ..StartRun::new(run.workflow.clone(), context.next_run, run.spec.clone())
    }
}

impl Run {
    pub(super) fn apply_close(&mut self, event: &Event) {
        let Some((how, next_run, outcome)) = ending(&event.body.fact) else { return };
        self.touch_everything();
        let reset = if let Fact::RunTerminated(RunTerminated { reset, .. }) = &event.body.fact {
            reset.as_ref()
        } else {
            None
        };
        self.close_children(reset.map_or(0, |reset| reset.copied));
        if let Some(reset) = reset {
            self.remember_reset(reset);
        }
        if next_run.is_none() {
            self.notify_parent(outcome.clone());
        }
        self.outcome = outcome;
        self.status = Status::Closed { how, at: event.time, next_run };
        self.buffer.clear();
        self.timers.clear();
        self.fired.clear();
        self.waits.clear();
        self.activities.clear();
        self.activity_ids.clear();
        self.children.clear();
        self.externals.clear();
        self.task = super::Task::Idle;
        self.unseen = false;
        self.volatile.turn = None;
        self.volatile.admitted.clear();
        self.volatile.heartbeats = Default::default();
        self.volatile.task_not_before = None;
        self.volatile.lost_starts = 0;
    }

    /// Applies the parent close policies, except to the children of the first `copied` events, which
    /// the run that a reset makes takes over.
    fn close_children(&mut self, copied: EventNumber) {
        let children: Vec<_> = self
            .children
            .range(copied + 1..)
            .filter(|(_, child)| !child.closing)
            .map(|(number, child)| (*number, child.child.clone()))
            .collect();
        for (number, child) in children {
            let mode = match child.parent_close {
                ParentClosePolicy::Abandon => continue,
                ParentClosePolicy::Terminate => CancelMode::Terminate,
                ParentClosePolicy::RequestCancel => CancelMode::Request,
            };
            let target = Target { workflow: child.workflow, run: None, child: Some(number) };
            self.send(target, Action::Cancel { mode, reason: "the parent closed".into() }, None);
        }
        // The answers are no longer needed.
        for effect in self.outbox.values_mut() {
            effect.initiated = None;
        }
    }

    pub(super) fn notify_parent(&mut self, outcome: Option<RunOutcome>) {
        let (Some(parent), Some(outcome)) = (self.parent.clone(), outcome) else { return };
        // A schedule may go on in another run meanwhile, and knows what it started all the same.
        let run = Some(parent.run.run).filter(|_| id_of(&parent.run.workflow.workflow).is_none());
        let target = Target { workflow: parent.run.workflow, run, child: None };
        let closed = ChildClosed {
            initiated: parent.initiated,
            first_run: self.first_run,
            run: self.id,
            outcome,
        };
        self.send(target, Action::ChildClosed(closed), None);
    }
}

/// How a fact closes the run, the run that follows, and the outcome for a parent.
fn ending(fact: &Fact) -> Option<(Close, Option<RunId>, Option<RunOutcome>)> {
    #[expect(clippy::wildcard_enum_match_arm, reason = "other facts end no run")]
    let ending = match fact {
        Fact::RunCompleted(closed) => {
            let outcome = RunOutcome::Completed(closed.result.clone());
            (Close::Completed, closed.next_run, Some(outcome))
        }
        Fact::RunFailed(closed) => {
            let (failure, retry_state) = (closed.failure.clone(), closed.retry_state);
            (Close::Failed, closed.next_run, Some(RunOutcome::Failed { failure, retry_state }))
        }
        Fact::RunTimedOut(closed) => {
            let outcome = RunOutcome::TimedOut { retry_state: closed.retry_state };
            (Close::TimedOut, closed.next_run, Some(outcome))
        }
        Fact::RunCancelled(closed) => {
            (Close::Cancelled, None, Some(RunOutcome::Cancelled(closed.details.clone())))
        }
        Fact::RunTerminated(closed) => {
            let outcome = RunOutcome::Terminated { reason: closed.reason.clone() };
            (Close::Terminated, closed.reset.as_ref().map(|reset| reset.run), Some(outcome))
        }
        Fact::RunContinuedAsNew(closed) => (Close::ContinuedAsNew, Some(closed.next_run), None),
        _ => return None,
    };
    Some(ending)
}
