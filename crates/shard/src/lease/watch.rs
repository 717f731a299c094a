//! How long other nodes' rows have stayed as they are, by one's own clock. The version of a row
//! grows with every renewal, so it is what is watched, also of rows that cannot be read.

use std::{collections::BTreeMap, time::Duration};

use abide_store::rows::RegistryRow;

#[derive(Debug)]
struct Watch {
    version: u64,
    seen_at: Duration,
    unchanged: Duration,
}

/// What is known of each row.
#[derive(Debug, Default)]
pub(super) struct Watches(BTreeMap<String, Watch>);

impl Watches {
    /// Takes note of the rows as they are. The time since the last look counts only up to
    /// `watched_max`: whoever looked away for long has not seen the row unchanged for so long.
    pub(super) fn see(&mut self, rows: &[RegistryRow], monotonic: Duration, watched_max: Duration) {
        let mut before = std::mem::take(&mut self.0);
        for row in rows {
            let unchanged = match before.remove(&row.name) {
                Some(watch) if watch.version == row.version => {
                    let since = monotonic.saturating_sub(watch.seen_at);
                    watch.unchanged + since.min(watched_max)
                }
                Some(_) | None => Duration::ZERO,
            };
            let watch = Watch { version: row.version, seen_at: monotonic, unchanged };
            self.0.insert(row.name.clone(), watch);
        }
    }

    /// Names of the rows that were seen unchanged for so long.
    pub(super) fn unchanged(&self, time: Duration) -> impl Iterator<Item = &str> {
        let long = self.0.iter().filter(move |(_, watch)| watch.unchanged >= time);
        long.map(|(name, _)| name.as_str())
    }

    /// How much longer the row must stay as it is to have been seen unchanged for a whole lease.
    pub(super) fn left(&self, name: &str, lease: Duration) -> Option<Duration> {
        self.0.get(name).map(|watch| lease.saturating_sub(watch.unchanged))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_is_renewed_is_not_unchanged() {
        let second = Duration::from_secs(1);
        let row = |name: &str, version| RegistryRow {
            name: name.into(),
            version,
            value: Default::default(),
        };
        let mut watches = Watches::default();
        for look in 0..=2 {
            let rows = [row("renewed", u64::from(look)), row("silent", 7)];
            watches.see(&rows, look * second, second);
        }
        assert_eq!(watches.unchanged(2 * second).collect::<Vec<_>>(), ["silent"]);
        assert_eq!(watches.unchanged(3 * second).count(), 0);
    }
}
