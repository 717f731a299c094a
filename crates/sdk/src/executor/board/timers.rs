//! Timers, and the waits that may have one as their deadline: for a signal, for a condition. The
//! board knows the due time of each open timer, so that code can read and move it.

use std::rc::Rc;

use abide_core::{
    command::Ask,
    event::{Condition, Guards, Origin, TimerSpec, WaitDetails, WaitSpec},
    ids::{TimerId, WaitId},
    payload::PayloadMap,
    time::Timestamp,
};

use super::{Board, BoardState, TurnInfo};
use crate::{
    context::RescheduleError,
    executor::waits::{Ender, Predicate, Resolution, Subject, Wait},
    interceptor::OutgoingKind,
};

/// What a wait shows to people, and the limits on moving its deadline.
#[derive(Clone, Debug, Default)]
pub(crate) struct Terms {
    pub(crate) details: Option<WaitDetails>,
    pub(crate) guards: Guards,
}

/// The first result of receiving a signal.
pub(crate) enum Received {
    /// No signal was there, and the deadline has passed.
    TimedOut,
    /// The wait is pending, or a signal was there and the wait has ended.
    Waits(Wait),
}

impl Board {
    pub(crate) fn start_timer(
        self: &Rc<Self>,
        fire_at: Timestamp,
        origin: Origin,
        terms: Terms,
    ) -> Wait {
        if origin == Origin::CreateTimer {
            self.outgoing(OutgoingKind::Sleep, ("", None), &mut PayloadMap::new());
        }
        let mut shared = self.change();
        let timer = shared.counts.timer();
        self.open_timer(&mut shared, timer.clone(), fire_at, origin, terms);
        self.open(&mut shared, Subject::Timer(timer), Ender::Nothing)
    }

    /// Takes a signal, or starts to wait for one: forever if no end is given. The empty name
    /// matches every signal.
    pub(crate) fn receive(
        self: &Rc<Self>,
        name: &'static str,
        until: Option<Timestamp>,
        terms: Terms,
    ) -> Received {
        let mut shared = self.change();
        if let Some(signal) = shared.mailbox.take(name) {
            // The signal is unread until code takes it from the wait, and is returned if the wait
            // is dropped.
            let wait = self.open(&mut shared, Subject::Nothing, Ender::Nothing);
            shared.waits.resolve(wait.number(), Resolution::Signal(signal));
            return Received::Waits(wait);
        }
        if until.is_some_and(|until| until <= self.now()) {
            return Received::TimedOut;
        }
        let (timer, fire_at) = match until {
            Some(until) => (shared.counts.timer(), until),
            None => (shared.counts.signal_wait(), Timestamp::NEVER),
        };
        let origin = Origin::ExternalEvent { name: name.into() };
        self.open_timer(&mut shared, timer.clone(), fire_at, origin, terms);
        Received::Waits(self.open(&mut shared, Subject::Timer(timer), Ender::Signal(name)))
    }

    /// Starts to wait for a condition that does not hold yet.
    pub(crate) fn wait_until(
        self: &Rc<Self>,
        condition: Condition,
        holds: Predicate,
        until: Option<Timestamp>,
        terms: Terms,
    ) -> Wait {
        let mut shared = self.change();
        let id = shared.counts.condition();
        let wait = WaitId::from(id.as_str());
        let timer = until.map(|until| (TimerId::from(id), until));
        let Terms { details, guards } = terms;
        self.ask(
            &mut shared,
            Ask::OpenWait(WaitSpec {
                wait: wait.clone(),
                condition: condition.clone(),
                timer: timer.as_ref().map(|(timer, _)| timer.clone()),
                details,
            }),
        );
        let subject = match timer {
            Some((timer, until)) => {
                let Condition { key, fingerprint } = condition;
                let origin = Origin::Condition { key, fingerprint };
                let terms = Terms { details: None, guards };
                self.open_timer(&mut shared, timer.clone(), until, origin, terms);
                Subject::Timer(timer)
            }
            None => Subject::Condition(wait.clone()),
        };
        self.open(&mut shared, subject, Ender::Condition(wait, holds))
    }

    /// Changes the details of a condition wait whose future is alive.
    pub(in crate::executor) fn describe_wait(&self, number: u64, details: WaitDetails) {
        let mut shared = self.change();
        if let Some(wait) = shared.waits.condition(number) {
            self.ask(&mut shared, Ask::DescribeWait { wait, details });
        }
    }

    /// The timer of a wait whose future is alive.
    pub(in crate::executor) fn timer_of(&self, number: u64) -> Option<TimerId> {
        match self.shared.borrow().waits.subject(number)? {
            Subject::Timer(timer) => Some(timer.clone()),
            _ => None,
        }
    }

    /// The due time of an open timer.
    pub(crate) fn due(&self, timer: &TimerId) -> Option<Timestamp> {
        let due = self.shared.borrow().due.get(timer).copied()?;
        Some(self.shown_moves.borrow().get(timer).copied().unwrap_or(due))
    }

    /// From now on, a query sees these timers as moved.
    pub(in crate::executor) fn show_moves(
        &self,
        moves: impl IntoIterator<Item = (TimerId, Timestamp)>,
    ) {
        *self.shown_moves.borrow_mut() = moves.into_iter().collect();
    }

    /// Moves the due time of an open timer. Whether the new time is in the past is judged by the
    /// time of the event that code is handling, not by the time at which a worker handles it. A
    /// time later than the current due time is always accepted. If the new time has passed by now,
    /// code first sees the events that came meanwhile, and then the deadline.
    pub(crate) fn move_timer(
        &self,
        timer: &TimerId,
        fire_at: Timestamp,
    ) -> Result<(), RescheduleError> {
        if self.looking() {
            return Err(RescheduleError::ReadOnly);
        }
        let mut shared = self.shared.borrow_mut();
        let TurnInfo { now, happened, in_order, .. } = self.turn.get();
        let due = shared.due.get_mut(timer).ok_or(RescheduleError::TooLate)?;
        if fire_at.is_never() {
            return Err(RescheduleError::Never);
        }
        let past = if in_order { fire_at < happened && fire_at <= *due } else { fire_at < now };
        if past {
            // A refusal leaves no trace, so it is the same under both rules.
            return Err(RescheduleError::Past { at: fire_at, now });
        }
        // A time that has passed by now is requested in any case: the task then records that order
        // counted.
        if fire_at != *due || fire_at < now {
            *due = fire_at;
            self.ask(&mut shared, Ask::RescheduleTimer { timer: timer.clone(), fire_at });
        }
        Ok(())
    }

    /// A timer was moved from outside.
    pub(in crate::executor) fn timer_moved(&self, timer: TimerId, fire_at: Timestamp) {
        if let Some(due) = self.shared.borrow_mut().due.get_mut(&timer) {
            *due = fire_at;
        }
    }

    /// Gives up what a wait was for.
    pub(super) fn give_up(&self, shared: &mut BoardState, subject: Subject, ender: &Ender) {
        self.withdraw(shared, subject);
        if let Ender::Condition(wait, _) = ender {
            self.ask(shared, Ask::CancelWait(wait.clone()));
        }
    }

    pub(super) fn cancel_timer(&self, shared: &mut BoardState, timer: TimerId) {
        shared.due.remove(&timer);
        self.ask(shared, Ask::CancelTimer(timer));
    }

    fn open_timer(
        &self,
        shared: &mut BoardState,
        timer: TimerId,
        fire_at: Timestamp,
        origin: Origin,
        Terms { details, guards }: Terms,
    ) {
        shared.due.insert(timer.clone(), fire_at);
        let origin = Some(origin);
        self.ask(shared, Ask::StartTimer(TimerSpec { timer, fire_at, origin, details, guards }));
    }
}
