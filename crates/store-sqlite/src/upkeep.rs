//! Chores beside the commits, which may fail without harm to them: updating the mark, and copying
//! the log into the file. Failures are counted, and logged at most once in ten seconds per chore.

use std::{fmt::Display, path::PathBuf, sync::Arc, time::Instant};

use abide_store::{counts::Counter, throttle::LogThrottle};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chore {
    /// Recording the number of rows in the mark.
    Mark,
    /// Copying the pages of the log into the file, so that the log can restart.
    Copy,
}

pub(crate) struct Upkeep {
    path: PathBuf,
    counter: Arc<Counter>,
    /// Of each chore's failures.
    throttles: [LogThrottle; 2],
}

impl Upkeep {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, counter: Arc::default(), throttles: Default::default() }
    }

    /// The counter of commits, which also counts failed chores.
    pub(crate) const fn counter(&self) -> &Arc<Counter> {
        &self.counter
    }

    pub(crate) fn failed(&mut self, chore: Chore, reason: impl Display) {
        self.counter.upkeep_failed();
        let admitted = self.throttles[chore as usize].admit(Instant::now());
        let Some(held_back) = admitted else { return };
        let path = self.path.display();
        match chore {
            Chore::Mark => tracing::warn!(
                %path, %reason, held_back,
                "the mark beside the store cannot be written: until it can, files that go missing are \
                 not noticed"
            ),
            Chore::Copy => tracing::warn!(
                %path, %reason, held_back,
                "cannot checkpoint the write-ahead log into the file: until it succeeds, the log grows"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_chore_that_fails_is_counted_and_each_kind_is_logged_by_itself() {
        let mut upkeep = Upkeep::new("store".into());
        let logged = |upkeep: &Upkeep| upkeep.throttles.map(|line| line != LogThrottle::default());
        upkeep.failed(Chore::Mark, "no space");
        assert_eq!(logged(&upkeep), [true, false]);
        upkeep.failed(Chore::Mark, "no space");
        upkeep.failed(Chore::Copy, "a reader");
        assert_eq!(logged(&upkeep), [true, true]);
        assert_eq!(upkeep.counter().counts().upkeep_failures, 3);
    }
}
