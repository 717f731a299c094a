//! The end of a world: faults stop, workers are healthy, and time passes until nothing is left to
//! do. Then everything is checked, and again after a crash and recovery.

use std::collections::BTreeMap;

use abide_core::{
    event::TaskFailureCause,
    ids::RunId,
    limits::TASK_BACKOFF_MAX,
    operation::{Cancel, DeleteSchedule, Terminate},
    run::Task,
    schedule::id_of,
    time::Timestamp,
};
use bytes::Bytes;

use super::{
    World,
    clients::{Operation, exactly},
};
use crate::{
    checks::{
        Check, Checked, Violation, borders, chains, cleanups, families, ledger::Story, promises,
        replays, rows, schedules, searches, settled, updates,
    },
    names::shards,
    programs::Build,
    schedule::{Micros, SECOND},
};

/// Maximum number of clock jumps until everything has settled.
const ROUNDS_MAX: u32 = 400;

impl World {
    /// Lets everything settle, checks it, and repeats that after a crash.
    pub(super) fn settle(&mut self) -> Checked {
        self.calm = true;
        self.plan_corrections();
        self.heal();
        let all_new = self.rng.chance(500);
        for index in 0..self.workers.len() {
            let outdated =
                self.workers.get(index).is_some_and(|worker| worker.build != Build::Right);
            if outdated || all_new {
                self.kill(index, Build::Right)?;
            }
            self.stop_reading(index);
        }
        self.run_until_settled()?;
        self.end_some();
        self.run_until_settled()?;
        self.judge()?;
        self.judge_credit()?;
        let before = self.states();
        self.crash()?;
        self.run_until(self.now + Self::longest_delay())?;
        self.run_until_settled()?;
        self.judge()?;
        self.judge_credit()?;
        if self.states() != before {
            return Err(Violation::new(Check::Recovery, "a crash at rest changed a run"));
        }
        replays::every_history_replays(&self.ledger, &self.catalog)
    }

    /// Lets time pass, with jumps over periods in which nothing happens.
    fn run_until_settled(&mut self) -> Checked {
        for _ in 0..ROUNDS_MAX {
            self.unpause_all();
            self.end_hopeless();
            self.run_until(self.now + Self::longest_delay())?;
            if self.left_to_do().is_none() {
                return Ok(());
            }
            self.skip_ahead();
        }
        settled::every_run_continued(&self.ledger)?;
        families::no_effect_is_in_flight(&self.ledger)?;
        let left = self.left_to_do().unwrap_or_default();
        Err(Violation::new(Check::Liveness, format!("there is no end of it: {left}")))
    }

    /// Moves clocks to a second before the next due time, but not past the longest delay that the
    /// store does not know.
    fn skip_ahead(&mut self) {
        let next = self.next_due().saturating_sub(self.now + SECOND);
        let most = Micros::try_from(TASK_BACKOFF_MAX.as_micros()).unwrap_or(SECOND);
        let jump = if next == 0 { 10 * SECOND } else { next.min(most) };
        self.skip(jump);
    }

    fn left_to_do(&self) -> Option<String> {
        for shard in shards() {
            if let Some(task) = self.tables.tasks(shard, None, 1).first() {
                return Some(format!("task {task:?}"));
            }
            if let Some(due) = self.tables.due(shard, None, Timestamp::NEVER, 1).first() {
                return Some(format!("due {due:?}"));
            }
            if let Some(effect) = self.tables.outbox(shard, None, 1).first() {
                return Some(format!("effect {} of {}", effect.number, effect.run));
            }
            if !self.nodes.iter().any(|node| node.shards.contains_key(&shard)) {
                return Some(format!("shard {shard} has no owner"));
            }
        }
        // A client that waited for the end of a wait sends its request also if clocks skipped that end.
        if self.operations.iter().any(Operation::held_back) {
            return Some("a client has a request for later".to_owned());
        }
        let waits = |story: &&Story| story.run.open() && (story.run.paused || story.run.unseen);
        let story = self.ledger.stories.values().find(waits)?;
        Some(format!("run {} is paused, or has something to show", story.run.id))
    }

    /// When the next row of the due index is due, according to the clock.
    fn next_due(&self) -> Micros {
        let due = |shard| self.tables.due(shard, None, Timestamp::NEVER, 1).into_iter().next();
        let next = shards().filter_map(due).map(|row| row.due).min();
        next.map_or(0, |due| self.when(due))
    }

    /// Ends some of the runs that would wait forever, so that families end too.
    fn end_some(&mut self) {
        let open: Vec<_> = self
            .ledger
            .stories
            .values()
            .filter(|story| story.run.open())
            .map(|story| (story.run.workflow.clone(), story.run.id))
            .collect();
        for (workflow, run) in open {
            let (reason, identity) = (String::from("the world ends"), String::from("client"));
            let target = exactly(workflow, run);
            if id_of(&target.workflow.workflow).is_some() {
                if self.rng.chance(300) {
                    let (workflow, key) = (target.workflow, None);
                    self.ask_now(DeleteSchedule { workflow, identity, key });
                }
                continue;
            }
            match self.rng.below(3) {
                0 => {
                    let (details, key) = (Vec::new(), None);
                    self.ask_now(Terminate { target, reason, identity, details, key });
                }
                1 => self.ask_now(Cancel { target, reason, identity, key: None }),
                _ => {}
            }
        }
    }

    /// Ends runs whose code exceeds the limits of this world.
    fn end_hopeless(&mut self) {
        let hopeless = |task: &Task| match task {
            Task::Retry(retry) => retry.cause == TaskFailureCause::BadCommand && retry.attempt > 3,
            Task::Idle | Task::Scheduled { .. } => false,
        };
        let runs: Vec<_> = self
            .ledger
            .stories
            .values()
            .filter(|story| story.run.open() && hopeless(&story.run.task))
            .map(|story| (story.run.workflow.clone(), story.run.id))
            .collect();
        for (workflow, run) in runs {
            let (reason, identity) = (String::from("hopeless"), String::from("client"));
            let target = exactly(workflow, run);
            let (details, key) = (Vec::new(), None);
            self.ask_now(Terminate { target, reason, identity, details, key });
        }
    }

    /// No credit of workers is lost. Messages may still be in flight, because shards move at rest
    /// too.
    fn judge_credit(&mut self) -> Checked {
        if self.no_credit_is_lost().is_ok() {
            return Ok(());
        }
        self.run_until(self.now + 2 * SECOND)?;
        self.no_credit_is_lost()
    }

    /// Checks everything that can only be checked at rest.
    fn judge(&self) -> Checked {
        rows::rows_are_the_projection(&self.ledger, &self.tables, shards())?;
        searches::find_what_was_set(&self.ledger, &self.tables)?;
        rows::snapshots_and_tails_fold_to_the_same(&self.ledger, &self.tables)?;
        for slot in self.slots.values() {
            rows::memory_is_the_fold(&self.ledger, &slot.machine)?;
            slot.no_match_is_left()?;
        }
        self.workers_are_answered()?;
        settled::every_run_continued(&self.ledger)?;
        families::no_effect_is_in_flight(&self.ledger)?;
        chains::runs_are_chains(&self.ledger)?;
        families::parents_and_children_agree(&self.ledger)?;
        families::effects_take_place_once(&self.ledger)?;
        updates::updates_are_carried_out_once(&self.ledger)?;
        schedules::schedules_keep_their_times(&self.ledger)?;
        borders::commands_stay_within(&self.ledger, &self.accepted)?;
        cleanups::cleanup_runs_once(&self.ledger, &self.catalog)?;
        promises::nothing_is_applied_twice(&self.ledger)?;
        self.promises.nothing_is_lost(&self.ledger)?;
        self.promises.rejected_leave_nothing(&self.ledger)
    }

    fn states(&self) -> BTreeMap<RunId, Bytes> {
        let stories = self.ledger.stories.iter();
        stories.map(|(run, story)| (*run, story.run.to_snapshot())).collect()
    }
}
