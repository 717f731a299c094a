//! Activity attempts in flight: which worker holds which, and what happens when a worker is lost.

use std::time::Duration;

use abide_core::{
    attempt::{ActivityToken, AttemptName},
    ids::{EventNumber, RunId, SessionId},
    operation::{CallError, Ticket},
    payload::Payloads,
    report::ReportAnswer,
    run::{Beat, Heartbeat, Input, Phase, Refusal},
    time::Timestamp,
};

use super::{Shard, Todo, Unanswered};
use crate::alarm::Alarm;

/// A worker that has not presented its attempt after this part of its grace is awaited durably. Most
/// workers return sooner, and cost no write.
const AWAITED_AFTER: u32 = 2;

/// An attempt of an activity that a worker has.
#[derive(Debug)]
pub(super) struct HandedAttempt {
    /// The session that holds the attempt; none after a restart, until the worker presents the
    /// attempt or reports on it.
    session: Option<SessionId>,
    /// Number of the start; zero after a restart, until the run is in memory.
    start: u32,
    /// When the attempt counts as lost, unless the worker presents it.
    lost_at: Option<Timestamp>,
}

impl Shard {
    /// Whether a worker has the attempt, and nothing says that it is lost. For checks.
    pub fn holds_attempt(&self, run: RunId, scheduled: EventNumber) -> bool {
        let attempt = self.memory.attempts.get(&(run, scheduled));
        attempt.is_some_and(|attempt| attempt.lost_at.is_none())
    }

    /// A heartbeat of an attempt. Heartbeats that are not written yet are only in memory, also those of
    /// evicted runs, so a shard has room for few large ones.
    pub(super) fn heartbeat(&self, token: &ActivityToken, details: Payloads) -> Input {
        let run = self.memory.cache.peek(token.run).map(|entry| &entry.run);
        let replaced = run.and_then(|run| run.volatile.heartbeats.get(token.scheduled));
        let others = self.in_memory_only().heartbeats - replaced.map_or(0, Beat::memory);
        let room = others < self.limits.heartbeat_bytes;
        Input::Heartbeat(Heartbeat {
            scheduled: token.scheduled,
            start: token.start,
            details,
            room,
        })
    }

    /// The attempt is alive: puts off its pending loss. Only its worker's presentation cancels the loss,
    /// because a report of a lost worker may come late.
    pub(super) fn attempt_alive(&mut self, token: &ActivityToken) {
        let (run, scheduled) = (token.run, token.scheduled);
        self.track_attempt(run, scheduled);
        let lost_at = self.now().saturating_add(self.limits.session_grace);
        let attempt = self.memory.attempts.get_mut(&(run, scheduled));
        if let Some(pending) = attempt.and_then(|attempt| attempt.lost_at.as_mut()) {
            *pending = lost_at;
            self.memory.alarms.set(lost_at, Alarm::Grace(run, scheduled));
        }
    }

    /// Tracks the attempt of an activity as its run has it.
    pub(super) fn track_attempt(&mut self, run: RunId, scheduled: EventNumber) {
        let started = self.memory.cache.peek(run).and_then(|entry| {
            let activity = entry.run.activities.get(&scheduled)?;
            match &activity.phase {
                Phase::Started { session, detached: false, .. } => {
                    Some((session.clone(), activity.starts))
                }
                // A detached attempt is completed from outside, so it is not lost with any worker.
                Phase::Started { .. } | Phase::Ready { .. } | Phase::Backoff { .. } => None,
            }
        });
        self.keep_attempt(run, scheduled, started);
    }

    /// Resolves the attempt that an outside caller names.
    pub(super) fn reported_attempt(
        &self,
        run: RunId,
        name: &AttemptName,
    ) -> Result<ActivityToken, Refusal> {
        let activity = match name {
            AttemptName::Token(token) => return Ok(token.clone()),
            AttemptName::Activity(_, activity) => activity,
        };
        let entry = self.memory.cache.peek(run).ok_or(Refusal::StaleAttempt)?;
        let (scheduled, start) = entry.run.running_attempt(activity)?;
        Ok(ActivityToken { workflow: entry.run.workflow.clone(), run, scheduled, start })
    }

    /// Tracks which session has the attempt. One that is known already may be about to be lost, so it
    /// is left as it is.
    fn keep_attempt(
        &mut self,
        run: RunId,
        scheduled: EventNumber,
        started: Option<(SessionId, u32)>,
    ) {
        let Some((session, start)) = started else {
            self.memory.attempts.remove(&(run, scheduled));
            return;
        };
        match self.memory.attempts.get_mut(&(run, scheduled)) {
            Some(attempt) if attempt.start == 0 || attempt.start == start => {
                attempt.start = start;
                attempt.session.get_or_insert(session);
            }
            _ => {
                let attempt = HandedAttempt { session: Some(session), start, lost_at: None };
                self.memory.attempts.insert((run, scheduled), attempt);
            }
        }
    }

    /// After a restart of the shard, the worker of a started activity must present its attempt. One that
    /// ended with the process that had the shard before cannot, so its attempt is lost at once.
    pub(super) fn await_presentation(&mut self, run: RunId, scheduled: EventNumber) {
        if self.memory.attempts.contains_key(&(run, scheduled)) {
            return;
        }
        let ended = self.inherited && !self.limits.workers_outlive_owner;
        let grace = if ended { Duration::ZERO } else { self.limits.session_grace };
        let lost_at = self.now().saturating_add(grace);
        self.memory.attempts.insert(
            (run, scheduled),
            HandedAttempt { session: None, start: 0, lost_at: Some(lost_at) },
        );
        self.memory.alarms.set(lost_at, Alarm::Grace(run, scheduled));
        if !ended {
            let awaited_at = self.now().saturating_add(grace / AWAITED_AFTER);
            self.memory.alarms.set(awaited_at, Alarm::Await(run, scheduled));
        }
    }

    pub(super) fn presentation_late(&mut self, run: RunId, scheduled: EventNumber) {
        let attempt = self.memory.attempts.get(&(run, scheduled));
        if attempt.is_some_and(|attempt| attempt.lost_at.is_some()) {
            self.with_run(run, Todo::Await(scheduled));
        }
    }

    /// The worker is late. Its grace began in an earlier incarnation of the shard, or begins durably
    /// now: an engine that restarts again and again must not wait for ever.
    pub(super) fn await_worker(&mut self, run: RunId, scheduled: EventNumber) {
        let pending = self.memory.attempts.get(&(run, scheduled)).and_then(|known| known.lost_at);
        let entry = self.memory.cache.peek(run);
        let activity = entry.and_then(|entry| entry.run.activities.get(&scheduled));
        let (Some(pending), Some(activity)) = (pending, activity) else { return };
        let Some(since) = activity.awaited_since else {
            let start = activity.starts;
            return self.decide_quietly(run, Input::AwaitAttempt { scheduled, start });
        };
        let lost_at = since.saturating_add(self.limits.session_grace).max(self.now()).min(pending);
        if let Some(attempt) = self.memory.attempts.get_mut(&(run, scheduled)) {
            attempt.lost_at = Some(lost_at);
            self.memory.alarms.set(lost_at, Alarm::Grace(run, scheduled));
        }
    }

    pub(super) fn session_lost(&mut self, session: &SessionId) {
        self.end_presentations(session);
        for (run, start) in self.turns_of(session) {
            self.with_run(run, Todo::LoseTask(start));
        }
        // A lost task may write nothing, so no commit follows that would look for runs to evict.
        self.memory.cache.allow_shrinking();
        self.take_back_queries(session);
        let lost_at = self.now().saturating_add(self.limits.session_grace);
        for ((run, scheduled), attempt) in &mut self.memory.attempts {
            if attempt.session.as_ref() == Some(session) && attempt.lost_at.is_none() {
                attempt.lost_at = Some(lost_at);
                self.memory.alarms.set(lost_at, Alarm::Grace(*run, *scheduled));
            }
        }
    }

    /// Fails the presentations of a lost session that wait for the shard or for their run: served
    /// later, they would keep attempts that no worker has.
    pub(super) fn end_presentations(&mut self, session: &SessionId) {
        let of_session = |_: &Ticket, pending: &mut Unanswered| {
            matches!(pending,
            Unanswered::Report(Some(presenting)) if presenting == session)
        };
        for (ticket, pending) in self.calls.extract_if(.., of_session).collect::<Vec<_>>() {
            let ended = CallError::Unavailable("the session has ended".into());
            self.emit(pending.refused(ticket, ended));
        }
    }

    /// A reconnected worker presents an attempt that it still has. Only the session that was given
    /// the attempt can hold it.
    pub(super) fn present_attempt(
        &mut self,
        run: RunId,
        ticket: Ticket,
        token: &ActivityToken,
        session: SessionId,
    ) {
        let current = self.memory.cache.peek(run).and_then(|entry| {
            let activity = entry.run.activities.get(&token.scheduled)?;
            let holds = matches!(&activity.phase,
                Phase::Started { session: holder, detached: false, .. } if *holder == session);
            (holds && !activity.closing && activity.starts == token.start)
                .then_some(activity.cancel_requested)
        });
        let Some(cancel_requested) = current else {
            let error = Refusal::StaleAttempt.into();
            return self.acknowledge(ticket, Err(error));
        };
        if !self.calls.contains_key(&ticket) {
            // Its session may have ended while it waited, so it is only a sign of life.
            return self.attempt_alive(token);
        }
        let attempt = HandedAttempt { session: Some(session), start: token.start, lost_at: None };
        self.memory.attempts.insert((run, token.scheduled), attempt);
        let (scheduled, start) = (token.scheduled, token.start);
        self.decide_quietly(run, Input::PresentAttempt { scheduled, start });
        self.acknowledge_after(run, ticket, Ok(ReportAnswer::Alive { cancel_requested }));
    }

    pub(super) fn grace_over(&mut self, run: RunId, scheduled: EventNumber, at: Timestamp) {
        let lost = self.memory.attempts.get(&(run, scheduled)).and_then(|attempt| attempt.lost_at);
        if lost == Some(at) {
            self.with_run(run, Todo::Grace(scheduled));
        }
    }

    pub(super) fn lose_attempt(&mut self, run: RunId, scheduled: EventNumber) {
        let presented = self
            .memory
            .attempts
            .get(&(run, scheduled))
            .is_none_or(|attempt| attempt.lost_at.is_none_or(|at| at > self.moment.now));
        let start = self
            .memory
            .cache
            .peek(run)
            .and_then(|entry| entry.run.activities.get(&scheduled))
            .map(|activity| activity.starts);
        let Some(start) = start.filter(|_| !presented) else { return };
        self.memory.attempts.remove(&(run, scheduled));
        match self.decide(run, Input::LoseAttempt { scheduled, start }) {
            Err(error) if Self::busy(&error) => {
                let lost_at = Some(self.now());
                self.memory
                    .attempts
                    .insert((run, scheduled), HandedAttempt { session: None, start, lost_at });
                self.park_busy(run, Todo::Grace(scheduled));
            }
            Ok(_) | Err(_) => {}
        }
    }
}
