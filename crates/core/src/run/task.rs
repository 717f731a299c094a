//! Workflow tasks: one at a time. A start lives in memory and is written with its end, so that a turn
//! of the workflow's code costs one log row.
//!
//! | task | input | becomes |
//! |---|---|---|
//! | Idle | something code must see | Scheduled |
//! | Idle, updates admitted | a worker takes it | a turn whose TaskScheduled is written with its end |
//! | Scheduled, Retry | a worker takes it | a turn |
//! | turn | completed | Idle, or Scheduled if inputs were buffered |
//! | turn | completed with rejections only | as it was before; nothing is written |
//! | turn | failed, timed out | Retry, or Scheduled if inputs were buffered |
//! | turn | worker lost | as it was before; buffered inputs are numbered |

use std::time::Duration;

use super::{
    CompleteTask, Context, Decision, Extent, FailTask, Refusal, Reply, Retry, Run, StartTask,
    StartedTask, Task, Touch, buffer, close, commands, draft::Draft, update,
};
use crate::{
    command::Ask,
    event::{
        Blocked, Body, Event, Fact, FactSource, RunTerminated, TaskCompleted, TaskFailed,
        TaskFailureCause, TaskScheduled, TaskStarted, TaskTimedOut, UpdateRequest,
    },
    failure::{Failure, TimeoutKind},
    ids::{EventNumber, StartId, UpdateId},
    limits::{Limits, TASK_BACKOFF_MAX},
    note::{Note, TaskAttemptFailed},
    retry::RetryPolicy,
    time::Timestamp,
};

/// What a worker gets beside the history up to [`Run::last_event`].
#[derive(Clone, Debug, PartialEq)]
pub struct GivenTask {
    pub start: StartId,
    pub attempt: u32,
    /// Number of the last TaskCompleted, on which the task builds.
    pub previous: EventNumber,
    /// Events that end the worker's history but are not written yet.
    pub tail: Vec<Event>,
    /// Updates to be accepted or rejected, in order.
    pub updates: Vec<(UpdateId, UpdateRequest)>,
    /// How long the worker may take.
    pub timeout: Duration,
}

pub(super) fn start(draft: Draft<'_>, start: StartTask) -> Result<Decision, Refusal> {
    let run = &*draft.run;
    if run.paused {
        return Err(Refusal::Held);
    }
    if !run.task_ready(draft.now()) {
        return Err(Refusal::StaleTask);
    }
    if run.build_tried(start.build.as_ref()) {
        return Err(Refusal::BuildTried);
    }
    let turn = new_turn(run, draft.context, start);
    let given = GivenTask {
        start: turn.start,
        attempt: turn.attempt,
        previous: run.completed,
        tail: tail(run, draft.context.limits, &turn),
        updates: run.admitted_in_order(),
        timeout: run.task_timeout(draft.context.limits),
    };
    draft.run.volatile.turn = Some(turn);
    draft.run.volatile.task_not_before = None;
    Ok(draft.finish(Reply::TaskGiven(Box::new(given))))
}

fn new_turn(run: &Run, context: &Context<'_>, start: StartTask) -> StartedTask {
    let limits = context.limits;
    let (scheduled, attempt) = match &run.task {
        Task::Idle => (None, 1),
        Task::Scheduled { number } => (Some(*number), 1),
        Task::Retry(retry) => (None, retry.attempt),
    };
    StartedTask {
        start: start.start,
        at: context.now,
        session: start.session,
        identity: start.identity,
        build: start.build,
        attempt: attempt + run.volatile.lost_starts,
        scheduled,
        updates: run.admitted_in_order().into_iter().map(|(update, _)| update).collect(),
        history_bytes: run.history_bytes,
        suggest_continue_as_new: long_history(run, limits),
    }
}

/// The run should continue as new. What it began with does not count: a run that takes over many
/// messages would else hand them on without having read one, for ever. Where they leave little room,
/// half of it is for what the run makes of them.
fn long_history(run: &Run, limits: &Limits) -> bool {
    let Extent { events, bytes } = run.beginning;
    let room = limits.events.saturating_sub(events) / 2;
    let grown = run.last_event.saturating_sub(events);
    grown >= limits.events_suggested.min(room).max(1)
        || run.history_bytes.saturating_sub(bytes) >= limits.history_bytes_suggested
}

/// The events that the turn's end will write first, as the worker sees them now.
fn tail(run: &Run, limits: &Limits, turn: &StartedTask) -> Vec<Event> {
    let mut bodies = Vec::new();
    if turn.scheduled.is_none() {
        let queue = run.spec.queue.clone();
        let timeout = run.task_timeout(limits);
        bodies.push(Body::new(TaskScheduled { queue, attempt: turn.attempt, timeout }));
    }
    let scheduled = turn.scheduled.unwrap_or(run.last_event + 1);
    bodies.push(Body::new(started(turn, scheduled)));
    // Nothing is numbered before the turn's end, so this is also the time that its start is written with.
    let time = turn.at.max(run.last_time);
    (run.last_event + 1..).zip(bodies).map(|(number, body)| Event { number, time, body }).collect()
}

fn started(turn: &StartedTask, scheduled: EventNumber) -> TaskStarted {
    TaskStarted {
        scheduled,
        start: turn.start,
        identity: turn.identity.clone(),
        history_bytes: turn.history_bytes,
        suggest_continue_as_new: turn.suggest_continue_as_new,
    }
}

pub(super) fn complete(mut draft: Draft<'_>, input: CompleteTask) -> Result<Decision, Refusal> {
    let turn = draft.run.current_turn(input.start)?;
    if let Err(bad) = commands::check(draft.run, draft.context.limits, &input.commands) {
        let message = bad.to_string();
        return Ok(refuse(draft, turn, TaskFailureCause::BadCommand, message));
    }
    if let Some(missing) = close::missing_signal(&input) {
        let message = format!("signal {missing} to carry over is not in the history");
        return Ok(refuse(draft, turn, TaskFailureCause::BadCommand, message));
    }
    let closes = input.commands.last().is_some_and(|command| command.ask.closes());
    if closes && draft.run.unseen_in_buffer() {
        let message = "inputs arrived that the code has not seen".to_owned();
        return Ok(refuse(draft, turn, TaskFailureCause::UnseenInput, message));
    }
    if draft.task_idle() && discardable(&input) {
        return Ok(discard(draft, input));
    }
    if !closes && draft.run.history_full(draft.context.limits, input.commands.len()) {
        return Ok(terminate_full(draft));
    }
    let scheduled = write_start(&mut draft, &turn);
    let completed = TaskCompleted {
        scheduled,
        started: draft.run.last_event,
        identity: turn.identity.clone(),
        build: turn.build.clone(),
        flags: input.flags.clone(),
        sdk_metadata: input.sdk_metadata.clone(),
    };
    draft.event(completed);
    let completed = draft.run.last_event;
    draft.run.volatile.turn = None;
    commands::carry_out(&mut draft, completed, input.commands, input.carried);
    if draft.run.open() {
        update::reject_unanswered(&mut draft, &turn.updates);
        buffer::release(&mut draft);
        draft.run.volatile.forced = input.force_next && !draft.run.unseen;
        if input.force_next && draft.task_idle() {
            // Written also during a pause, so that it is not forgotten; a pause hands out nothing.
            draft.schedule_task(1);
        }
        draft.wake();
    }
    Ok(draft.finish(Reply::TaskTaken { completed }))
}

/// An update-only turn that accepted nothing and asked for nothing needs no trace.
fn discardable(input: &CompleteTask) -> bool {
    let rejects = |ask: &Ask| matches!(ask, Ask::RejectUpdate { .. });
    !input.force_next && input.commands.iter().all(|command| rejects(&command.ask))
}

fn discard(mut draft: Draft<'_>, input: CompleteTask) -> Decision {
    let sent = draft.run.volatile.turn.take().map(|turn| turn.updates).unwrap_or_default();
    for command in input.commands {
        if let Ask::RejectUpdate { update, failure } = command.ask {
            update::reject(&mut draft, update, failure);
        }
    }
    update::reject_unanswered(&mut draft, &sent);
    buffer::release(&mut draft);
    draft.wake();
    draft.run.touch(Touch::Task);
    draft.finish(Reply::TaskDiscarded)
}

fn terminate_full(mut draft: Draft<'_>) -> Decision {
    let limit = draft.context.limits.events + draft.context.limits.events_reserve;
    let reason = format!("the history would exceed the limit of {limit} events");
    super::cancel::end_from_outside(&mut draft);
    draft.event(RunTerminated { reason: reason.clone(), ..RunTerminated::default() });
    draft.finish(Reply::TaskRefused { cause: TaskFailureCause::Closed, message: reason })
}

fn refuse(
    draft: Draft<'_>,
    turn: StartedTask,
    cause: TaskFailureCause,
    message: String,
) -> Decision {
    let failure = Failure { message: message.clone(), ..Failure::default() };
    let input = FailTask { start: turn.start, cause, failure, blocked: None };
    let mut decision = end_failed(draft, turn, input);
    decision.reply = Reply::TaskRefused { cause, message };
    decision
}

pub(super) fn fail(draft: Draft<'_>, input: FailTask) -> Result<Decision, Refusal> {
    let turn = draft.run.current_turn(input.start)?;
    Ok(end_failed(draft, turn, input))
}

/// The first failure is an event; failures of its retries are notes.
fn end_failed(mut draft: Draft<'_>, turn: StartedTask, input: FailTask) -> Decision {
    // Inputs that came meanwhile make the next task a normal one, so history must show this one.
    let retry_again = matches!(draft.run.task, Task::Retry(_)) && draft.run.buffer.is_empty();
    let blocked = input.blocked.is_some();
    if retry_again {
        let StartedTask { attempt, build, .. } = turn;
        let FailTask { cause, failure, blocked, .. } = input;
        let at = draft.now();
        let failed = TaskAttemptFailed { attempt, at, cause, failure, build, blocked };
        draft.note(Note::TaskAttemptFailed(failed));
    } else {
        let scheduled = write_start(&mut draft, &turn);
        let started = draft.run.last_event;
        let FailTask { cause, failure, blocked, .. } = input;
        let StartedTask { identity, build, .. } = turn;
        draft.event(TaskFailed { scheduled, started, cause, failure, identity, build, blocked });
    }
    end_turn(draft, blocked)
}

pub(super) fn time_out(mut draft: Draft<'_>, start: StartId) -> Result<Decision, Refusal> {
    let turn = draft.run.current_turn(start)?;
    if matches!(draft.run.task, Task::Retry(_)) {
        let failure = Failure::timeout(TimeoutKind::StartToClose);
        let cause = TaskFailureCause::WorkerFailure;
        return Ok(end_failed(draft, turn, FailTask { start, cause, failure, blocked: None }));
    }
    let scheduled = write_start(&mut draft, &turn);
    let started = draft.run.last_event;
    draft.event(TaskTimedOut { scheduled, started });
    Ok(end_turn(draft, false))
}

/// The worker is gone: the task goes back at once, slower from the third time on.
pub(super) fn lose(draft: Draft<'_>, start: StartId) -> Result<Decision, Refusal> {
    draft.run.current_turn(start)?;
    draft.run.volatile.lost_starts += 1;
    let lost = draft.run.volatile.lost_starts;
    if lost >= 3 {
        draft.run.volatile.task_not_before = Some(draft.now().saturating_add(backoff(lost - 2)));
    }
    Ok(end_turn(draft, false))
}

/// The run was read from the store: a start in flight is gone.
pub(super) fn recover(draft: Draft<'_>) -> Decision {
    end_turn(draft, false)
}

fn end_turn(mut draft: Draft<'_>, blocked: bool) -> Decision {
    draft.run.volatile.turn = None;
    buffer::release(&mut draft);
    draft.wake();
    // Inputs that came meanwhile are shown to the code at once, and updates with them.
    if blocked && matches!(draft.run.task, Task::Retry(_)) {
        draft.run.withdraw_updates();
    }
    draft.run.touch(Touch::Task);
    draft.finish(Reply::Done)
}

pub(super) fn repair(mut draft: Draft<'_>, identity: String) -> Decision {
    draft.run.forget_attempts();
    draft.run.touch_everything();
    if matches!(draft.run.task, Task::Retry(_)) {
        draft.note(Note::Repaired { identity });
    }
    draft.finish(Reply::Done)
}

/// Writes the failure of a started task before something else closes the run.
pub(super) fn abandon_turn(draft: &mut Draft<'_>, cause: TaskFailureCause) {
    let Some(turn) = draft.run.volatile.turn.take() else { return };
    if turn.scheduled.is_none() && draft.task_idle() {
        return;
    }
    let scheduled = write_start(draft, &turn);
    let started = draft.run.last_event;
    let StartedTask { identity, build, .. } = turn;
    draft.event(TaskFailed { scheduled, started, cause, identity, build, ..TaskFailed::default() });
}

/// Writes TaskScheduled, if it was kept in memory, and TaskStarted with the time the worker saw.
fn write_start(draft: &mut Draft<'_>, turn: &StartedTask) -> EventNumber {
    let scheduled = turn.scheduled.unwrap_or_else(|| {
        let queue = draft.run.spec.queue.clone();
        let timeout = draft.run.task_timeout(draft.context.limits);
        let scheduled = TaskScheduled { queue, attempt: turn.attempt, timeout };
        draft.body_at(turn.at, Body::new(scheduled));
        draft.run.last_event
    });
    draft.body_at(turn.at, Body::new(started(turn, scheduled)));
    scheduled
}

fn backoff(failures: u32) -> Duration {
    let maximum_interval = TASK_BACKOFF_MAX;
    RetryPolicy { maximum_interval, ..RetryPolicy::default() }.delay_after(failures)
}

/// A failed task waits before it is tried again. A blocked one waits for other code instead, which may
/// try it at once, unless the code that failed cannot be told from other code.
fn hold(failed_at: Timestamp, failures: u32, waits_for_other_code: bool) -> Option<Timestamp> {
    (!waits_for_other_code).then(|| failed_at.saturating_add(backoff(failures)))
}

impl Run {
    /// How long a worker may take for a workflow task of this run.
    pub fn task_timeout(&self, limits: &Limits) -> Duration {
        self.spec.task_timeout.unwrap_or(limits.task_timeout)
    }

    /// When the started task's time is up.
    pub fn turn_deadline(&self, limits: &Limits) -> Option<Timestamp> {
        let turn = self.volatile.turn.as_ref()?;
        Some(turn.at.saturating_add(self.task_timeout(limits)))
    }

    /// There is a task that a worker could take, if not now then at [`Self::task_not_before`].
    pub fn task_pending(&self) -> bool {
        let wanted = self.task != Task::Idle
            || (!self.volatile.admitted.is_empty() && self.first_task_at.is_none());
        self.open() && !self.paused && self.volatile.turn.is_none() && wanted
    }

    /// Something has come that code will see in its next task or sees now. A task that the last one
    /// asked for by itself, as it does while local activities run, brings nothing of that kind.
    pub fn news_pending(&self) -> bool {
        let none_since = matches!(self.task, Task::Scheduled { number } if number == self.last_event)
            && self.buffer.is_empty()
            && self.volatile.admitted.is_empty();
        let busy = self.volatile.turn.is_some() || self.task_pending();
        busy && !(self.volatile.forced && none_since)
    }

    /// A worker can take the task now.
    pub fn task_ready(&self, now: Timestamp) -> bool {
        self.task_pending() && self.task_not_before(now).is_none_or(|at| at <= now)
    }

    /// The task is held back until this: it failed or killed its worker. If the time of its failure is
    /// later than now, a clock was ahead, and the wait could be as long as that: the task goes out at
    /// once, and if it fails again, that is at the true time.
    pub fn task_not_before(&self, now: Timestamp) -> Option<Timestamp> {
        let failed = match &self.task {
            Task::Retry(retry) => retry.not_before.filter(|_| retry.failed_at <= now),
            Task::Idle | Task::Scheduled { .. } => None,
        };
        failed.max(self.volatile.task_not_before)
    }

    /// This code was tried at this length of history and does not fit.
    pub fn build_tried(&self, build: Option<&crate::ids::BuildId>) -> bool {
        match (&self.task, build) {
            (Task::Retry(retry), Some(build)) => retry.tried.contains(build),
            (Task::Retry(_) | Task::Idle | Task::Scheduled { .. }, _) => false,
        }
    }

    /// How the run's code does not fit its history, if it does not.
    pub fn blocked(&self) -> Option<&Blocked> {
        match &self.task {
            Task::Retry(retry) => retry.blocked.as_ref(),
            Task::Idle | Task::Scheduled { .. } => None,
        }
    }

    /// The run's code does not fit its history.
    pub fn replay_blocked(&self) -> bool {
        self.blocked().is_some()
    }

    fn current_turn(&self, start: StartId) -> Result<StartedTask, Refusal> {
        self.volatile.turn.clone().filter(|turn| turn.start == start).ok_or(Refusal::StaleTask)
    }

    fn unseen_in_buffer(&self) -> bool {
        self.buffer.iter().any(|body| body.fact.source() == FactSource::Input)
    }

    fn history_full(&self, limits: &Limits, commands: usize) -> bool {
        let more = u64::try_from(commands + self.buffer.len()).unwrap_or(u64::MAX);
        self.last_event.saturating_add(more) > limits.events + limits.events_reserve
    }

    pub(super) fn apply_task(&mut self, event: &Event) {
        self.touch(Touch::Task);
        #[expect(clippy::wildcard_enum_match_arm, reason = "called for tasks only")]
        match &event.body.fact {
            Fact::TaskScheduled(_) => {
                if self.first_task_at.is_some() {
                    self.touch(Touch::Deadlines);
                    self.first_task_at = None;
                }
                self.task = Task::Scheduled { number: event.number };
                self.unseen = false;
                self.forget_attempts();
            }
            Fact::TaskCompleted(_) => {
                self.task = Task::Idle;
                self.forget_seen_firings();
                self.completed = event.number;
                self.close_refused = false;
                self.forget_attempts();
            }
            Fact::TaskFailed(failed) => {
                self.apply_failed(event.time, failed);
                if self.copied > 0 && event.number == self.copied + 1 {
                    self.go_on_after_reset(event.time);
                }
            }
            Fact::TaskTimedOut(_) => {
                let failure = Failure::timeout(TimeoutKind::StartToClose);
                let cause = TaskFailureCause::WorkerFailure;
                let failed = TaskFailed { cause, failure, ..TaskFailed::default() };
                self.apply_failed(event.time, &failed);
            }
            _ => {}
        }
    }

    fn forget_attempts(&mut self) {
        self.volatile.lost_starts = 0;
        self.volatile.task_not_before = None;
        self.touch(Touch::Run);
    }

    fn apply_failed(&mut self, failed_at: Timestamp, failed: &TaskFailed) {
        self.close_refused = failed.cause == TaskFailureCause::UnseenInput;
        let blocked = failed.blocked.is_some();
        self.task = Task::Retry(Box::new(Retry {
            attempt: 2,
            failed_at,
            cause: failed.cause,
            failure: failed.failure.clone(),
            blocked: failed.blocked.clone(),
            tried: failed.build.iter().filter(|_| blocked).cloned().collect(),
            not_before: hold(failed_at, 1, blocked && failed.build.is_some()),
        }));
        self.volatile.lost_starts = 0;
        self.touch(Touch::Run);
    }

    pub(super) fn apply_attempt_failed(&mut self, failed: &TaskAttemptFailed) {
        if let Task::Retry(retry) = &mut self.task {
            retry.attempt = failed.attempt + 1;
            retry.failed_at = failed.at;
            retry.cause = failed.cause;
            retry.failure = failed.failure.clone();
            retry.blocked = failed.blocked.clone();
            let blocked = failed.blocked.is_some();
            retry.tried.extend(failed.build.clone().filter(|_| blocked));
            let other_code = blocked && failed.build.is_some();
            retry.not_before = hold(failed.at, failed.attempt, other_code);
        }
        self.volatile.lost_starts = 0;
        self.touch(Touch::Task);
        self.touch(Touch::Run);
    }

    pub(super) fn apply_repaired(&mut self) {
        if let Task::Retry(retry) = &mut self.task {
            retry.tried.clear();
            retry.not_before = None;
        }
        self.forget_attempts();
        self.touch(Touch::Task);
    }
}
