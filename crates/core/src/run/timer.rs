//! Timers on the server.
//!
//! | state | input | becomes |
//! |---|---|---|
//! | none | StartTimer | open |
//! | open | due | fired, code is woken |
//! | open | CancelTimer | gone |
//! | open | rescheduled by code or from outside | open with another due time |
//! | open, firing in the buffer | CancelTimer, or rescheduled to later by code | the firing is dropped |
//! | fired | rescheduled by the code of the task that sees it | open with another due time |
//! | fired | that task completes without a reschedule | gone |
//!
//! Order in history decides between a reschedule by code and the firing. Code handles the inputs of
//! a task one by one; a reschedule in reaction to an event before the firing voids the firing, and
//! the timer is armed again. Only the worker knows which event code reacted to, see
//! [`crate::replay`]. A reschedule from outside is itself an event in history, so after a firing it
//! is refused.

use super::{
    Decision, FiredTimer, Movable, Refusal, Reply, RescheduleTimer, Run, Timer, Touch, draft::Draft,
};
use crate::{
    digest::Digest,
    event::{Event, Fact, Mover, Origin, TimerFired, TimerRescheduled},
    ids::TimerId,
    time::Timestamp,
};

pub(super) fn fire(mut draft: Draft<'_>, id: TimerId) -> Result<Decision, Refusal> {
    let Some(timer) = draft.run.timers.get(&id) else {
        return Ok(draft.finish(Reply::NotDue));
    };
    let fired = TimerFired { timer: id, started: timer.started, fire_at: timer.due() };
    draft.buffer_room()?;
    draft.input(fired);
    Ok(draft.finish(Reply::Done))
}

/// Reschedules a timer for a client or operator. It schedules no task by itself: code sees it with
/// the next one.
pub(super) fn reschedule(
    mut draft: Draft<'_>,
    request: RescheduleTimer,
) -> Result<Decision, Refusal> {
    let run = &*draft.run;
    let timer = match request.what {
        Movable::Timer(timer) => timer,
        Movable::Wait(wait) => run.timer_of(&wait)?,
    };
    check(run, &timer, request.fire_at, draft.now())?;
    draft.room()?;
    let RescheduleTimer { fire_at, after, identity, key, .. } = request;
    // Only a request with a key can be repeated.
    let asked = match key {
        Some(_) => Digest::of_due_time(fire_at, after),
        None => Digest::UNKNOWN,
    };
    let by = Mover::Outside { identity, key, received_at: draft.now(), asked };
    draft.input(TimerRescheduled { timer, fire_at, by });
    Ok(draft.finish(Reply::Done))
}

fn check(run: &Run, id: &TimerId, fire_at: Timestamp, now: Timestamp) -> Result<(), Refusal> {
    let Some(timer) = run.timers.get(id) else {
        let refusal = if run.fired_unseen(id).is_some() {
            Refusal::TimerFired
        } else {
            Refusal::UnknownTimer
        };
        return Err(refusal(id.clone()));
    };
    if timer.firing {
        return Err(Refusal::TimerFired(id.clone()));
    }
    if timer.spec.optional() {
        return Err(Refusal::NoDeadline(id.clone()));
    }
    if fire_at.is_never() {
        return Err(Refusal::NeverDeadline(id.clone()));
    }
    if fire_at < now {
        return Err(Refusal::PastDeadline { fire_at, now });
    }
    match timer.spec.guards.not_after {
        Some(not_after) if fire_at > not_after => {
            return Err(Refusal::TooLate { fire_at, not_after });
        }
        _ => {}
    }
    match timer.spec.guards.max_extensions {
        Some(limit) if run.moves_of(timer).0 >= limit => Err(Refusal::TooManyMoves { limit }),
        _ => Ok(()),
    }
}

impl Run {
    pub(super) fn apply_timer(&mut self, event: &Event) {
        #[expect(clippy::wildcard_enum_match_arm, reason = "called for timers only")]
        match &event.body.fact {
            Fact::TimerStarted(started) => self.open_timer(event, &started.spec),
            Fact::TimerRescheduled(moved) => self.move_timer(moved),
            Fact::TimerFired(fired) => {
                self.pass_deadline(fired);
                if let Some(timer) = self.close_timer(&fired.timer) {
                    let timer = Timer { moved_to: None, firing: false, ..timer };
                    self.fired.push(FiredTimer { number: event.number, timer });
                }
            }
            Fact::TimerCancelled(cancelled) => {
                self.close_timer(&cancelled.timer);
            }
            _ => {}
        }
    }

    fn open_timer(&mut self, event: &Event, spec: &crate::event::TimerSpec) {
        let wait = match spec.origin {
            Some(Origin::Condition { .. }) => {
                let owner = |wait: &&super::Wait| wait.spec.timer.as_ref() == Some(&spec.timer);
                self.waits.values().find(owner).map(|wait| wait.spec.wait.clone())
            }
            _ => None,
        };
        let timer = Timer {
            started: event.number,
            since: event.time,
            spec: spec.clone(),
            moves: 0,
            moved_by: None,
            wait,
            moved_to: None,
            firing: false,
        };
        self.fired.retain(|fired| fired.timer.spec.timer != spec.timer);
        self.timers.insert(spec.timer.clone(), timer);
        self.touch_timer(&spec.timer);
    }

    /// Number of reschedules from outside and their last author, including a buffered one.
    pub(super) fn moves_of<'a>(&'a self, timer: &'a Timer) -> (u32, Option<&'a Mover>) {
        let mut moves = timer.moves;
        let mut by = timer.moved_by.as_deref();
        if timer.moved_to.is_some() {
            for body in &self.buffer {
                if let Fact::TimerRescheduled(moved) = &body.fact
                    && moved.timer == timer.spec.timer
                {
                    moves += 1;
                    by = Some(&moved.by);
                }
            }
        }
        (moves, by)
    }

    fn move_timer(&mut self, moved: &TimerRescheduled) {
        self.arm_again(&moved.timer);
        if let Some(timer) = self.timers.get_mut(&moved.timer) {
            timer.spec.fire_at = moved.fire_at;
            if matches!(moved.by, Mover::Outside { .. }) {
                timer.moves += 1;
            }
            timer.moved_by = Some(Box::new(moved.by.clone()));
        }
        self.touch_timer(&moved.timer);
    }

    /// The wait stays open until code has seen that its deadline passed.
    fn pass_deadline(&mut self, fired: &TimerFired) {
        let owner = self.timers.get(&fired.timer).and_then(|timer| timer.wait.as_ref());
        if let Some(wait) = owner.and_then(|wait| self.waits.get_mut(wait)) {
            wait.passed = Some(fired.fire_at);
        }
    }

    fn close_timer(&mut self, id: &TimerId) -> Option<Timer> {
        self.touch_timer(id);
        self.timers.remove(id)
    }

    /// A fired timer whose firing no completed task has seen.
    pub(super) fn fired_unseen(&self, id: &TimerId) -> Option<&Timer> {
        let unseen = |fired: &&FiredTimer| fired.number > self.completed;
        let mut fired = self.fired.iter().filter(unseen).map(|fired| &fired.timer);
        fired.find(|timer| timer.spec.timer == *id)
    }

    /// Opens a fired timer again: the task that saw the firing reschedules it, so the firing is
    /// void.
    fn arm_again(&mut self, id: &TimerId) {
        let place = self.fired.iter().position(|fired| fired.timer.spec.timer == *id);
        let Some(FiredTimer { timer, .. }) = place.map(|place| self.fired.remove(place)) else {
            return;
        };
        if let Some(wait) = timer.wait.as_ref().and_then(|wait| self.waits.get_mut(wait)) {
            wait.passed = None;
        }
        self.timers.insert(id.clone(), timer);
    }

    /// Drops the timers whose firing a completed task has seen: no later task reschedules them.
    pub(super) fn forget_seen_firings(&mut self) {
        let completed = self.completed;
        self.fired.retain(|fired| fired.number > completed);
        // Most runs have none most of the time.
        self.fired.shrink_to_fit();
    }

    pub(super) fn mark_firing(&mut self, id: &TimerId, firing: bool) {
        if let Some(timer) = self.timers.get_mut(id) {
            timer.firing = firing;
        }
        self.touch_timer(id);
    }

    pub(super) fn mark_moved(&mut self, id: &TimerId, moved_to: Option<Timestamp>) {
        if let Some(timer) = self.timers.get_mut(id) {
            timer.moved_to = moved_to;
        }
        self.touch_timer(id);
    }

    fn touch_timer(&mut self, id: &TimerId) {
        self.touch(Touch::Timer(id.clone()));
        if let Some(wait) = self.timers.get(id).and_then(|timer| timer.wait.clone()) {
            self.touch(Touch::Wait(wait));
        }
    }
}
