//! Chores beside the commits, which may fail without harm to them: updating the mark, and copying
//! the log into the file. Failures are counted, and logged at most once in ten seconds per chore.

use std::{
    fmt::Display,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use abide_store::counts::Counter;

const BETWEEN_LINES: Duration = Duration::from_secs(10);

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
    /// When each chore's failure was last logged.
    logged: [Option<Instant>; 2],
}

impl Upkeep {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, counter: Arc::default(), logged: [None; 2] }
    }

    /// The counter of commits, which also counts failed chores.
    pub(crate) const fn counter(&self) -> &Arc<Counter> {
        &self.counter
    }

    pub(crate) fn failed(&mut self, chore: Chore, reason: impl Display) {
        self.counter.upkeep_failed();
        let logged = &mut self.logged[chore as usize];
        if logged.is_some_and(|at| at.elapsed() < BETWEEN_LINES) {
            return;
        }
        *logged = Some(Instant::now());
        let path = self.path.display();
        match chore {
            Chore::Mark => tracing::warn!(
                %path, %reason,
                "the mark beside the store cannot be written: until it can, files that go missing are \
                 not noticed"
            ),
            Chore::Copy => tracing::warn!(
                %path, %reason,
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
        upkeep.failed(Chore::Mark, "no space");
        assert_eq!((upkeep.logged[0].is_some(), upkeep.logged[1].is_some()), (true, false));
        let first = upkeep.logged[0];
        upkeep.failed(Chore::Mark, "no space");
        assert_eq!(upkeep.logged[0], first, "a second line would come too soon");
        upkeep.failed(Chore::Copy, "a reader");
        assert!(upkeep.logged[1].is_some());
        assert_eq!(upkeep.counter().counts().upkeep_failures, 3);
    }
}
