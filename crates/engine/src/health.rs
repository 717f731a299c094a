//! Current problems of an engine, for operators. Each kind is logged at a limited rate and can be
//! queried while it lasts. No decision depends on it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Display,
    sync::{Mutex, MutexGuard},
    time::Duration,
};

use abide_core::{ids::ShardId, visible::visible};
use abide_shard::message::{Halt, Notice};
use abide_store::{
    CommitError, ReadError,
    throttle::{BETWEEN_LINES, LogThrottle},
};

use crate::{
    clock::{Step, monotonic_now, since_boot},
    figures::StoreFault,
    lock::lock,
};

/// How long a clock step is shown.
const CLOCK_SHOWN: Duration = Duration::from_secs(600);

/// How long damage of the store and of runs is shown. Repairs are not reported; damage that persists
/// is found again by the next read.
const DAMAGE_SHOWN: Duration = Duration::from_secs(24 * 3600);

/// How long a refused commit is shown: longer than it takes until a run that is at fault is set aside.
const REFUSAL_SHOWN: Duration = Duration::from_secs(600);

/// Health of an engine. All is well if everything is absent or zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Why the engine can no longer serve all of its shards.
    pub failed: Option<String>,
    /// The store accepts no writes, perhaps temporarily.
    pub store: Option<StoreTrouble>,
    /// The last damaged item found in the store within a day.
    pub damage: Option<Damage>,
    /// The last run within a day whose data could not be decoded.
    pub unreadable: Option<Damage>,
    /// The last commit that the store refused within ten minutes.
    pub refusal: Option<RefusedCommit>,
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

/// A commit that the store refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedCommit {
    /// The store's error message.
    pub reason: String,
    /// Time since then.
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
pub(crate) struct Watch(Mutex<Troubles>);

#[derive(Debug, Default)]
struct Troubles {
    read_only: BTreeSet<ShardId>,
    trouble: Option<(StoreFault, String)>,
    damage: Option<(String, Duration)>,
    unreadable: Option<(String, Duration)>,
    refusal: Option<(String, Duration)>,
    set_aside: BTreeMap<ShardId, usize>,
    clock: Option<(Step, Duration)>,
    throttles: BTreeMap<Topic, LogThrottle>,
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

impl Watch {
    /// A commit failed: logs it if the store refused it or its outcome is unknown. The shard
    /// reports all other faults.
    pub(crate) fn commit_failed(&self, shard: ShardId, error: &CommitError) {
        let fault = StoreFault::of(error);
        if !matches!(fault, StoreFault::Refused | StoreFault::Unknown) {
            return;
        }
        let mut seen = self.seen();
        if fault == StoreFault::Refused {
            seen.refusal = Some((shown(error), since_boot()));
        }
        let held_back = seen.admit_line(Topic::Store(fault));
        drop(seen);
        if let Some(held_back) = held_back {
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
        let Some(held_back) = seen.admit_line(Topic::Store(fault)) else { return };
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
        let held_back = self.seen().admit_line(topic);
        if let Some(held_back) = held_back {
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
                let Some(held_back) = seen.admit_line(Topic::SetAside) else { return };
                // The log may be slow, and every shard reports here.
                drop(seen);
                tracing::error!(
                    %run, %shard, reason, held_back,
                    "a run was set aside: the store refused its writes twice; `abide repair` or a restart \
                     retries it"
                );
            }
            Notice::Repaired(run) => {
                let mut seen = self.seen();
                if let Some(count) = seen.set_aside.get_mut(&shard) {
                    *count = count.saturating_sub(1);
                }
                drop(seen);
                tracing::info!(%run, %shard, "a run that was set aside is served again");
            }
            Notice::Unreadable(run, reason) => {
                let mut seen = self.seen();
                seen.unreadable = Some((format!("run {run}: {reason}"), since_boot()));
                let Some(held_back) = seen.admit_line(Topic::Unreadable) else { return };
                drop(seen);
                let reason = shown(reason);
                tracing::error!(%run, %shard, reason, held_back, "a run cannot be read");
            }
            Notice::UnreadableAttributes(reason) => {
                let mut seen = self.seen();
                seen.unreadable = Some((reason.clone(), since_boot()));
                let Some(held_back) = seen.admit_line(Topic::Unreadable) else { return };
                drop(seen);
                tracing::error!(%shard, reason, held_back, "search attributes cannot be read");
            }
            Notice::Unstarted(run, reason) => {
                let Some(held_back) = self.seen().admit_line(Topic::Unstarted) else {
                    return;
                };
                tracing::error!(
                    %run, %shard, reason, held_back,
                    "a child did not start: the store refused its first writes twice; its parent is notified"
                );
            }
            Notice::Senseless(effect) => {
                let Some(held_back) = self.seen().admit_line(Topic::Senseless) else {
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
        let held_back = seen.admit_line(Topic::Store(fault));
        drop(seen);
        if let Some(held_back) = held_back {
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
            drop(seen);
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
        let Some(held_back) = self.seen().admit_line(Topic::Halted) else { return };
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
        let logged = |(before, at): &(Step, Duration)| {
            before.resembles(&step) && now.saturating_sub(*at) < BETWEEN_LINES
        };
        if seen.clock.as_ref().is_some_and(logged) {
            return false;
        }
        seen.clock = Some((step, now));
        drop(seen);
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
        let damage = |found: &Option<(String, Duration)>| {
            let (reason, at) = found.clone()?;
            Some(Damage { reason, ago: now.saturating_sub(at) })
                .filter(|damage| damage.ago < DAMAGE_SHOWN)
        };
        let refusal = seen.refusal.clone().map(|(reason, at)| {
            let ago = now.saturating_sub(at);
            RefusedCommit { reason, ago }
        });
        Health {
            failed: None,
            store,
            damage: damage(&seen.damage),
            unreadable: damage(&seen.unreadable),
            refusal: refusal.filter(|refusal| refusal.ago < REFUSAL_SHOWN),
            set_aside: seen.set_aside.values().sum(),
            clock: clock.filter(|clock| clock.ago < CLOCK_SHOWN),
        }
    }

    fn seen(&self) -> MutexGuard<'_, Troubles> {
        lock(&self.0)
    }
}

/// An error as it is logged: a store may quote ids, which users choose.
fn shown(error: &dyn Display) -> String {
    visible(&error.to_string())
}

impl Troubles {
    /// Returns the number of suppressed lines if a line may be logged now; none if it must be
    /// suppressed.
    fn admit_line(&mut self, topic: Topic) -> Option<u64> {
        self.throttles.entry(topic).or_default().admit(monotonic_now())
    }
}

#[cfg(test)]
mod tests {
    use std::{io, sync::Arc};

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

    struct Log(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Log {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// What the work logs, one line each.
    fn logged(work: impl FnOnce()) -> Vec<String> {
        let log = Arc::<Mutex<Vec<u8>>>::default();
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_target(false)
            .without_time()
            .with_writer({
                let log = Arc::clone(&log);
                move || Log(Arc::clone(&log))
            })
            .finish();
        tracing::subscriber::with_default(subscriber, work);
        let log = log.lock().unwrap();
        str::from_utf8(&log).unwrap().lines().map(|line| line.trim().to_owned()).collect()
    }

    /// Each kind of trouble is one line, however often it is reported.
    #[test]
    fn trouble_is_logged_once_and_says_what_to_do() {
        let check = |expected: &str, report: &dyn Fn(&Watch)| {
            let watch = Watch::default();
            let lines = logged(|| (0..100).for_each(|_| report(&watch)));
            let [line] = &lines[..] else { panic!("{expected}: {lines:?}") };
            assert!(line.starts_with(expected), "{line}");
        };
        let refused = CommitError::Refused("a row is there".into());
        check("WARN a commit failed: the shard is reloaded shard=1 error=", &|watch| {
            watch.commit_failed(shard(1), &refused);
        });
        let unknown = CommitError::Unknown("the connection was lost".into());
        check("WARN a commit failed: the shard is reloaded", &|watch| {
            watch.commit_failed(shard(1), &unknown);
        });
        let read_only = "WARN the store does not accept writes: changes are refused, reads continue, \
            writes are retried error=";
        let unavailable = CommitError::Unavailable("no connection".into());
        for error in [full(), unavailable] {
            let notice = Notice::ReadOnly(error);
            check(read_only, &|watch| watch.notice(shard(1), &notice));
        }
        let damaged = ReadError::Corrupt("a page\nof \u{1b}[31m".into());
        check("ERROR the store is damaged: restore a backup error=", &|watch| {
            watch.read_failed(&damaged);
        });
        let busy = ReadError::Unavailable("busy".into());
        check("WARN the store cannot be read error=", &|watch| watch.read_failed(&busy));
        let set_aside = Notice::SetAside(RunId::MIN, "too large".into());
        check("ERROR a run was set aside: the store refused its writes twice; `abide", &|watch| {
            watch.notice(shard(1), &set_aside);
        });
        let unreadable = Notice::Unreadable(RunId::MIN, "an unknown event".into());
        check("ERROR a run cannot be read run=", &|watch| watch.notice(shard(1), &unreadable));
        let step = Step { by: Duration::from_secs(3600), forwards: true };
        check("WARN the system clock was set: timers follow the new time by=+3600", &|watch| {
            watch.clock_set(step);
        });
    }

    #[test]
    fn a_store_that_takes_writes_again_is_logged_once() {
        let watch = Watch::default();
        for number in [1, 2] {
            watch.notice(shard(number), &Notice::ReadOnly(full()));
        }
        let lines = logged(|| [1, 2, 2].into_iter().for_each(|number| watch.opened(shard(number))));
        assert_eq!(lines, ["INFO the store accepts writes again"]);
    }

    #[test]
    fn a_run_that_cannot_be_read_is_shown() {
        let watch = Watch::default();
        watch.notice(shard(1), &Notice::Unreadable(RunId::MIN, "an unknown event".into()));
        let unreadable = watch.health().unreadable.unwrap();
        assert_eq!(unreadable.reason, format!("run {}: an unknown event", RunId::MIN));
        assert!(watch.health().takes_writes(), "others are served");
    }

    #[test]
    fn a_topic_does_not_suppress_the_lines_of_another() {
        let mut seen = Troubles::default();
        assert_eq!(seen.admit_line(Topic::SetAside), Some(0));
        assert_eq!(seen.admit_line(Topic::SetAside), None);
        assert_eq!(seen.admit_line(Topic::Halted), Some(0));
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
    fn a_refused_commit_is_shown_for_a_while() {
        let watch = Watch::default();
        watch.commit_failed(shard(1), &CommitError::Unknown("the connection was lost".into()));
        assert_eq!(watch.health(), Health::default(), "it may be written");
        watch.commit_failed(shard(1), &CommitError::Refused("a row is too large".into()));
        let refusal = watch.health().refusal.unwrap();
        assert!(refusal.reason.contains("a row is too large"), "{refusal:?}");
        assert!(watch.health().takes_writes(), "other runs are served");
        let (reason, at) = watch.seen().refusal.take().unwrap();
        let Some(before) = at.checked_sub(REFUSAL_SHOWN) else { return };
        watch.seen().refusal = Some((reason, before));
        assert_eq!(watch.health().refusal, None);
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
