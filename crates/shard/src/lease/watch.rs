//! How long other nodes' rows have stayed unchanged, by this node's clock. Every renewal increments
//! the version of a row, so the version is watched, also of rows that cannot be decoded. A node
//! trusts its lease for as long as its row states, so no other node declares it dead earlier.

use std::{collections::BTreeMap, time::Duration};

/// A row as it was just read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sight<'a> {
    pub(super) name: &'a str,
    pub(super) version: u64,
    /// How long the row must stay unchanged for its node to count as dead.
    pub(super) lease: Duration,
}

#[derive(Debug)]
struct NodeWatch {
    version: u64,
    lease: Duration,
    seen_at: Duration,
    unchanged: Duration,
    /// The row was seen to change, so a live process renews it.
    renewed: bool,
}

/// What was observed of each row, by name.
#[derive(Debug, Default)]
pub(super) struct Watches(BTreeMap<String, NodeWatch>);

impl Watches {
    /// Records the rows as they are. The time since the last read counts only up to `watched_max`:
    /// after a longer gap the row was not observed all the time.
    pub(super) fn see<'a>(
        &mut self,
        rows: impl Iterator<Item = Sight<'a>>,
        monotonic: Duration,
        watched_max: Duration,
    ) {
        let mut before = std::mem::take(&mut self.0);
        for Sight { name, version, lease } in rows {
            let (unchanged, renewed) = match before.remove(name) {
                Some(watch) if watch.version == version => {
                    let since = monotonic.saturating_sub(watch.seen_at);
                    (watch.unchanged + since.min(watched_max), watch.renewed)
                }
                Some(_) => (Duration::ZERO, true),
                None => (Duration::ZERO, false),
            };
            let watch = NodeWatch { version, lease, seen_at: monotonic, unchanged, renewed };
            self.0.insert(name.to_owned(), watch);
        }
    }

    /// Names of the rows that stayed unchanged for half of a lease: two renewals are missing then.
    pub(super) fn silent(&self) -> impl Iterator<Item = &str> {
        let long = self.0.iter().filter(|(_, watch)| watch.unchanged >= watch.lease / 2);
        long.map(|(name, _)| name.as_str())
    }

    /// Whether the row was seen to change.
    pub(super) fn renewed(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|watch| watch.renewed)
    }

    /// How much longer the row must stay unchanged until a whole lease has passed.
    pub(super) fn left(&self, name: &str) -> Option<Duration> {
        self.0.get(name).map(|watch| watch.lease.saturating_sub(watch.unchanged))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_silent_and_then_dead_by_its_own_lease_unless_it_is_renewed() {
        let second = Duration::from_secs(1);
        let row = |name, version, lease| Sight { name, version, lease };
        let mut watches = Watches::default();
        for look in 0..=2 {
            let rows = [
                row("renewed", u64::from(look), 4 * second),
                row("silent", 7, 4 * second),
                row("patient", 7, 5 * second),
            ];
            watches.see(rows.into_iter(), look * second, second);
        }
        assert_eq!(watches.silent().collect::<Vec<_>>(), ["silent"]);
        let left = ["renewed", "silent", "patient"].map(|name| watches.left(name));
        assert_eq!(left, [4, 2, 3].map(|seconds| Some(seconds * second)));
        assert!(watches.renewed("renewed") && !watches.renewed("silent"));
    }
}
