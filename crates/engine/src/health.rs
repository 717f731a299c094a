//! Current problems of an engine, for operators. Each kind is logged at a limited rate and can be
//! queried while it lasts. No decision depends on it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Display,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use abide_core::{ids::ShardId, visible::visible};
use abide_shard::message::{Halt, Notice};
use abide_store::{CommitError, ReadError};

use crate::{
    clock::{Step, since_boot},
    figures::StoreFault,
};

/// Minimum time between two log lines of one kind: often enough for a reader, rare enough for the
/// log's disk.
const BETWEEN_LINES: Duration = Duration::from_secs(10);

/// How long a clock step is shown.
const CLOCK_SHOWN: Duration = Duration::from_secs(600);

/// How long damage of the store is shown. A store does not report when it is repaired; damage that
/// persists is found again by the next read.
const DAMAGE_SHOWN: Duration = Duration::from_secs(24 * 3600);

/// Health of an engine. All is well if everything is absent or zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Why the engine can no longer serve all of its shards.
    pub failed: Option<String>,
    /// The store accepts no writes, perhaps temporarily.
    pub store: Option<StoreTrouble>,
    /// The last damaged item found in the store within a day.
    pub damage: Option<Damage>,
    /// Number of runs set aside because the store refused their writes twice.
    pub set_aside: usize,
    /// The last step of the clock within ten minutes.
    pub clock: Option<ClockStep>,
}

impl Health {
    /// Whether the engine can accept calls that change something.
    pub const fn takes_writes(&self) -> bool {
        self.failed.is_none() && self.store.is_none()
    }
}

/// Why the store accepts no writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreTrouble {
    /// The kind of fault.
    pub fault: StoreFault,
    /// The store's error message.
    pub reason: String,
    /// Number of shards that are read-only because of it.
    pub shards: usize,
}

/// Damaged data in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The store's error message.
    pub reason: String,
    /// Time since it was last seen.
    pub ago: Duration,
}

/// A step of the wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockStep {
    /// Size and direction of the step.
    pub step: Step,
    /// Time since it was last seen.
    pub ago: Duration,
}

/// Collects the problems that the parts of an engine report.
#[derive(Debug, Default)]
pub(crate) struct Watch(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    read_only: BTreeSet<ShardId>,
    trouble: Option<(StoreFault, String)>,
    damage: Option<(String, Duration)>,
    set_aside: BTreeMap<ShardId, usize>,
    clock: Option<(Step, Duration)>,
    said: BTreeMap<Topic, LogThrottle>,
}

/// Topic of log lines; each has its own rate limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Topic {
    Store(StoreFault),
    SetAside,
    Unreadable,
    Unstarted,
    Senseless,
    Halted,
}

/// When a topic was last logged, and how many lines were suppressed since.
#[derive(Debug)]
struct LogThrottle {
    at: Duration,
    held_back: u64,
}

impl Watch {
    /// A commit failed: logs it if the store refused it or its outcome is unknown. The shard
    /// reports all other faults.
    pub(crate) fn commit_failed(&self, shard: ShardId, error: &CommitError) {
        let fault = StoreFault::of(error);
        if !matches!(fault, StoreFault::Refused | StoreFault::Unknown) {
            return;
        }
        if let Some(held_back) = self.seen().may_say(Topic::Store(fault), since_boot()) {
            let error = shown(error);
            tracing::warn!(%shard, %error, held_back, "a commit failed: the shard is reloaded");
        }
    }

    /// A read from the store failed.
    pub(crate) fn read_failed(&self, error: &ReadError) {
        let fault = StoreFault::of_read(error);
        let mut seen = self.seen();
        if fault == StoreFault::Damaged {
            seen.damage = Some((error.to_string(), since_boot()));
        }
        let Some(held_back) = seen.may_say(Topic::Store(fault), since_boot()) else { return };
        drop(seen);
        match error {
            ReadError::Corrupt(_) => {
                tracing::error!(error = %shown(error), held_back, "the store is damaged: restore a backup");
            }
            ReadError::Unavailable(_) => {
                tracing::warn!(error = %shown(error), held_back, "the store cannot be read");
            }
        }
    }

    /// Reading or writing the registry failed. The lease retries before it expires.
    pub(crate) fn registry_failed(&self, error: &dyn Display, what: &str) {
        let topic = Topic::Store(StoreFault::Registry);
        if let Some(held_back) = self.seen().may_say(topic, since_boot()) {
            tracing::warn!(error = %shown(error), held_back, "{what}");
        }
    }

    /// A shard reports a condition that operators should see.
    pub(crate) fn notice(&self, shard: ShardId, notice: &Notice) {
        match notice {
            Notice::ReadOnly(error) => self.read_only(shard, error),
            Notice::SetAside(run, reason) => {
                let mut seen = self.seen();
                *seen.set_aside.entry(shard).or_default() += 1;
                let Some(held_back) = seen.may_say(Topic::SetAside, since_boot()) else { return };
                tracing::error!(
                    %run, %shard, reason, held_back,
                    "a run was set aside: the store refused its writes twice; `abide repair` or a restart \
                     retries it"
                );
            }
            Notice::Repaired(run) => {
                if let Some(count) = self.seen().set_aside.get_mut(&shard) {
                    *count = count.saturating_sub(1);
                }
                tracing::info!(%run, %shard, "a run that was set aside is served again");
            }
            Notice::Unreadable(run, reason) => {
                let Some(held_back) = self.seen().may_say(Topic::Unreadable, since_boot()) else {
                    return;
                };
                tracing::error!(%run, %shard, reason, held_back, "a run cannot be read");
            }
            Notice::Unstarted(run, reason) => {
                let Some(held_back) = self.seen().may_say(Topic::Unstarted, since_boot()) else {
                    return;
                };
                tracing::error!(
                    %run, %shard, reason, held_back,
                    "a child did not start: the store refused its first writes twice; its parent is notified"
                );
            }
            Notice::Senseless(effect) => {
                let Some(held_back) = self.seen().may_say(Topic::Senseless, since_boot()) else {
                    return;
                };
                tracing::error!(
                    source = %effect.run, number = effect.number, %shard, held_back,
                    "refused an effect for a child that does not belong to its source run: another node \
                     is faulty or forged it"
                );
            }
        }
    }

    fn read_only(&self, shard: ShardId, error: &CommitError) {
        let mut seen = self.seen();
        let fault = StoreFault::of(error);
        seen.read_only.insert(shard);
        seen.trouble = Some((fault, error.to_string()));
        if let Some(held_back) = seen.may_say(Topic::Store(fault), since_boot()) {
            tracing::warn!(
                error = %shown(error), held_back,
                "the store does not accept writes: changes are refused, reads continue, writes are retried"
            );
        }
    }

    /// A shard is open, so the store accepts writes: it accepted the claim.
    pub(crate) fn opened(&self, shard: ShardId) {
        let mut seen = self.seen();
        if seen.read_only.remove(&shard) && seen.read_only.is_empty() {
            seen.trouble = None;
            tracing::info!("the store accepts writes again");
        }
    }

    /// This node no longer serves a shard.
    pub(crate) fn released(&self, shard: ShardId) {
        let mut seen = self.seen();
        seen.set_aside.remove(&shard);
        if seen.read_only.remove(&shard) && seen.read_only.is_empty() {
            seen.trouble = None;
        }
    }

    /// A shard was lost: logs it.
    pub(crate) fn halted(&self, shard: ShardId, why: &Halt, taken_by_another: bool) {
        let Some(held_back) = self.seen().may_say(Topic::Halted, since_boot()) else { return };
        if taken_by_another {
            tracing::warn!(%shard, why = %shown(why), held_back, "another node took over a shard");
        } else {
            tracing::error!(%shard, why = %shown(why), held_back, "a shard has stopped");
        }
    }

    /// A driver noticed a step of the clock; every driver will. Returns whether this is the first
    /// report of it.
    pub(crate) fn clock_set(&self, step: Step) -> bool {
        let now = since_boot();
        let mut seen = self.seen();
        let told = |(before, at): &(Step, Duration)| {
            before.resembles(&step) && now.saturating_sub(*at) < BETWEEN_LINES
        };
        if seen.clock.as_ref().is_some_and(told) {
            return false;
        }
        seen.clock = Some((step, now));
        tracing::warn!(
            by = %step,
            "the system clock was set: timers follow the new time"
        );
        true
    }

    /// Number of read-only shards, and number of runs set aside.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let seen = self.seen();
        (seen.read_only.len(), seen.set_aside.values().sum())
    }

    /// Health of the engine, except for `failed`.
    pub(crate) fn health(&self) -> Health {
        let (seen, now) = (self.seen(), since_boot());
        let store = seen.trouble.clone().map(|(fault, reason)| {
            let shards = seen.read_only.len();
            StoreTrouble { fault, reason, shards }
        });
        let clock = seen.clock.map(|(step, at)| {
            let ago = now.saturating_sub(at);
            ClockStep { step, ago }
        });
        let damage = seen.damage.clone().map(|(reason, at)| {
            let ago = now.saturating_sub(at);
            Damage { reason, ago }
        });
        Health {
            failed: None,
            store,
            damage: damage.filter(|damage| damage.ago < DAMAGE_SHOWN),
            set_aside: seen.set_aside.values().sum(),
            clock: clock.filter(|clock| clock.ago < CLOCK_SHOWN),
        }
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        // The state is consistent whenever the lock is released, so a poisoned lock can be used.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An error as it is logged: a store may quote ids, which users choose.
fn shown(error: &dyn Display) -> String {
    visible(&error.to_string())
}

impl Seen {
    /// Returns the number of suppressed lines if a line may be logged now; none if it must be
    /// suppressed.
    fn may_say(&mut self, topic: Topic, now: Duration) -> Option<u64> {
        match self.said.get_mut(&topic) {
            Some(said) if now.saturating_sub(said.at) < BETWEEN_LINES => {
                said.held_back += 1;
                None
            }
            before => {
                let held_back = before.map_or(0, |said| said.held_back);
                self.said.insert(topic, LogThrottle { at: now, held_back: 0 });
                Some(held_back)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use abide_core::ids::RunId;

    use super::*;

    fn shard(number: u8) -> ShardId {
        ShardId::new(number).unwrap()
    }

    fn full() -> CommitError {
        CommitError::Full("no space left".into())
    }

    #[test]
    fn a_run_that_is_repaired_no_longer_counts_as_set_aside() {
        let watch = Watch::default();
        watch.notice(shard(1), &Notice::SetAside(RunId::MIN, "too large".into()));
        assert_eq!(watch.counts().1, 1);
        watch.notice(shard(1), &Notice::Repaired(RunId::MIN));
        assert_eq!(watch.counts().1, 0);
    }

    #[test]
    fn a_line_is_not_repeated_too_often_and_counts_what_was_not_said() {
        let mut seen = Seen::default();
        let at = |seconds| Duration::from_secs(seconds);
        assert_eq!(seen.may_say(Topic::SetAside, at(100)), Some(0));
        assert_eq!(seen.may_say(Topic::SetAside, at(101)), None);
        assert_eq!(seen.may_say(Topic::SetAside, at(109)), None);
        assert_eq!(seen.may_say(Topic::Halted, at(109)), Some(0), "another topic");
        assert_eq!(seen.may_say(Topic::SetAside, at(110)), Some(2));
        assert_eq!(seen.may_say(Topic::SetAside, at(120)), Some(0));
    }

    #[test]
    fn the_store_is_in_trouble_until_the_last_shard_takes_writes_again() {
        let watch = Watch::default();
        for number in [1, 2] {
            watch.notice(shard(number), &Notice::ReadOnly(full()));
        }
        let store = watch.health().store.unwrap();
        assert_eq!((store.fault, store.shards), (StoreFault::Full, 2));
        assert!(store.reason.contains("no space left"), "{}", store.reason);
        watch.opened(shard(1));
        assert!(!watch.health().takes_writes());
        watch.opened(shard(2));
        assert_eq!(watch.health(), Health::default());
        watch.notice(shard(1), &Notice::ReadOnly(full()));
        watch.released(shard(1));
        assert_eq!(watch.health(), Health::default(), "another node has the shard");
    }

    #[test]
    fn damage_is_shown_for_a_day_after_it_was_last_seen() {
        let watch = Watch::default();
        watch.read_failed(&ReadError::Unavailable("busy".into()));
        assert_eq!(watch.health().damage, None);
        watch.read_failed(&ReadError::Corrupt("a page".into()));
        let damage = watch.health().damage.unwrap();
        assert!(damage.reason.contains("a page") && damage.ago < BETWEEN_LINES, "{damage:?}");
        let (reason, at) = watch.seen().damage.take().unwrap();
        let Some(yesterday) = at.checked_sub(DAMAGE_SHOWN) else { return };
        watch.seen().damage = Some((reason, yesterday));
        assert_eq!(watch.health().damage, None);
    }

    #[test]
    fn one_step_of_the_clock_is_told_once_though_all_drivers_see_it() {
        let watch = Watch::default();
        let step = Step { by: Duration::from_secs(3600), forwards: true };
        assert!(watch.clock_set(step));
        let nearly = Step { by: Duration::from_millis(3_600_400), forwards: true };
        assert!(!watch.clock_set(nearly));
        assert!(watch.clock_set(Step { forwards: false, ..step }), "it was set back");
        assert_eq!(watch.health().clock.unwrap().step.to_string(), "-3600.000s");
    }
}
