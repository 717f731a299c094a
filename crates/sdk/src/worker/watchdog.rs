//! Detects workflow code that blocks its thread by a lock, a blocking call or an endless loop. The
//! other runs of the thread make no progress meanwhile, so it logs a warning.

use std::{
    sync::{Arc, Mutex, MutexGuard},
    time::{Duration, Instant},
};

use abide_core::ids::WorkflowKey;

use super::notice;
use crate::lock::lock;

/// The task that one workflow thread is running.
#[derive(Default)]
pub(super) struct Watched(Mutex<Option<WatchedTask>>);

struct WatchedTask {
    since: Instant,
    workflow: WorkflowKey,
    workflow_type: Option<Arc<str>>,
    reported: bool,
}

impl Watched {
    /// The thread starts a task of this workflow.
    pub(super) fn begin(&self, workflow: &WorkflowKey) {
        let task = WatchedTask {
            since: Instant::now(),
            workflow: workflow.clone(),
            workflow_type: None,
            reported: false,
        };
        *self.lock() = Some(task);
    }

    /// Records the workflow type of the current task.
    pub(super) fn runs(&self, workflow_type: &Arc<str>) {
        if let Some(task) = &mut *self.lock() {
            task.workflow_type = Some(Arc::clone(workflow_type));
        }
    }

    /// The workflow type of the current task, as far as it is known.
    pub(super) fn workflow_type(&self) -> Option<Arc<str>> {
        self.lock().as_ref()?.workflow_type.clone()
    }

    pub(super) fn end(&self) {
        *self.lock() = None;
    }

    /// Warns once if the task has taken longer than `deadline`.
    pub(super) fn check(&self, deadline: Duration) {
        if let Some(warning) = self.overdue(deadline) {
            tracing::warn!("{warning}");
            notice::without_log(format_args!("{warning}"));
        }
    }

    fn overdue(&self, deadline: Duration) -> Option<String> {
        let mut watched = self.lock();
        let task = watched.as_mut()?;
        if task.reported || task.since.elapsed() < deadline {
            return None;
        }
        task.reported = true;
        let name = task.workflow_type.as_deref().unwrap_or("of unknown type");
        Some(format!(
            "deadlock: workflow {name} ({}) blocks its thread for more than {deadline:?}; \
             workflow code must not block: move it to an activity",
            notice::shown(&task.workflow)
        ))
    }

    fn lock(&self) -> MutexGuard<'_, Option<WatchedTask>> {
        lock(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blocked_thread_is_reported_once_by_the_name_of_its_workflow() {
        let watched = Watched::default();
        assert_eq!(watched.overdue(Duration::ZERO), None);
        let workflow = WorkflowKey { namespace: "default".into(), workflow: "order-1".into() };
        watched.begin(&workflow);
        watched.runs(&"Order".into());
        assert_eq!(watched.overdue(Duration::from_secs(3600)), None);
        let warning = watched.overdue(Duration::ZERO).unwrap();
        assert!(warning.starts_with("deadlock: workflow Order (default/order-1) blocks"));
        assert_eq!(watched.overdue(Duration::ZERO), None);
        watched.end();
        watched.begin(&workflow);
        assert!(watched.overdue(Duration::ZERO).is_some());
    }
}
