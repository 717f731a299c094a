//! Clients that send what a run waits for, now or at the last moment: so waits end, and race with
//! their deadlines.

use abide_core::{
    event::{SignalReceived, UpdateRequest},
    ids::Key,
    list::WaitKind,
    operation::{RunOperation, RunTarget, Signal, Update, UpdateWait},
    payload::{Extension, Payload},
    run::{Movable, Run, ShownWait},
};

use abide_sdk::{PayloadValue, approval::Answer};

use super::{Event, World, clients::exactly, requests::signal};
use crate::{
    code::{APPROVERS, OUTSIDER},
    programs::{Goal, SIGNALS},
    schedule::{MILLIS, Micros, SECOND},
};

/// How close its deadline must be for a client to send at the last moment.
const SOON: Micros = 30 * SECOND;

/// How long before or after the deadline of a wait that client sends.
const MOMENT: Micros = 25 * MILLIS;

impl World {
    /// Sends what some run waits for. For the last moment: returns nothing now, and plans it.
    pub(super) fn draw_help(&mut self, number: usize) -> Option<RunOperation> {
        let runs = self.ledger.stories.values().map(|story| &story.run).filter(|run| run.open());
        let waits = |run: &Run| {
            let target = exactly(run.workflow.clone(), run.id);
            run.shown_waits().into_iter().map(move |wait| (target.clone(), wait))
        };
        let candidates: Vec<_> = runs.flat_map(waits).collect();
        let (target, wait) = self.rng.pick(&candidates)?.clone();
        let ends = self.when_for(&target.workflow, wait.until);
        let call = self.bring(number, target, &wait)?;
        let soon = ends > self.now && ends < self.now + SOON;
        if !soon || self.rng.chance(400) {
            return Some(call);
        }
        let at = (ends + self.rng.below(2 * MOMENT)).saturating_sub(MOMENT).max(self.now);
        let operation = self.hold_back(call);
        self.schedule.plan(at, Event::Client(operation));
        None
    }

    fn bring(
        &mut self,
        number: usize,
        target: RunTarget,
        wait: &ShownWait,
    ) -> Option<RunOperation> {
        let key = Key::from(format!("help{number}"));
        let name = match wait.kind {
            WaitKind::Signal if wait.name.is_empty() => {
                self.rng.pick(&SIGNALS).copied().unwrap_or("go")
            }
            WaitKind::Signal => &wait.name,
            WaitKind::Approval => {
                let approval = wait.details.as_ref()?.approval.as_ref()?;
                return self.decide(number, target, &approval.request, &approval.update);
            }
            WaitKind::Condition => match Goal::of_key(&wait.name)? {
                Goal::Votes(_) => return Some(vote(number, target)),
                Goal::Marks(_) | Goal::TwoMarks | Goal::Slept => "mark",
            },
            WaitKind::Timer if self.rng.chance(400) => return Some(self.pull(number, target)),
            // Schedules have no wait that a helper could end.
            WaitKind::Schedule => return None,
            WaitKind::Timer | WaitKind::ActivityRetry | WaitKind::ChildRetry => {
                let what = Movable::Wait(wait.key.clone());
                return Some(self.move_to_some_end(number, target, what));
            }
        };
        Some(Signal { target, signal: signal(name, key), extension: Extension::new() }.into())
    }

    /// Sends a signal whose handler moves a deadline to about now.
    fn pull(&mut self, number: usize, target: RunTarget) -> RunOperation {
        let now = self.clock_for(&target.workflow).unix_millis();
        let (before, span) = if self.rng.chance(500) { (400, 600) } else { (3000, 4000) };
        let at = (now + self.rng.below(span)).saturating_sub(before);
        let key = Key::from(format!("help{number}"));
        let input = vec![Payload::new(format!("{at} {key}"))];
        let signal = SignalReceived { input, ..signal("pull", key) };
        Signal { target, signal, extension: Extension::new() }.into()
    }

    /// Clients move deadlines of some runs while workers have their tasks.
    pub(super) fn pull_in_flight(&mut self) {
        let in_memory = |run: &&Run| {
            let mut machines = self.slots.values().filter_map(|slot| slot.machine.peek(run.id));
            machines.any(|run| run.volatile.turn.is_some() && !run.timers.is_empty())
        };
        let runs = self.ledger.stories.values().map(|story| &story.run).filter(in_memory);
        let targets: Vec<_> = runs.map(|run| exactly(run.workflow.clone(), run.id)).collect();
        for target in targets {
            let number = self.operations.len();
            let pull = self.pull(number, target);
            let operation = self.hold_back(pull);
            let later = self.rng.below(100 * MILLIS);
            self.plan_in(later, Event::Client(operation));
        }
    }

    /// Decides a request for approval: approve, decline or hand over; some people may not.
    fn decide(
        &mut self,
        number: usize,
        target: RunTarget,
        request: &str,
        update: &str,
    ) -> Option<RunOperation> {
        let key = Key::from(format!("help{number}"));
        let approver = match self.rng.chance(150) {
            true => OUTSIDER,
            false => self.rng.pick(&APPROVERS)?,
        };
        let answer = match self.rng.weighted(&[6, 3, 1]) {
            0 => Answer::approve(request, approver),
            1 => Answer::reject(request, approver),
            _ => Answer::delegate(request, approver, "dora"),
        };
        let input = answer.comment(key.as_str()).to_payload().ok()?.into_iter().collect();
        if self.rng.chance(150) {
            let decision = SignalReceived { input, ..signal("decision", key) };
            return Some(Signal { target, signal: decision, extension: Extension::new() }.into());
        }
        let request = UpdateRequest { name: update.into(), input, ..UpdateRequest::default() };
        let (update, until) = (key.as_str().into(), UpdateWait::Completed);
        Some(Update { target, update, request, until, wait_while_blocked: true }.into())
    }
}

fn vote(number: usize, target: RunTarget) -> RunOperation {
    let input = vec![Payload::new(format!("helper{number}"))];
    let request = UpdateRequest { name: "vote".into(), input, ..UpdateRequest::default() };
    let (update, until) = (format!("help{number}").into(), UpdateWait::Completed);
    Update { target, update, request, until, wait_while_blocked: true }.into()
}
