//! Activities that a worker's workflows schedule on its own queue, though it has no activities. It
//! takes none from the queue, so without another worker they would wait in silence.

use std::{collections::BTreeSet, sync::Mutex};

use abide_core::{
    command::{Ask, Command},
    ids::WorkflowKey,
};

use super::{notice, shared::WorkerCore};
use crate::lock::lock;

/// Code may make up names: so many are warned of, and no more.
const MOST_NAMES: usize = 100;

/// The types of activities that were warned of.
#[derive(Default)]
pub(super) struct Unserved(Mutex<BTreeSet<String>>);

impl Unserved {
    /// Whether this is the first time for the name.
    fn first(&self, name: &str) -> bool {
        let mut names = lock(&self.0);
        names.len() < MOST_NAMES && !names.contains(name) && names.insert(name.to_owned())
    }
}

/// Warns, once for each type, of activities for which this worker has no code.
pub(super) fn warn_of(shared: &WorkerCore, workflow: &WorkflowKey, commands: &[Command]) {
    if shared.registry.activity_types().next().is_some() {
        // It takes activities, and says so when one arrives that it does not have.
        return;
    }
    let queue = &shared.queue;
    for command in commands {
        if let Ask::ScheduleActivity(spec) = &command.ask
            && spec.queue == *queue
            && shared.unserved.first(&spec.activity_type)
        {
            let name = &spec.activity_type;
            notice::warn(
                workflow,
                format_args!(
                    "no activity is registered with this worker of queue {queue}; if no other worker \
                     has {name}, it waits: add .activity({name}), or run a worker that has it"
                ),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_warned_of_once_and_not_without_end() {
        let unserved = Unserved::default();
        assert!(unserved.first("charge") && !unserved.first("charge"));
        let warned = (0..1_000).filter(|number| unserved.first(&number.to_string())).count();
        assert_eq!(warned, MOST_NAMES - 1);
    }
}
