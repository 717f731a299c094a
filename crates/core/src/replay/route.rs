//! Which of code's ids an event number belongs to, and what code still has open. Follows code's
//! commands when they are emitted (what is open) and again when their events are known (numbers);
//! turns events into steps in terms of code's own ids.

use std::collections::{BTreeMap, BTreeSet};

use super::code::{ActivityClose, ChildClose, Step};
use crate::{
    command::{Ask, Command},
    event::{Condition, DeliveryFailure, Event, Fact, Mover},
    ids::{ActivityId, EventNumber, ExecutionId, RunId, TimerId, UpdateId, WaitId},
    time::Timestamp,
};

/// Code's open things and their event numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Route {
    open_activities: BTreeSet<ActivityId>,
    activities: BTreeMap<EventNumber, (ActivityId, ExecutionId)>,
    /// By code's id; the number is that of TimerStarted, once it is known.
    open_timers: BTreeMap<TimerId, Option<EventNumber>>,
    /// By code's id: what history calls a timer that it has under another id.
    renamed_timers: BTreeMap<TimerId, TimerId>,
    waits: BTreeMap<WaitId, Condition>,
    children: BTreeMap<EventNumber, u64>,
    children_count: u64,
    /// Children that code has not been told the number of.
    initiated: Vec<(u64, EventNumber, RunId)>,
    externals: BTreeMap<EventNumber, u64>,
    externals_count: u64,
    /// What this turn's commands cancel, or move and where to: what holds last.
    touched_timers: BTreeMap<TimerId, Touched>,
    cancelled_activities: BTreeSet<ActivityId>,
    /// Code's time in this turn.
    now: Timestamp,
    /// In this turn it made a difference that moves of timers take effect in the order of history.
    order_counted: bool,
    admitted_updates: BTreeSet<UpdateId>,
    accepted_updates: BTreeSet<UpdateId>,
}

/// What a turn has done to a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Touched {
    /// Code has moved it.
    MovedTo(Timestamp),
    /// Code has cancelled it, or somebody outside has moved it since.
    Otherwise,
}

impl Route {
    /// Follows a command that code has just emitted. `false` if it is about something that is over:
    /// an event has already closed what it wants to cancel or move.
    #[expect(clippy::wildcard_enum_match_arm, reason = "all others open and close nothing here")]
    pub(super) fn emit(&mut self, command: &Command) -> bool {
        match &command.ask {
            Ask::ScheduleActivity(spec) => {
                self.open_activities.insert(spec.activity.clone());
            }
            Ask::CancelActivity(activity) => {
                self.cancelled_activities.insert(activity.clone());
                return self.open_activities.contains(activity);
            }
            Ask::StartTimer(spec) => {
                self.renamed_timers.remove(&spec.timer);
                self.open_timers.insert(spec.timer.clone(), None);
            }
            Ask::RescheduleTimer { timer, fire_at } => {
                self.touched_timers.insert(timer.clone(), Touched::MovedTo(*fire_at));
                // Code may do so only where the order counts.
                self.order_counted |= *fire_at < self.now;
                return self.open_timers.contains_key(timer);
            }
            Ask::CancelTimer(timer) => {
                self.touched_timers.insert(timer.clone(), Touched::Otherwise);
                return self.open_timers.remove(timer).is_some();
            }
            Ask::AcceptUpdate { update, .. } => {
                self.admitted_updates.remove(update);
                self.accepted_updates.insert(update.clone());
            }
            Ask::RejectUpdate { update, .. } => {
                self.admitted_updates.remove(update);
            }
            _ => {}
        }
        true
    }

    /// Notes that `command` became `event`.
    pub(super) fn record(&mut self, command: &Command, event: &Event) {
        match (&command.ask, &event.body.fact) {
            (Ask::ScheduleActivity(spec), Fact::ActivityScheduled(scheduled)) => {
                let activity = (spec.activity.clone(), scheduled.execution.clone());
                self.activities.insert(event.number, activity);
            }
            (Ask::StartTimer(spec), Fact::TimerStarted(started)) => {
                if let Some(number) = self.open_timers.get_mut(&spec.timer) {
                    *number = Some(event.number);
                }
                if spec.timer != started.spec.timer {
                    self.renamed_timers.insert(spec.timer.clone(), started.spec.timer.clone());
                }
            }
            (Ask::OpenWait(spec), _) => {
                self.waits.insert(spec.wait.clone(), spec.condition.clone());
            }
            (Ask::SatisfyWait(wait) | Ask::TimeOutWait(wait) | Ask::CancelWait(wait), _) => {
                self.waits.remove(wait);
            }
            (Ask::StartChild(_), Fact::ChildInitiated(initiated)) => {
                self.children_count += 1;
                self.children.insert(event.number, self.children_count);
                self.initiated.push((self.children_count, event.number, initiated.run));
            }
            (Ask::SignalExternal { .. } | Ask::CancelExternal { .. }, _) => {
                self.externals_count += 1;
                self.externals.insert(event.number, self.externals_count);
            }
            _ => {}
        }
    }

    /// The event is a firing that is void: for an event before it, code has moved the timer past the
    /// time that came.
    pub(super) fn overtaken(&mut self, event: &Event) -> bool {
        let Fact::TimerFired(fired) = &event.body.fact else { return false };
        let timer = self.code_name(&fired.timer);
        let open = self.open_timers.get(timer) == Some(&Some(fired.started));
        let touched = self.touched_timers.get(timer);
        let void = open && matches!(touched, Some(Touched::MovedTo(due)) if *due > fired.fire_at);
        self.order_counted |= void;
        void
    }

    /// Drops the commands of this turn that `event` makes void: code cancelled or moved something,
    /// but the event that closes it was already in history; or code moved a timer that somebody outside
    /// has moved since.
    pub(super) fn withdraw(&mut self, event: &Event, in_order: bool, emitted: &mut Vec<Command>) {
        if let Some((moved, _)) = self.outside_move(event).filter(|_| in_order)
            && let Some(touched) = self.touched_timers.get_mut(&moved)
        {
            *touched = Touched::Otherwise;
            self.order_counted = true;
            emitted.retain(|command| !moves(&command.ask, &moved));
        }
        if let Fact::TimerFired(fired) = &event.body.fact {
            let fired = self.code_name(&fired.timer);
            if !self.touched_timers.contains_key(fired) {
                return;
            }
            let mut restarted = false;
            emitted.retain(|command| {
                restarted |= matches!(&command.ask, Ask::StartTimer(spec) if spec.timer == *fired);
                restarted || !cancels_or_moves(&command.ask, fired)
            });
        }
        let closed = activity_close(&event.body.fact).and_then(|(number, _)| self.activity(number));
        if let Some(closed) = closed.filter(|closed| self.cancelled_activities.contains(closed)) {
            emitted.retain(|command| {
                !matches!(&command.ask, Ask::CancelActivity(activity) if activity == closed)
            });
        }
    }

    /// What code is told about `event`; nothing if it does not concern code, or no longer does: a
    /// firing of a timer that code has cancelled in the meantime is late.
    pub(super) fn step<'a>(&mut self, event: &'a Event) -> Option<Step<'a>> {
        let fact = &event.body.fact;
        if let Some((scheduled, close)) = activity_close(fact) {
            let (activity, execution) = self.activities.remove(&scheduled)?;
            self.open_activities.remove(&activity);
            return Some(Step::ActivityResolved { activity, execution, close });
        }
        if let Some((initiated, close)) = child_close(fact) {
            let child = self.children.remove(&initiated)?;
            return Some(Step::ChildResolved { child, close });
        }
        if let Some((initiated, result)) = external_result(fact) {
            let external = self.externals.remove(&initiated)?;
            return Some(Step::ExternalResolved { external, result });
        }
        self.other_step(event)
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "all others do not concern code")]
    fn other_step<'a>(&mut self, event: &'a Event) -> Option<Step<'a>> {
        match &event.body.fact {
            Fact::RunStarted(started) => Some(Step::Start(started)),
            Fact::RunCancelRequested(request) => Some(Step::CancelRequested(request)),
            Fact::SignalReceived(signal) => Some(Step::Signal { number: event.number, signal }),
            Fact::TimerFired(fired) => {
                let timer = self.code_name(&fired.timer).clone();
                if self.open_timers.get(&timer) != Some(&Some(fired.started)) {
                    return None;
                }
                self.open_timers.remove(&timer);
                Some(Step::TimerFired { timer, fire_at: fired.fire_at })
            }
            Fact::TimerRescheduled(_) => {
                let (timer, fire_at) = self.outside_move(event)?;
                Some(Step::TimerRescheduled { timer, fire_at })
            }
            Fact::ChildStarted(started) => {
                let child = *self.children.get(&started.initiated)?;
                Some(Step::ChildStarted { child, run: started.run })
            }
            Fact::UpdateAdmitted(admitted) => {
                self.admitted_updates.insert(admitted.update.clone());
                let update = admitted.update.clone();
                Some(Step::Update { update, request: &admitted.request })
            }
            _ => None,
        }
    }

    /// The timer of code that was moved from outside, and where to.
    pub(super) fn outside_move(&self, event: &Event) -> Option<(TimerId, Timestamp)> {
        let Fact::TimerRescheduled(moved) = &event.body.fact else { return None };
        let timer = self.code_name(&moved.timer);
        let known = matches!(self.open_timers.get(timer), Some(Some(_)));
        (known && moved.by != Mover::Code).then(|| (timer.clone(), moved.fire_at))
    }

    /// Begins a turn: gives the children whose number code has not been told.
    pub(super) fn begin(&mut self, now: Timestamp) -> Vec<Step<'static>> {
        self.now = now;
        self.order_counted = false;
        self.touched_timers.clear();
        self.cancelled_activities.clear();
        let told = |(child, initiated, run)| Step::ChildInitiated { child, initiated, run };
        std::mem::take(&mut self.initiated).into_iter().map(told).collect()
    }

    /// In this turn it made a difference that moves of timers take effect in the order of history.
    pub(super) const fn order_counted(&self) -> bool {
        self.order_counted
    }

    /// Code has been told of this update and has not rejected it.
    pub(super) fn knows_update(&self, update: &UpdateId) -> bool {
        self.admitted_updates.contains(update) || self.accepted_updates.contains(update)
    }

    /// The activity that was scheduled by this event.
    pub(super) fn activity(&self, scheduled: EventNumber) -> Option<&ActivityId> {
        self.activities.get(&scheduled).map(|(activity, _)| activity)
    }

    /// What code's open wait waits for.
    pub(super) fn condition(&self, wait: &WaitId) -> Option<&Condition> {
        self.waits.get(wait)
    }

    /// What history calls code's timer.
    pub(super) fn recorded_name<'a>(&'a self, timer: &'a TimerId) -> &'a TimerId {
        self.renamed_timers.get(timer).unwrap_or(timer)
    }

    /// What code calls history's timer.
    fn code_name<'a>(&'a self, recorded: &'a TimerId) -> &'a TimerId {
        let renamed = self.renamed_timers.iter().find(|(_, name)| *name == recorded);
        renamed.map_or(recorded, |(timer, _)| timer)
    }

    /// The command as it is sent: timers under the name that history knows.
    pub(super) fn translate(&self, mut command: Command) -> Command {
        if let Ask::CancelTimer(timer) | Ask::RescheduleTimer { timer, .. } = &mut command.ask {
            *timer = self.recorded_name(timer).clone();
        }
        command
    }
}

fn cancels_or_moves(ask: &Ask, wanted: &TimerId) -> bool {
    matches!(ask, Ask::CancelTimer(timer) if timer == wanted) || moves(ask, wanted)
}

fn moves(ask: &Ask, wanted: &TimerId) -> bool {
    matches!(ask, Ask::RescheduleTimer { timer, .. } if timer == wanted)
}

#[expect(clippy::wildcard_enum_match_arm, reason = "all others close no activity")]
fn activity_close(fact: &Fact) -> Option<(EventNumber, ActivityClose<'_>)> {
    Some(match fact {
        Fact::ActivityCompleted(close) => (close.scheduled, ActivityClose::Completed(close)),
        Fact::ActivityFailed(close) => (close.scheduled, ActivityClose::Failed(close)),
        Fact::ActivityTimedOut(close) => (close.scheduled, ActivityClose::TimedOut(close)),
        Fact::ActivityCancelled(close) => (close.scheduled, ActivityClose::Cancelled(close)),
        _ => return None,
    })
}

#[expect(clippy::wildcard_enum_match_arm, reason = "all others close no child")]
fn child_close(fact: &Fact) -> Option<(EventNumber, ChildClose<'_>)> {
    Some(match fact {
        Fact::ChildStartFailed(close) => (close.initiated, ChildClose::StartFailed(close.cause)),
        Fact::ChildCompleted(close) => (close.initiated, ChildClose::Completed(close)),
        Fact::ChildFailed(close) => (close.initiated, ChildClose::Failed(close)),
        Fact::ChildTimedOut(close) => (close.initiated, ChildClose::TimedOut(close)),
        Fact::ChildCancelled(close) => (close.initiated, ChildClose::Cancelled(close)),
        Fact::ChildTerminated(close) => (close.initiated, ChildClose::Terminated(close)),
        _ => return None,
    })
}

#[expect(clippy::wildcard_enum_match_arm, reason = "all others answer no external request")]
fn external_result(fact: &Fact) -> Option<(EventNumber, Result<(), DeliveryFailure>)> {
    Some(match fact {
        Fact::ExternalSignalDelivered(delivered) => (delivered.initiated, Ok(())),
        Fact::ExternalSignalFailed(failed) => (failed.initiated, Err(failed.cause)),
        Fact::ExternalCancelDelivered(delivered) => (delivered.initiated, Ok(())),
        Fact::ExternalCancelFailed(failed) => (failed.initiated, Err(failed.cause)),
        _ => return None,
    })
}
