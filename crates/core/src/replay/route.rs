//! Maps event numbers to code's ids, and tracks what code has open. It follows code's commands when
//! they are emitted (what is open) and again when their events are known (numbers), and converts
//! events into steps with code's own ids.

use std::collections::{BTreeMap, BTreeSet};

use super::code::{ActivityClose, ChildClose, Step};
use crate::{
    command::{Ask, Command},
    event::{Condition, DeliveryFailure, Event, Fact, Mover},
    ids::{ActivityId, EventNumber, ExecutionId, RunId, TimerId, UpdateId, WaitId},
    time::Timestamp,
};

/// What code has open, with event numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Route {
    open_activities: BTreeSet<ActivityId>,
    activities: BTreeMap<EventNumber, (ActivityId, ExecutionId)>,
    /// By code's id; the value is the number of TimerStarted, once it is known.
    open_timers: BTreeMap<TimerId, Option<EventNumber>>,
    /// By code's id: the id in history, if it differs.
    renamed_timers: BTreeMap<TimerId, TimerId>,
    waits: BTreeMap<WaitId, Condition>,
    children: BTreeMap<EventNumber, u64>,
    children_count: u64,
    /// Children whose event number code has not been told.
    initiated: Vec<(u64, EventNumber, RunId)>,
    externals: BTreeMap<EventNumber, u64>,
    externals_count: u64,
    /// Timers that this turn's commands cancel or reschedule, with the last change of each.
    touched_timers: BTreeMap<TimerId, Touched>,
    cancelled_activities: BTreeSet<ActivityId>,
    /// Time that code sees in this turn.
    now: Timestamp,
    /// Whether the order of history made a difference for a reschedule in this turn.
    order_counted: bool,
    admitted_updates: BTreeSet<UpdateId>,
    accepted_updates: BTreeSet<UpdateId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Touched {
    /// Rescheduled by code.
    MovedTo(Timestamp),
    /// Cancelled by code, or rescheduled from outside since.
    Otherwise,
}

impl Route {
    /// Follows a command that code just emitted. `false` if an event has already closed what it
    /// wants to cancel or reschedule.
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

    /// Records that `command` became `event`.
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

    /// Whether the event is a firing that is void: code, reacting to an earlier event, has
    /// rescheduled the timer past it.
    pub(super) fn overtaken(&mut self, event: &Event) -> bool {
        let Fact::TimerFired(fired) = &event.body.fact else { return false };
        let timer = self.code_name(&fired.timer);
        let open = self.open_timers.get(timer) == Some(&Some(fired.started));
        let touched = self.touched_timers.get(timer);
        let void = open && matches!(touched, Some(Touched::MovedTo(due)) if *due > fired.fire_at);
        self.order_counted |= void;
        void
    }

    /// Drops the commands of this turn that `event` makes void: code cancelled or rescheduled
    /// something that the event closes, or rescheduled a timer that was rescheduled from outside
    /// since.
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

    /// The step that `event` is for code; `None` if it does not concern code, or no longer does: the
    /// firing of a timer that code has cancelled in the meantime is stale.
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

    /// Timer that was rescheduled from outside, and its new due time.
    pub(super) fn outside_move(&self, event: &Event) -> Option<(TimerId, Timestamp)> {
        let Fact::TimerRescheduled(moved) = &event.body.fact else { return None };
        let timer = self.code_name(&moved.timer);
        let known = matches!(self.open_timers.get(timer), Some(Some(_)));
        (known && moved.by != Mover::Code).then(|| (timer.clone(), moved.fire_at))
    }

    /// Begins a turn: returns the children whose event number code has not been told.
    pub(super) fn begin(&mut self, now: Timestamp) -> Vec<Step<'static>> {
        self.now = now;
        self.order_counted = false;
        self.touched_timers.clear();
        self.cancelled_activities.clear();
        let told = |(child, initiated, run)| Step::ChildInitiated { child, initiated, run };
        std::mem::take(&mut self.initiated).into_iter().map(told).collect()
    }

    /// Whether the order of history made a difference for a reschedule in this turn.
    pub(super) const fn order_counted(&self) -> bool {
        self.order_counted
    }

    /// Code's time in this turn.
    pub(super) const fn now(&self) -> Timestamp {
        self.now
    }

    /// Whether code has seen this update and has not rejected it.
    pub(super) fn knows_update(&self, update: &UpdateId) -> bool {
        self.admitted_updates.contains(update) || self.accepted_updates.contains(update)
    }

    /// The activity that was scheduled by this event.
    pub(super) fn activity(&self, scheduled: EventNumber) -> Option<&ActivityId> {
        self.activities.get(&scheduled).map(|(activity, _)| activity)
    }

    /// Condition of an open wait.
    pub(super) fn condition(&self, wait: &WaitId) -> Option<&Condition> {
        self.waits.get(wait)
    }

    /// Id in history of a timer of code.
    pub(super) fn recorded_name<'a>(&'a self, timer: &'a TimerId) -> &'a TimerId {
        self.renamed_timers.get(timer).unwrap_or(timer)
    }

    /// Id in code of a timer in history.
    fn code_name<'a>(&'a self, recorded: &'a TimerId) -> &'a TimerId {
        let renamed = self.renamed_timers.iter().find(|(_, name)| *name == recorded);
        renamed.map_or(recorded, |(timer, _)| timer)
    }

    /// The command as it is sent: with the timer ids of history.
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
