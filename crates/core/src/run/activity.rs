//! Activities on the server: attempts, retries, the four timeouts, heartbeats.
//!
//! | phase | input | becomes |
//! |---|---|---|
//! | Ready | a worker takes it | Started (note, durable before it is sent) |
//! | Ready | schedule-to-start passed | closed: timed out |
//! | Started | completed, or cancelled on request | closed |
//! | Started | failed, start-to-close or heartbeat passed | Backoff if the policy allows, else closed |
//! | Started | handed back: its code did not run | Ready or Backoff, uncounted |
//! | Started | left to an outside caller | Started, detached (note) |
//! | Started, not detached | worker lost | at least once: Ready or Backoff, uncounted; at most once: closed |
//! | Backoff | its time came | Ready |
//! | any | schedule-to-close passed | closed: timed out |
//!
//! An at-most-once attempt is repeated only after its worker said that it failed: a timeout or a lost
//! worker leaves open whether it took effect.

use std::time::Duration;

use super::{
    Activity, Beat, Decision, Heartbeat, Phase, Refusal, Reply, Resolution, ResolveActivity, Run,
    StartActivity, Touch, draft::Draft,
};
use crate::{
    event::{
        ActivityCancelled, ActivityCompleted, ActivityFailed, ActivityScheduled, ActivityStarted,
        ActivityTimedOut, Body, Delivery, Event, Fact,
    },
    failure::{Failure, FailureKind, TimeoutKind},
    ids::{ActivityId, EventNumber},
    note::{AttemptEnded, AttemptStarted, Note},
    payload::Payloads,
    retry::{RetryDecision, RetryPolicy, RetryState},
    time::Timestamp,
};

pub(super) fn start(mut draft: Draft<'_>, start: StartActivity) -> Result<Decision, Refusal> {
    let activity = draft.run.activities.get(&start.scheduled).ok_or(Refusal::StaleAttempt)?;
    if draft.run.paused {
        return Err(Refusal::Held);
    }
    if activity.closing || !matches!(activity.phase, Phase::Ready { .. }) {
        return Err(Refusal::StaleAttempt);
    }
    let started = AttemptStarted {
        scheduled: start.scheduled,
        attempt: activity.attempt,
        start: activity.starts + 1,
        at: draft.now(),
        session: start.session,
        identity: start.identity,
    };
    let reply = Reply::ActivityGiven { start: started.start };
    draft.note(Note::AttemptStarted(started));
    Ok(draft.finish(reply))
}

/// After the clock was set back, the event that scheduled an activity has a later time than the clock
/// shows. The limits of the activity count from the time that the clock shows.
pub(super) fn count_from_true_time(draft: &mut Draft<'_>) {
    let (scheduled, at) = (draft.run.last_event, draft.now());
    if at < draft.run.last_time {
        draft.note(Note::AttemptReady { scheduled, at });
    }
}

pub(super) fn resolve(mut draft: Draft<'_>, input: ResolveActivity) -> Result<Decision, Refusal> {
    let ResolveActivity { scheduled, start, resolution } = input;
    let activity = draft.run.current_attempt(scheduled, start)?;
    let identity = activity.identity();
    let refused = matches!(resolution, Resolution::Cancelled(_)) && !activity.cancel_requested;
    if refused {
        return Err(Refusal::CancelNotRequested);
    }
    draft.buffer_room()?;
    match resolution {
        Resolution::Completed(result) => {
            close(&mut draft, scheduled, ActivityCompleted { scheduled, result, identity });
        }
        Resolution::Cancelled(details) => {
            close(&mut draft, scheduled, ActivityCancelled { scheduled, details, identity });
        }
        Resolution::Failed(failure) if failure.handed_back() => {
            give_again(&mut draft, scheduled, failure);
        }
        Resolution::Failed(failure) => fail_attempt(&mut draft, scheduled, failure),
    }
    Ok(draft.finish(Reply::Done))
}

/// A sign of life. Kept in memory; written now and then, so that the next attempt can go on from it.
/// Without room its details are those of the one before.
pub(super) fn heartbeat(mut draft: Draft<'_>, beat: Heartbeat) -> Result<Decision, Refusal> {
    let Heartbeat { scheduled, start, details, room } = beat;
    let (at, pause) = (draft.now(), draft.context.limits.heartbeat_write_interval);
    let activity = draft.run.current_attempt(scheduled, start)?;
    let cancel_requested = activity.cancel_requested;
    let due = activity.heartbeat_at.is_none_or(|last| at >= last.saturating_add(pause));
    let write = due || activity.awaited_since.is_some();
    let heartbeats = &mut draft.run.volatile.heartbeats;
    let before = heartbeats.remove(scheduled).and_then(|beat| beat.details);
    if write {
        draft.note(Note::Heartbeat { scheduled, start, at, details });
    } else {
        let details = if room { Some(details) } else { before };
        heartbeats.insert(scheduled, Beat { at, details });
    }
    Ok(draft.finish(Reply::Alive { cancel_requested }))
}

/// A worker leaves its attempt to an outside caller. From here on it ends by a report or by its limits.
pub(super) fn detach(
    mut draft: Draft<'_>,
    scheduled: EventNumber,
    start: u32,
) -> Result<Decision, Refusal> {
    let activity = draft.run.current_attempt(scheduled, start)?;
    if activity.detached() {
        return Ok(draft.finish(Reply::Repeat));
    }
    draft.note(Note::AttemptDetached { scheduled, start });
    Ok(draft.finish(Reply::Done))
}

/// Nothing says that the worker of the attempt is alive: its grace counts from now, if it does not yet.
pub(super) fn wait_for_worker(
    mut draft: Draft<'_>,
    scheduled: EventNumber,
    start: u32,
) -> Result<Decision, Refusal> {
    let activity = draft.run.current_attempt(scheduled, start)?;
    if !activity.detached() && activity.awaited_since.is_none() {
        let since = draft.now();
        draft.note(Note::AttemptAwaited { scheduled, start, since });
    }
    Ok(draft.finish(Reply::Done))
}

/// The worker of the attempt is alive and has it.
pub(super) fn present(
    mut draft: Draft<'_>,
    scheduled: EventNumber,
    start: u32,
) -> Result<Decision, Refusal> {
    let activity = draft.run.current_attempt(scheduled, start)?;
    if activity.awaited_since.is_some() {
        draft.note(Note::AttemptPresented { scheduled, start });
    }
    Ok(draft.finish(Reply::Done))
}

pub(super) fn lose(
    mut draft: Draft<'_>,
    scheduled: EventNumber,
    start: u32,
) -> Result<Decision, Refusal> {
    let activity = draft.run.current_attempt(scheduled, start)?;
    if activity.detached() {
        return Err(Refusal::StaleAttempt);
    }
    let failure = Failure::server(FailureKind::WorkerLost, "the worker that ran it was lost");
    match activity.spec.delivery {
        Delivery::AtLeastOnce => {
            if activity.cancel_requested {
                draft.buffer_room()?;
            }
            give_again(&mut draft, scheduled, failure);
        }
        Delivery::AtMostOnce => {
            draft.buffer_room()?;
            let identity = activity.identity();
            let retry_state = RetryState::NonRetryableFailure;
            close(
                &mut draft,
                scheduled,
                ActivityFailed { scheduled, failure, retry_state, identity },
            );
        }
    }
    Ok(draft.finish(Reply::Done))
}

/// The attempt ended without a result and is given again, unless code no longer wants it.
fn give_again(draft: &mut Draft<'_>, scheduled: EventNumber, failure: Failure) {
    let Some(activity) = draft.run.activities.get(&scheduled) else { return };
    if activity.cancel_requested {
        let (details, identity) = (Payloads::new(), activity.identity());
        close(draft, scheduled, ActivityCancelled { scheduled, details, identity });
    } else {
        let next_at = draft.now().saturating_add(loss_backoff(activity.losses));
        end_attempt(draft, scheduled, failure, next_at, false);
    }
}

/// The first two losses are repeated at once; then an activity that kills its worker slows down.
fn loss_backoff(losses: u32) -> Duration {
    match losses {
        0 | 1 => Duration::ZERO,
        _ => RetryPolicy::default().delay_after(losses - 1),
    }
}

/// The earliest of the activity's due times came.
pub(super) fn fall_due(mut draft: Draft<'_>, scheduled: EventNumber) -> Result<Decision, Refusal> {
    let now = draft.now();
    let Some(activity) = draft.run.activities.get(&scheduled) else {
        return Ok(draft.finish(Reply::NotDue));
    };
    let timeout = [TimeoutKind::ScheduleToClose, TimeoutKind::ScheduleToStart]
        .into_iter()
        .chain([TimeoutKind::StartToClose, TimeoutKind::Heartbeat])
        .find(|kind| draft.run.timeout_at(scheduled, activity, *kind).is_some_and(|at| at <= now));
    match timeout {
        None => {
            let due = matches!(activity.phase, Phase::Backoff { until } if until <= now);
            if !due {
                return Ok(draft.finish(Reply::NotDue));
            }
            draft.note(Note::AttemptReady { scheduled, at: now });
        }
        Some(kind @ (TimeoutKind::ScheduleToClose | TimeoutKind::ScheduleToStart)) => {
            draft.buffer_room()?;
            time_out(&mut draft, scheduled, kind, RetryState::Timeout);
        }
        Some(kind @ (TimeoutKind::StartToClose | TimeoutKind::Heartbeat)) => {
            draft.buffer_room()?;
            fail_attempt(&mut draft, scheduled, Failure::timeout(kind));
        }
    }
    Ok(draft.finish(Reply::Done))
}

/// An attempt failed: another follows, or the activity is closed.
fn fail_attempt(draft: &mut Draft<'_>, scheduled: EventNumber, failure: Failure) {
    let Some(activity) = draft.run.activities.get(&scheduled) else { return };
    match verdict(activity, &failure, draft.now()) {
        RetryDecision::After(delay) => {
            let next_at = draft.now().saturating_add(delay);
            end_attempt(draft, scheduled, failure, next_at, true);
        }
        RetryDecision::Stop(retry_state) => {
            if let FailureKind::Timeout(kind) = failure.kind {
                time_out(draft, scheduled, kind, retry_state);
            } else {
                let identity = activity.identity();
                close(
                    draft,
                    scheduled,
                    ActivityFailed { scheduled, failure, retry_state, identity },
                );
            }
        }
    }
}

fn verdict(activity: &Activity, failure: &Failure, now: Timestamp) -> RetryDecision {
    let timed_out = matches!(failure.kind, FailureKind::Timeout(_));
    if activity.cancel_requested {
        return RetryDecision::Stop(RetryState::CancelRequested);
    }
    if timed_out && activity.spec.delivery == Delivery::AtMostOnce {
        return RetryDecision::Stop(RetryState::NonRetryableFailure);
    }
    let Some(policy) = &activity.spec.retry else {
        return RetryDecision::Stop(RetryState::PolicyNotSet);
    };
    match policy.judge(activity.attempt, failure) {
        RetryDecision::After(delay) => {
            let next = now.saturating_add(delay);
            match activity.schedule_to_close_at() {
                Some(limit) if next >= limit => RetryDecision::Stop(RetryState::Timeout),
                // The next attempt is an activity of its own, which code schedules.
                _ if policy.recorded => RetryDecision::Stop(RetryState::InProgress),
                _ => RetryDecision::After(delay),
            }
        }
        stop @ RetryDecision::Stop(_) => stop,
    }
}

fn end_attempt(
    draft: &mut Draft<'_>,
    scheduled: EventNumber,
    failure: Failure,
    next_at: Timestamp,
    counted: bool,
) {
    let heartbeat = draft.run.volatile.heartbeats.remove(scheduled).and_then(|beat| beat.details);
    let start = draft.run.activities.get(&scheduled).map_or(0, |activity| activity.starts);
    draft.note(Note::AttemptEnded(AttemptEnded {
        scheduled,
        start,
        at: draft.now(),
        failure,
        next_at,
        counted,
        heartbeat,
    }));
}

fn time_out(
    draft: &mut Draft<'_>,
    scheduled: EventNumber,
    kind: TimeoutKind,
    retry_state: RetryState,
) {
    let Some(activity) = draft.run.activities.get(&scheduled) else { return };
    let beat = draft.run.volatile.heartbeats.get(scheduled).and_then(|beat| beat.details.clone());
    let failure = Failure {
        details: beat.or_else(|| activity.heartbeat.clone()).unwrap_or_default(),
        causes: activity.last_failure.clone().into_iter().collect(),
        ..Failure::timeout(kind)
    };
    close(draft, scheduled, ActivityTimedOut { scheduled, kind, failure, retry_state });
}

/// Closes the activity: the start of its last attempt, if there was one, and the close, as inputs.
fn close(draft: &mut Draft<'_>, scheduled: EventNumber, closing: impl Into<Fact>) {
    draft.run.volatile.heartbeats.remove(scheduled);
    let started = draft.run.activities.get(&scheduled).and_then(|activity| activity.started());
    let started = started.map(|started| Body::new(ActivityStarted { scheduled, ..started }));
    draft.input_bodies(started.into_iter().chain([Body::new(closing)]));
}

impl Activity {
    fn identity(&self) -> String {
        match &self.phase {
            Phase::Started { identity, .. } => identity.clone(),
            Phase::Ready { .. } | Phase::Backoff { .. } => String::new(),
        }
    }

    /// An attempt runs that its worker has left to an outside caller.
    pub const fn detached(&self) -> bool {
        matches!(self.phase, Phase::Started { detached: true, .. })
    }

    fn started(&self) -> Option<ActivityStarted> {
        let Phase::Started { at, identity, .. } = &self.phase else { return None };
        Some(ActivityStarted {
            scheduled: 0,
            attempt: self.attempt,
            at: *at,
            identity: identity.clone(),
            last_failure: self.last_failure.clone(),
        })
    }

    fn schedule_to_close_at(&self) -> Option<Timestamp> {
        self.spec.schedule_to_close.map(|limit| self.scheduled_at.saturating_add(limit))
    }

    /// When one of the timeouts passes, if the attempt was silent since `alive_at`.
    fn timeout_at(&self, kind: TimeoutKind, alive_at: Option<Timestamp>) -> Option<Timestamp> {
        if self.closing {
            return None;
        }
        match (kind, &self.phase) {
            (TimeoutKind::ScheduleToClose, _) => self.schedule_to_close_at(),
            (TimeoutKind::ScheduleToStart, Phase::Ready { since }) => {
                self.spec.schedule_to_start.map(|limit| since.saturating_add(limit))
            }
            (TimeoutKind::StartToClose, Phase::Started { at, .. }) => {
                self.spec.start_to_close.map(|limit| at.saturating_add(limit))
            }
            (TimeoutKind::Heartbeat, Phase::Started { at, .. }) => {
                let alive_at =
                    alive_at.into_iter().chain(self.heartbeat_at).fold(*at, Timestamp::max);
                self.spec.heartbeat.map(|limit| alive_at.saturating_add(limit))
            }
            (
                TimeoutKind::ScheduleToStart | TimeoutKind::StartToClose | TimeoutKind::Heartbeat,
                Phase::Ready { .. } | Phase::Started { .. } | Phase::Backoff { .. },
            ) => None,
        }
    }

    fn earliest(&self, alive_at: Option<Timestamp>) -> Option<Timestamp> {
        let backoff = match self.phase {
            Phase::Backoff { until } if !self.closing => Some(until),
            Phase::Backoff { .. } | Phase::Ready { .. } | Phase::Started { .. } => None,
        };
        [
            TimeoutKind::ScheduleToClose,
            TimeoutKind::ScheduleToStart,
            TimeoutKind::StartToClose,
            TimeoutKind::Heartbeat,
        ]
        .into_iter()
        .filter_map(|kind| self.timeout_at(kind, alive_at))
        .chain(backoff)
        .min()
    }

    /// The next due time, as far as it is written.
    pub fn due(&self) -> Option<Timestamp> {
        self.earliest(None)
    }
}

impl Run {
    fn current_attempt(&self, scheduled: EventNumber, start: u32) -> Result<&Activity, Refusal> {
        self.activities
            .get(&scheduled)
            .map(|activity| &**activity)
            .filter(|activity| !activity.closing && activity.starts == start)
            .filter(|activity| matches!(activity.phase, Phase::Started { .. }))
            .ok_or(Refusal::StaleAttempt)
    }

    /// The attempt that runs of the activity of this id, by its scheduling event and its start.
    pub fn running_attempt(&self, activity: &ActivityId) -> Result<(EventNumber, u32), Refusal> {
        if !self.open() {
            return Err(Refusal::RunClosed);
        }
        let unknown = || Refusal::UnknownActivity(activity.clone());
        let scheduled = *self.activity_ids.get(activity).ok_or_else(unknown)?;
        let found = self.activities.get(&scheduled).filter(|found| !found.closing);
        let found = found.ok_or_else(unknown)?;
        match found.phase {
            Phase::Started { .. } => Ok((scheduled, found.starts)),
            Phase::Ready { .. } | Phase::Backoff { .. } => {
                Err(Refusal::NoAttempt(activity.clone()))
            }
        }
    }

    /// The activities whose attempt a worker has, by their scheduling events.
    pub fn attempts_of_workers(&self) -> impl Iterator<Item = EventNumber> {
        let held =
            |activity: &Activity| matches!(activity.phase, Phase::Started { detached: false, .. });
        self.activities.iter().filter(move |(_, it)| held(it)).map(|(scheduled, _)| *scheduled)
    }

    /// The latest sign of life that only memory knows of.
    fn alive_at(&self, scheduled: EventNumber) -> Option<Timestamp> {
        let beat = self.volatile.heartbeats.get(scheduled).map(|beat| beat.at);
        Some(beat.unwrap_or(Timestamp::EPOCH).max(self.volatile.watched_since))
    }

    fn timeout_at(
        &self,
        scheduled: EventNumber,
        activity: &Activity,
        kind: TimeoutKind,
    ) -> Option<Timestamp> {
        activity.timeout_at(kind, self.alive_at(scheduled))
    }

    pub(super) fn activity_due_in_memory(&self, scheduled: EventNumber) -> Option<Timestamp> {
        self.activities.get(&scheduled)?.earliest(self.alive_at(scheduled))
    }

    pub(super) fn mark_closing(&mut self, scheduled: EventNumber, closing: bool) {
        if let Some(activity) = self.activities.get_mut(&scheduled) {
            activity.closing = closing;
        }
        self.touch(Touch::Activity(scheduled));
    }

    pub(super) fn apply_activity(&mut self, event: &Event) {
        #[expect(clippy::wildcard_enum_match_arm, reason = "called for activities only")]
        match &event.body.fact {
            Fact::ActivityScheduled(scheduled) => self.add_activity(event, scheduled),
            Fact::ActivityCancelRequested(request) => {
                if let Some(activity) = self.activities.get_mut(&request.scheduled) {
                    activity.cancel_requested = true;
                }
            }
            Fact::ActivityCompleted(close) => self.remove_activity(close.scheduled),
            Fact::ActivityFailed(close) => self.remove_activity(close.scheduled),
            Fact::ActivityTimedOut(close) => self.remove_activity(close.scheduled),
            Fact::ActivityCancelled(close) => self.remove_activity(close.scheduled),
            _ => {}
        }
    }

    fn add_activity(&mut self, event: &Event, scheduled: &ActivityScheduled) {
        let spec = scheduled.spec.clone();
        self.activity_ids.insert(spec.activity.clone(), event.number);
        let activity = Activity {
            spec,
            execution: scheduled.execution.clone(),
            scheduled_at: event.time,
            attempt: scheduled.spec.attempt.max(1),
            starts: 0,
            losses: 0,
            phase: Phase::Ready { since: event.time },
            last_failure: None,
            heartbeat: None,
            heartbeat_at: None,
            awaited_since: None,
            cancel_requested: false,
            closing: false,
        };
        self.activities.insert(event.number, Box::new(activity));
        self.touch(Touch::Activity(event.number));
    }

    fn remove_activity(&mut self, scheduled: EventNumber) {
        self.touch(Touch::Activity(scheduled));
        if let Some(activity) = self.activities.remove(&scheduled) {
            self.activity_ids.remove(&activity.spec.activity);
        }
    }

    pub(super) fn apply_attempt(&mut self, note: &Note) {
        #[expect(clippy::wildcard_enum_match_arm, reason = "called for attempts only")]
        let scheduled = match note {
            Note::AttemptStarted(started) => started.scheduled,
            Note::AttemptEnded(ended) => ended.scheduled,
            Note::AttemptReady { scheduled, .. }
            | Note::AttemptDetached { scheduled, .. }
            | Note::AttemptAwaited { scheduled, .. }
            | Note::AttemptPresented { scheduled, .. }
            | Note::Heartbeat { scheduled, .. } => *scheduled,
            _ => return,
        };
        self.touch(Touch::Activity(scheduled));
        if let Some(activity) = self.activities.get_mut(&scheduled) {
            activity.apply(note);
        }
    }
}

impl Activity {
    fn apply(&mut self, note: &Note) {
        #[expect(clippy::wildcard_enum_match_arm, reason = "called for attempts only")]
        match note {
            Note::AttemptStarted(started) => {
                self.starts = started.start;
                self.heartbeat_at = None;
                self.awaited_since = None;
                self.phase = Phase::Started {
                    at: started.at,
                    session: started.session.clone(),
                    identity: started.identity.clone(),
                    detached: false,
                };
            }
            Note::AttemptDetached { .. } => {
                if let Phase::Started { detached, .. } = &mut self.phase {
                    *detached = true;
                }
            }
            Note::AttemptEnded(ended) => {
                self.attempt = self.attempt.saturating_add(ended.counted.into());
                self.losses = if ended.counted { 0 } else { self.losses + 1 };
                self.last_failure = Some(ended.failure.clone());
                if let Some(details) = &ended.heartbeat {
                    self.heartbeat = Some(details.clone());
                }
                self.phase = if ended.next_at > ended.at {
                    Phase::Backoff { until: ended.next_at }
                } else {
                    Phase::Ready { since: ended.at }
                };
            }
            Note::AttemptReady { at, .. } => {
                self.phase = Phase::Ready { since: *at };
                self.scheduled_at = self.scheduled_at.min(*at);
            }
            Note::AttemptAwaited { since, .. } => self.awaited_since = Some(*since),
            Note::AttemptPresented { .. } => self.awaited_since = None,
            Note::Heartbeat { at, details, .. } => {
                self.awaited_since = None;
                self.heartbeat_at = Some(*at);
                self.heartbeat = Some(details.clone());
            }
            _ => {}
        }
    }
}

/// What a worker gets to run an attempt.
#[derive(Clone, Debug, PartialEq)]
pub struct ActivityGiven {
    pub spec: crate::event::ActivitySpec,
    /// Identifies the activity over all attempts.
    pub execution: crate::ids::ExecutionId,
    pub attempt: u32,
    /// When it was scheduled first.
    pub scheduled_at: Timestamp,
    /// What the last attempt reported.
    pub heartbeat: Option<Payloads>,
}

impl Run {
    /// What a worker gets to run the activity.
    pub fn activity_given(&self, scheduled: EventNumber) -> Option<ActivityGiven> {
        let activity = self.activities.get(&scheduled)?;
        Some(ActivityGiven {
            spec: activity.spec.clone(),
            execution: activity.execution.clone(),
            attempt: activity.attempt,
            scheduled_at: activity.scheduled_at,
            heartbeat: activity.heartbeat.clone(),
        })
    }
}
