//! Which queues a client has started runs on, and when it last looked whether workers serve them. It
//! decides which start looks, so that most starts cost one lookup, and that a queue without workers is
//! warned about once.

use std::{collections::BTreeMap, sync::Mutex, time::Duration};

use abide_core::ids::NamespaceId;
use tokio::time::Instant;

use crate::lock::lock;

/// A start looks again after this time.
const CHECKED_FOR: Duration = Duration::from_secs(60);

/// How many queues are known; starts on others do not look. A program that uses more has queues of
/// machines or users, and would warn of each.
const QUEUES_MAX: usize = 1000;

/// The queues of a client and its clones.
#[derive(Default)]
pub(super) struct QueueChecks(Mutex<Queues>);

#[derive(Default)]
struct Queues {
    by_name: BTreeMap<NamespaceId, BTreeMap<String, Known>>,
    count: usize,
}

#[derive(Default)]
struct Known {
    /// When the last look has ended; none while one is in flight or if none was made.
    checked_at: Option<Instant>,
    looking: bool,
    warned: bool,
}

impl QueueChecks {
    /// Whether a start on this queue is to look for workers. Then it must call [`Self::end`].
    pub(super) fn begin(&self, namespace: &NamespaceId, queue: &str) -> bool {
        let mut queues = lock(&self.0);
        let Some(known) = queues.known(namespace, queue) else { return false };
        let recent = known.checked_at.is_some_and(|at| at.elapsed() < CHECKED_FOR);
        if known.looking || recent {
            return false;
        }
        known.looking = true;
        true
    }

    /// Ends a look. Without an answer the next start looks again.
    pub(super) fn end(&self, namespace: &NamespaceId, queue: &str, answer: Option<Taken>) {
        let mut queues = lock(&self.0);
        let Some(known) = queues.known(namespace, queue) else { return };
        known.looking = false;
        known.checked_at = answer.map(|_| Instant::now());
        if answer == Some(Taken::Yes) {
            known.warned = false;
        }
    }

    /// Whether to warn of this queue: not if that was done, and no task was taken since.
    pub(super) fn warn(&self, namespace: &NamespaceId, queue: &str) -> bool {
        let mut queues = lock(&self.0);
        let Some(known) = queues.known(namespace, queue) else { return true };
        !std::mem::replace(&mut known.warned, true)
    }
}

/// Whether a worker has taken a run's task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    Yes,
    No,
}

impl Queues {
    /// What is known of a queue; none if there is no room for a new one.
    fn known(&mut self, namespace: &NamespaceId, queue: &str) -> Option<&mut Known> {
        if !self.by_name.get(namespace).is_some_and(|queues| queues.contains_key(queue)) {
            if self.count == QUEUES_MAX {
                return None;
            }
            self.count += 1;
            let queues = self.by_name.entry(namespace.clone()).or_default();
            queues.insert(queue.to_owned(), Known::default());
        }
        self.by_name.get_mut(namespace)?.get_mut(queue)
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    fn begin(checks: &QueueChecks, queue: &str) -> bool {
        checks.begin(&"default".into(), queue)
    }

    fn end(checks: &QueueChecks, queue: &str, answer: Option<Taken>) {
        checks.end(&"default".into(), queue, answer);
    }

    #[tokio::test(start_paused = true)]
    async fn one_start_looks_at_a_time_and_then_none_for_a_minute() {
        let checks = QueueChecks::default();
        assert!(begin(&checks, "orders"));
        assert!(!begin(&checks, "orders"), "one looks already");
        assert!(begin(&checks, "letters"));
        end(&checks, "orders", Some(Taken::Yes));
        assert!(!begin(&checks, "orders"));
        advance(CHECKED_FOR).await;
        assert!(begin(&checks, "orders"));
        end(&checks, "orders", None);
        assert!(begin(&checks, "orders"), "the last look saw nothing");
    }

    #[test]
    fn a_warning_is_not_repeated_until_a_task_was_taken() {
        let checks = QueueChecks::default();
        let warn = || checks.warn(&"default".into(), "orders");
        assert!(warn());
        end(&checks, "orders", Some(Taken::No));
        assert!(!warn());
        end(&checks, "orders", None);
        assert!(!warn());
        end(&checks, "orders", Some(Taken::Yes));
        assert!(warn());
    }

    #[test]
    fn queues_without_number_are_not_all_kept() {
        let checks = QueueChecks::default();
        let known = (0..QUEUES_MAX).all(|queue| begin(&checks, &queue.to_string()));
        assert!(known && !begin(&checks, "one more"));
        assert!(checks.warn(&"default".into(), "one more"), "a result that waits still warns");
    }
}
