//! Due times: which exist, how the store identifies them, and what follows from them. An entry in
//! the due index is a hint; the run acts only on what is really due.

use bytes::{BufMut, Bytes, BytesMut};

use super::{Decision, Refusal, Reply, Run, activity, close, draft::Draft, schedule, timer};
use crate::{
    ids::{EventNumber, TimerId},
    time::Timestamp,
};

/// Identifies a due time within its run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TimerKey {
    /// When the first task is scheduled.
    FirstTask,
    /// When the run times out.
    Deadline,
    /// A timer of the workflow's code.
    Timer(TimerId),
    /// The next deadline or attempt of an activity.
    Activity(EventNumber),
    /// When the schedule that the run is acts next.
    Schedule,
}

impl TimerKey {
    /// Encodes the key for the store.
    pub fn to_bytes(&self) -> Bytes {
        let mut bytes = BytesMut::new();
        match self {
            Self::FirstTask => bytes.put_u8(b'f'),
            Self::Deadline => bytes.put_u8(b'd'),
            Self::Timer(timer) => {
                bytes.put_u8(b't');
                bytes.put_slice(timer.as_str().as_bytes());
            }
            Self::Activity(scheduled) => {
                bytes.put_u8(b'a');
                bytes.put_u64(*scheduled);
            }
            Self::Schedule => bytes.put_u8(b's'),
        }
        bytes.freeze()
    }

    /// Decodes a key; `None` if it is not valid.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (kind, rest) = bytes.split_first()?;
        match kind {
            b'f' if rest.is_empty() => Some(Self::FirstTask),
            b'd' if rest.is_empty() => Some(Self::Deadline),
            b't' => Some(Self::Timer(std::str::from_utf8(rest).ok()?.into())),
            b'a' => Some(Self::Activity(u64::from_be_bytes(rest.try_into().ok()?))),
            b's' if rest.is_empty() => Some(Self::Schedule),
            _ => None,
        }
    }
}

impl Run {
    /// When this is due, as the store should know it.
    pub fn due(&self, key: &TimerKey) -> Option<Timestamp> {
        if !self.open() {
            return None;
        }
        let due = match key {
            // A paused run schedules nothing; the end of the pause restores the entry.
            TimerKey::FirstTask => self.first_task_at.filter(|_| !self.paused),
            TimerKey::Deadline => self.deadline(),
            TimerKey::Timer(timer) => {
                self.timers.get(timer).filter(|timer| !timer.firing).map(|timer| timer.due())
            }
            TimerKey::Activity(scheduled) => self.activities.get(scheduled)?.due(),
            TimerKey::Schedule => self.schedule.as_ref().map(|schedule| schedule.wake_at),
        };
        due.filter(|due| !due.is_never())
    }

    /// When to check it again, including what is only in memory: unwritten heartbeats.
    pub fn next_check_at(&self, key: &TimerKey) -> Option<Timestamp> {
        let stored = self.due(key)?;
        match key {
            TimerKey::Activity(scheduled) => self.activity_due_in_memory(*scheduled),
            TimerKey::FirstTask | TimerKey::Deadline | TimerKey::Timer(_) | TimerKey::Schedule => {
                Some(stored)
            }
        }
    }

    pub fn due_keys(&self) -> Vec<TimerKey> {
        let mut keys = vec![TimerKey::FirstTask, TimerKey::Deadline];
        keys.extend(self.timers.keys().cloned().map(TimerKey::Timer));
        keys.extend(self.activities.keys().copied().map(TimerKey::Activity));
        keys.push(TimerKey::Schedule);
        keys.retain(|key| self.due(key).is_some());
        keys
    }
}

pub(super) fn handle(mut draft: Draft<'_>, key: TimerKey) -> Result<Decision, Refusal> {
    let due = draft.run.next_check_at(&key);
    if due.is_none_or(|due| due > draft.now()) {
        return Ok(draft.finish(Reply::NotDue));
    }
    match key {
        TimerKey::FirstTask => {
            draft.schedule_task(1);
            Ok(draft.finish(Reply::Done))
        }
        TimerKey::Deadline => Ok(close::time_out(draft)),
        TimerKey::Timer(timer) => timer::fire(draft, timer),
        TimerKey::Activity(scheduled) => activity::fall_due(draft, scheduled),
        TimerKey::Schedule => Ok(schedule::fall_due(draft)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_survive_the_store() {
        let keys = [
            TimerKey::FirstTask,
            TimerKey::Deadline,
            TimerKey::Timer("".into()),
            TimerKey::Timer("t-ü".into()),
            TimerKey::Activity(7),
            TimerKey::Schedule,
        ];
        for key in keys {
            assert_eq!(TimerKey::from_bytes(&key.to_bytes()), Some(key));
        }
        for bad in [&b""[..], b"fx", b"a123", b"t\xff", b"sx", b"z"] {
            assert_eq!(TimerKey::from_bytes(bad), None);
        }
    }
}
