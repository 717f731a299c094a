//! Following what a run waits for: one change after the other, told once each, whoever carries the calls.

use std::sync::Arc;

use crate::{
    call::{Call, RunTarget, RunWaits},
    run::ShownWait,
};

/// What a follower of a run's waits knows.
#[derive(Clone, Debug)]
pub struct FollowedWaits {
    target: RunTarget,
    log_row: u64,
    told: Option<Arc<Vec<ShownWait>>>,
}

impl FollowedWaits {
    /// Follows from after this row of the run's log; zero begins with the present.
    pub const fn new(target: RunTarget, after: u64) -> Self {
        Self { target, log_row: after, told: None }
    }

    /// What to ask next.
    pub fn call(&self) -> Call {
        Call::AwaitWaits(self.target.clone(), self.log_row)
    }

    /// Takes an answer, and says whether it is to be told: it is the end, or not what was told before.
    pub fn news(&mut self, answer: &RunWaits) -> bool {
        // The current run may be another one soon; this stays with the one it began with.
        self.target.run = Some(answer.run);
        self.log_row = answer.log_row;
        let told = self.told.replace(Arc::clone(&answer.waits));
        answer.closed || told.as_ref() != Some(&answer.waits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ids::{RunId, WorkflowKey},
        time::Timestamp,
    };

    #[test]
    fn a_change_is_told_once_and_the_end_always() {
        let workflow = WorkflowKey { namespace: "default".into(), workflow: "order".into() };
        let run = RunId::from_parts(Timestamp::EPOCH, 1);
        let answer = |log_row, closed| RunWaits { run, log_row, waits: Arc::default(), closed };
        let mut followed = FollowedWaits::new(RunTarget { workflow, run: None }, 0);
        assert!(followed.news(&answer(3, false)));
        assert!(!followed.news(&answer(5, false)), "it is as it was");
        let Call::AwaitWaits(target, after) = followed.call() else { panic!() };
        assert_eq!((target.run, after), (Some(run), 5));
        assert!(followed.news(&answer(6, true)));
    }
}
