//! Activities at a worker: attempts that end, fail, send heartbeats, outlive their stream, or never
//! end.

use abide_core::{
    attempt::{ActivityToken, AttemptName, AttemptReport},
    failure::Failure,
    ids::{ActivityId, EventNumber, NamespaceId, RunId, ShardId},
    operation::{CallError, ReportAttempt},
    payload::Payload,
    report::{Report, ReportAnswer},
    run::{ActivityGiven, Resolution},
};

use super::{
    Event, World,
    clients::exactly,
    credits::activity_queue,
    workers::{Call, WorkerEvent},
};
use crate::{
    checks::{Checked, dispatches, promises},
    code,
    schedule::{MILLIS, Micros, SECOND},
    settings::delay,
};

/// An attempt that a worker holds.
pub(crate) struct HeldAttempt {
    token: ActivityToken,
    resolution: Resolution,
    /// Whether it has ended, and the server must be told.
    ended: bool,
    /// Interval between two heartbeats.
    beat: Option<Micros>,
    /// Whether it came with the completion that scheduled it, and cost no credit.
    pub(super) eager: bool,
    /// Whether its worker leaves it to be completed from outside.
    leaves: bool,
    activity: ActivityId,
}

impl HeldAttempt {
    /// Namespace of its run.
    pub(super) const fn namespace(&self) -> &NamespaceId {
        &self.token.workflow.namespace
    }
}

/// How often an attempt is completed from outside, in thousandths.
const LEFT: u64 = 150;

impl World {
    /// An attempt arrives at a worker.
    pub(super) fn take_attempt(
        &mut self,
        index: usize,
        token: ActivityToken,
        given: &ActivityGiven,
        eager: bool,
    ) {
        let (duration, resolution) = self.draw_attempt(given);
        let Some(session) = self.workers.get(index).map(|worker| worker.session_number) else {
            return;
        };
        let ActivityToken { run, scheduled, start, .. } = token;
        let beat = given.spec.heartbeat.map(|limit| {
            let limit = Micros::try_from(limit.as_micros()).unwrap_or(SECOND);
            if self.trouble(60) { limit * 2 } else { limit / 3 }
        });
        if let Some(beat) = beat {
            let event = WorkerEvent::Beat(run, scheduled, start);
            self.plan_in(beat, Event::Worker(index, session, event));
        }
        let give_up = WorkerEvent::GiveUp(activity_queue(&token.workflow));
        if self.trouble(self.settings.odds.worker_hangs) {
            if !eager {
                self.plan_in(6 * SECOND, Event::Worker(index, session, give_up));
            }
            return;
        }
        let leaves = !self.calm && self.rng.chance(LEFT);
        let activity = given.spec.activity.clone();
        let held = HeldAttempt { token, resolution, ended: false, beat, eager, leaves, activity };
        let Some(worker) = self.workers.get_mut(index) else { return };
        let older = worker.held.insert((run, scheduled), held);
        if older.is_some_and(|older| !older.eager) {
            // An older start of the same activity: the worker stops it.
            self.plan_in(0, Event::Worker(index, session, give_up));
        }
        let event = WorkerEvent::Finish(run, scheduled, start);
        self.plan_in(duration, Event::Worker(index, session, event));
    }

    /// How long an attempt takes and how it ends.
    fn draw_attempt(&mut self, given: &ActivityGiven) -> (Micros, Resolution) {
        let limit = given
            .spec
            .start_to_close
            .map_or(SECOND, |limit| Micros::try_from(limit.as_micros()).unwrap_or(SECOND));
        let quick = delay(&mut self.rng, 150 * MILLIS, false);
        let done = Resolution::Completed(vec![Payload::new("done")]);
        if self.calm {
            return (quick, done);
        }
        let failure = |non_retryable| {
            let failure = Failure { message: "drawn".into(), non_retryable, ..Failure::default() };
            Resolution::Failed(failure)
        };
        match given.spec.activity_type.as_str() {
            "flaky" if self.trouble(400) => (quick, failure(false)),
            "fatal" | code::STUBBORN_UNDO if self.trouble(500) => (quick, failure(true)),
            "slow" => (self.rng.between(limit / 2, limit * 3 / 2), done),
            "beat" => (self.rng.between(limit / 4, limit), done),
            _ => (quick, done),
        }
    }

    fn held(
        &self,
        index: usize,
        run: RunId,
        scheduled: EventNumber,
        start: u32,
    ) -> Option<&HeldAttempt> {
        let held = self.workers.get(index)?.held.get(&(run, scheduled))?;
        (held.token.start == start).then_some(held)
    }

    pub(super) fn beat(
        &mut self,
        index: usize,
        run: RunId,
        scheduled: EventNumber,
        start: u32,
    ) -> Checked {
        let Some(held) = self.held(index, run, scheduled, start).filter(|held| !held.ended) else {
            return Ok(());
        };
        let (token, beat) = (held.token.clone(), held.beat.unwrap_or(SECOND));
        let Some(worker) = self.workers.get(index) else { return Ok(()) };
        let (session, connected) = (worker.session_number, worker.connected());
        if connected {
            let details = vec![Payload::new(format!("at {}", self.now))];
            let call = Call::Alive(run, scheduled, start);
            self.worker_asks(index, Report::Heartbeat(token, details), call);
        }
        let event = WorkerEvent::Beat(run, scheduled, start);
        self.plan_in(beat, Event::Worker(index, session, event));
        Ok(())
    }

    pub(super) fn finish(
        &mut self,
        index: usize,
        run: RunId,
        scheduled: EventNumber,
        start: u32,
    ) -> Checked {
        if self.held(index, run, scheduled, start).is_none() {
            return Ok(());
        }
        if let Some(worker) = self.workers.get_mut(index)
            && let Some(held) = worker.held.get_mut(&(run, scheduled))
        {
            held.ended = true;
        }
        self.tell_end(index, run, scheduled);
        if self.trouble(self.settings.odds.worker_twice) {
            self.tell_end(index, run, scheduled);
        }
        Ok(())
    }

    fn tell_end(&mut self, index: usize, run: RunId, scheduled: EventNumber) {
        let Some(worker) = self.workers.get(index).filter(|worker| worker.connected()) else {
            return;
        };
        let Some(held) = worker.held.get(&(run, scheduled)) else { return };
        let token = held.token.clone();
        let call = Call::Resolve(run, scheduled, token.start);
        let request = match held.leaves {
            true => Report::DetachAttempt(token),
            false => Report::ResolveActivity(token, held.resolution.clone()),
        };
        self.worker_asks(index, request, call);
    }

    /// Completes an attempt from outside, perhaps late, and perhaps several times. A caller that
    /// uses the id of the activity completes whichever attempt is running then.
    fn report_from_outside(&mut self, held: HeldAttempt) {
        let HeldAttempt { token, resolution, activity, .. } = held;
        for _ in 0..self.rng.between(1, 2) {
            let name = match self.rng.chance(700) {
                true => AttemptName::Token(token.clone()),
                false => {
                    let target = exactly(token.workflow.clone(), token.run);
                    AttemptName::Activity(target, activity.clone())
                }
            };
            let report = AttemptReport::Resolved(resolution.clone());
            let operation = self.hold_back(ReportAttempt { attempt: name, report });
            let later = self.rng.between(MILLIS, 2 * SECOND);
            self.plan_in(later, Event::Client(operation));
        }
    }

    /// The server has recorded the end, or replies that it is stale.
    pub(super) fn resolved(
        &mut self,
        index: usize,
        run: RunId,
        scheduled: EventNumber,
        start: u32,
        result: &Result<ReportAnswer, CallError>,
    ) -> Checked {
        if result.as_ref().is_err_and(CallError::passing) {
            self.try_again(index, run, scheduled, start);
            return Ok(());
        }
        let Some(held) = self.held(index, run, scheduled, start) else { return Ok(()) };
        let leaves = held.leaves;
        if result.is_ok() && matches!(held.resolution, Resolution::Completed(_)) && !leaves {
            dispatches::only_the_last_start_counts(&self.ledger, run, scheduled, start)?;
        }
        let worker = self.workers.get_mut(index);
        let Some(held) = worker.and_then(|worker| worker.held.remove(&(run, scheduled))) else {
            return Ok(());
        };
        let (eager, queue) = (held.eager, activity_queue(&held.token.workflow));
        if leaves && result.is_ok() {
            promises::detached_is_durable(&self.ledger, run, scheduled, start)?;
            self.report_from_outside(held);
        }
        if eager { Ok(()) } else { self.credit(index, queue, 1) }
    }

    /// The worker is done with an attempt and can take another.
    fn let_go(&mut self, index: usize, run: RunId, scheduled: EventNumber) -> Checked {
        let worker = self.workers.get_mut(index);
        match worker.and_then(|worker| worker.held.remove(&(run, scheduled))) {
            Some(held) if !held.eager => {
                self.credit(index, activity_queue(&held.token.workflow), 1)
            }
            Some(_) | None => Ok(()),
        }
    }

    /// The server may not have received the end: the worker sends it again.
    pub(super) fn try_again(
        &mut self,
        index: usize,
        run: RunId,
        scheduled: EventNumber,
        start: u32,
    ) {
        let Some(session) = self.workers.get(index).map(|worker| worker.session_number) else {
            return;
        };
        let later = self.rng.between(20 * MILLIS, 300 * MILLIS);
        let event = WorkerEvent::Finish(run, scheduled, start);
        self.plan_in(later, Event::Worker(index, session, event));
    }

    /// A worker presents its attempts on a shard, and reports those that have ended meanwhile.
    pub(super) fn present(&mut self, index: usize, shard: ShardId) -> Checked {
        let Some(worker) = self.workers.get(index).filter(|worker| worker.connected()) else {
            return Ok(());
        };
        let session = worker.session.clone();
        let here = |held: &&HeldAttempt| held.token.workflow.slot().shard() == shard;
        let held: Vec<_> =
            worker.held.values().filter(here).map(|h| (h.token.clone(), h.ended)).collect();
        for (token, ended) in held {
            let (run, scheduled, start) = (token.run, token.scheduled, token.start);
            if ended {
                self.tell_end(index, run, scheduled);
            } else {
                let call = Call::Alive(run, scheduled, start);
                let request = Report::PresentAttempt(token, session.clone());
                self.worker_asks(index, request, call);
            }
        }
        Ok(())
    }

    /// The server knows the attempt: it continues, should cancel itself, or is stale.
    pub(super) fn heartbeat_replied(
        &mut self,
        index: usize,
        run: RunId,
        scheduled: EventNumber,
        start: u32,
        result: &Result<ReportAnswer, CallError>,
    ) -> Checked {
        if self.held(index, run, scheduled, start).is_none() {
            return Ok(());
        }
        let cancels = self.rng.chance(600);
        let Some(worker) = self.workers.get_mut(index) else { return Ok(()) };
        match result {
            Ok(ReportAnswer::Alive { cancel_requested: true }) if cancels => {
                if let Some(held) = worker.held.get_mut(&(run, scheduled)) {
                    held.resolution = Resolution::Cancelled(Vec::new());
                }
                self.finish(index, run, scheduled, start)
            }
            Err(CallError::Refused(_) | CallError::NotFound) => self.let_go(index, run, scheduled),
            Ok(_) | Err(_) => Ok(()),
        }
    }
}
