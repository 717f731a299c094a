//! What a run waits for, as it is shown. Lists, inboxes and descriptions all use this, so that a
//! wait looks the same everywhere. A condition and its deadline are one wait.

use std::fmt;

use bytes::{BufMut, Bytes, BytesMut};

use super::{Phase, Refusal, Run, Timer};
use crate::{
    codec,
    event::{Guards, Mover, Origin, WaitDetails},
    ids::{EventNumber, TimerId, WaitId},
    list::{WaitEnd, WaitKind, WaitRow},
    schedule,
    time::Timestamp,
};

/// Identifies a wait within its run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WaitKey {
    /// A timer of the workflow's code: a sleep, a wait for a signal, a recorded retry.
    Timer(TimerId),
    Condition(WaitId),
    /// The next attempt of the activity that this event scheduled.
    Activity(EventNumber),
    /// The start of the run itself, which is the next attempt of a child.
    Begin,
    /// The next time of the schedule that the run is.
    Schedule,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ShownWait {
    pub key: WaitKey,
    pub kind: WaitKind,
    /// Name of the signal, key of the condition or approval, or id of the timer.
    pub name: String,
    /// Why it exists; absent in histories of older code.
    pub origin: Option<Origin>,
    /// Timer of the deadline, which can be rescheduled; `None` without a deadline.
    pub timer: Option<TimerId>,
    pub since: Timestamp,
    /// Deadline; [`Timestamp::NEVER`] if there is none.
    pub until: Timestamp,
    /// Limits on reschedules by clients and operators.
    pub guards: Guards,
    /// Number of reschedules from outside.
    pub moves: u32,
    /// Who moved it last.
    pub moved_by: Option<Mover>,
    /// Shown to the person who must act.
    pub details: Option<WaitDetails>,
}

impl ShownWait {
    /// What would end it.
    pub fn ended_by(&self) -> Vec<WaitEnd> {
        self.kind.ended_by(self.until)
    }
}

impl WaitKey {
    /// Encodes the key for stores.
    pub fn to_bytes(&self) -> Bytes {
        let mut bytes = BytesMut::new();
        bytes.put_u8(match self {
            Self::Timer(_) => b't',
            Self::Condition(_) => b'c',
            Self::Activity(_) => b'a',
            Self::Begin => b'b',
            Self::Schedule => b's',
        });
        match self {
            Self::Timer(timer) => bytes.put_slice(timer.as_str().as_bytes()),
            Self::Condition(wait) => bytes.put_slice(wait.as_str().as_bytes()),
            Self::Activity(scheduled) => bytes.put_slice(scheduled.to_string().as_bytes()),
            Self::Begin | Self::Schedule => {}
        }
        bytes.freeze()
    }

    /// Decodes a key; `None` if it is not valid.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (kind, rest) = bytes.split_first()?;
        let rest = std::str::from_utf8(rest).ok()?;
        match kind {
            b't' => Some(Self::Timer(rest.into())),
            b'c' => Some(Self::Condition(rest.into())),
            b'a' => rest.parse().ok().map(Self::Activity),
            b'b' if rest.is_empty() => Some(Self::Begin),
            b's' if rest.is_empty() => Some(Self::Schedule),
            _ => None,
        }
    }
}

/// Shows only the id, for people; a timer and a condition may have the same one.
impl fmt::Display for WaitKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Timer(timer) => timer.fmt(f),
            Self::Condition(wait) => wait.fmt(f),
            Self::Activity(scheduled) => write!(f, "activity-{scheduled}"),
            Self::Begin => f.write_str("begin"),
            Self::Schedule => f.write_str("schedule"),
        }
    }
}

impl Run {
    /// All waits of the run; none once it is closed.
    pub fn shown_waits(&self) -> Vec<ShownWait> {
        let conditions = self.waits.keys().cloned().map(WaitKey::Condition);
        let timers = self.timers.keys().cloned().map(WaitKey::Timer);
        let activities = self.activities.keys().copied().map(WaitKey::Activity);
        let keys =
            conditions.chain(timers).chain(activities).chain([WaitKey::Begin, WaitKey::Schedule]);
        keys.filter_map(|key| self.shown_wait(&key)).collect()
    }

    /// A single wait. The deadline of a condition is not a wait of its own.
    pub fn shown_wait(&self, key: &WaitKey) -> Option<ShownWait> {
        if !self.open() {
            return None;
        }
        match key {
            WaitKey::Timer(id) => self.timers.get(id).and_then(|timer| self.shown_timer(timer)),
            WaitKey::Condition(id) => self.shown_condition(id),
            WaitKey::Activity(scheduled) => self.shown_attempt(*scheduled),
            WaitKey::Begin => self.shown_begin(),
            WaitKey::Schedule => self.shown_schedule(),
        }
    }

    /// A single wait as a row of the list.
    pub fn wait_row(&self, key: &WaitKey) -> Option<WaitRow> {
        let shown = self.shown_wait(key)?;
        Some(WaitRow {
            run: self.id,
            wait: key.to_bytes(),
            namespace: self.workflow.namespace.clone(),
            workflow: self.workflow.workflow.clone(),
            workflow_type: self.spec.workflow_type.clone(),
            kind: shown.kind,
            name: shown.name,
            since: shown.since,
            until: shown.until,
            timer: shown.timer,
            details: match &self.schedule {
                Some(state) => {
                    codec::encode_schedule_wait(shown.details.as_ref(), &state.listing())
                }
                None => codec::encode_wait_details(shown.details.as_ref()),
            },
        })
    }

    /// Timer of the wait's deadline.
    pub(super) fn timer_of(&self, key: &WaitKey) -> Result<TimerId, Refusal> {
        let unknown = || Refusal::UnknownWait(key.to_string());
        let endless = || Refusal::EndlessWait(key.to_string());
        match key {
            WaitKey::Timer(timer) => {
                self.timers.get(timer).map(|timer| timer.spec.timer.clone()).ok_or_else(unknown)
            }
            WaitKey::Condition(wait) => {
                let wait = self.waits.get(wait).ok_or_else(unknown)?;
                let timer = wait.spec.timer.clone().ok_or_else(endless)?;
                if wait.passed.is_some() { Err(Refusal::TimerFired(timer)) } else { Ok(timer) }
            }
            WaitKey::Activity(_) | WaitKey::Begin | WaitKey::Schedule => Err(endless()),
        }
    }

    fn shown_timer(&self, timer: &Timer) -> Option<ShownWait> {
        let id = &timer.spec.timer;
        let (kind, name) = match &timer.spec.origin {
            Some(Origin::Condition { .. }) if timer.wait.is_some() => return None,
            Some(Origin::ExternalEvent { name }) => (WaitKind::Signal, name.clone()),
            Some(Origin::ActivityRetry { execution }) => {
                (WaitKind::ActivityRetry, execution.to_string())
            }
            Some(Origin::ChildWorkflowRetry { workflow }) => {
                (WaitKind::ChildRetry, workflow.to_string())
            }
            Some(Origin::CreateTimer | Origin::Condition { .. }) | None => {
                (WaitKind::Timer, id.to_string())
            }
        };
        let (moves, moved_by) = self.moves_of(timer);
        Some(ShownWait {
            key: WaitKey::Timer(id.clone()),
            kind,
            name,
            origin: timer.spec.origin.clone(),
            timer: Some(id.clone()).filter(|_| !timer.spec.optional()),
            since: timer.since,
            until: timer.due(),
            guards: timer.spec.guards,
            moves,
            moved_by: moved_by.cloned(),
            details: timer.spec.details.clone(),
        })
    }

    fn shown_condition(&self, id: &WaitId) -> Option<ShownWait> {
        let wait = self.waits.get(id)?;
        let timer = wait.spec.timer.as_ref().and_then(|timer| self.timers.get(timer));
        let (moves, moved_by) = timer.map_or((0, None), |timer| self.moves_of(timer));
        let condition = &wait.spec.condition;
        let approval = wait.spec.details.as_ref().is_some_and(|details| details.approval.is_some());
        Some(ShownWait {
            key: WaitKey::Condition(id.clone()),
            kind: if approval { WaitKind::Approval } else { WaitKind::Condition },
            name: condition.key.clone().unwrap_or_default(),
            origin: Some(Origin::Condition {
                key: condition.key.clone(),
                fingerprint: condition.fingerprint.clone(),
            }),
            timer: timer.map(|timer| timer.spec.timer.clone()),
            since: wait.since,
            until: timer.map(Timer::due).or(wait.passed).unwrap_or(Timestamp::NEVER),
            guards: timer.map(|timer| timer.spec.guards).unwrap_or_default(),
            moves,
            moved_by: moved_by.cloned(),
            details: wait.spec.details.clone(),
        })
    }

    /// An activity that waits for its next attempt.
    fn shown_attempt(&self, scheduled: EventNumber) -> Option<ShownWait> {
        let activity = self.activities.get(&scheduled).filter(|activity| !activity.closing)?;
        let Phase::Backoff { until } = activity.phase else { return None };
        Some(ShownWait {
            key: WaitKey::Activity(scheduled),
            kind: WaitKind::ActivityRetry,
            name: activity.execution.to_string(),
            origin: Some(Origin::ActivityRetry { execution: activity.execution.clone() }),
            timer: None,
            since: activity.scheduled_at,
            until,
            guards: Guards::default(),
            moves: 0,
            moved_by: None,
            details: None,
        })
    }

    /// The run is the next attempt of a child, and its code has not started. All attempts that the
    /// engine makes have the workflow id of the first.
    fn shown_begin(&self) -> Option<ShownWait> {
        let until = self.first_task_at.filter(|_| self.attempt > 1 && self.parent.is_some())?;
        let workflow = self.workflow.workflow.clone();
        Some(ShownWait {
            key: WaitKey::Begin,
            kind: WaitKind::ChildRetry,
            name: workflow.to_string(),
            origin: Some(Origin::ChildWorkflowRetry { workflow }),
            timer: None,
            since: self.started_at,
            until,
            guards: Guards::default(),
            moves: 0,
            moved_by: None,
            details: None,
        })
    }

    /// The next time of the schedule that the run is.
    fn shown_schedule(&self) -> Option<ShownWait> {
        let state = self.schedule.as_ref()?;
        Some(ShownWait {
            key: WaitKey::Schedule,
            kind: WaitKind::Schedule,
            name: schedule::id_of(&self.workflow.workflow).unwrap_or_default().to_owned(),
            origin: None,
            timer: None,
            since: state.changed_at,
            until: state.wake_at,
            guards: Guards::default(),
            moves: 0,
            moved_by: None,
            details: Some(state.shown()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_survive_the_store() {
        let keys = [
            WaitKey::Timer("".into()),
            WaitKey::Timer("t-ü".into()),
            WaitKey::Condition("t-ü".into()),
            WaitKey::Activity(7),
            WaitKey::Begin,
            WaitKey::Schedule,
        ];
        for key in keys {
            assert_eq!(WaitKey::from_bytes(&key.to_bytes()), Some(key));
        }
        for bad in [&b""[..], b"ax", b"bx", b"sx", b"t\xff", b"z"] {
            assert_eq!(WaitKey::from_bytes(bad), None);
        }
    }
}
