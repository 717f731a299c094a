//! A server in small: writes a history as a worker's turns and drawn inputs make it, so that replay
//! can be tested on generated histories.

use std::collections::BTreeMap;

use abide_core::{
    digest::Digest,
    event::*,
    failure::Failure,
    ids::{EventNumber, TimerId},
    replay::{Completion, Replay},
    retry::RetryState,
};
use abide_program::{Interpreter, Program};

use super::history::{History, at, run};

/// A run, its worker with a cached machine, and what each task was answered with.
pub(crate) struct Server {
    pub(crate) history: History,
    pub(crate) cached: Replay<Interpreter>,
    pub(crate) turns: Vec<Turn>,
    updates_count: u64,
}

/// One completed task.
pub(crate) struct Turn {
    /// How many events the worker was given.
    pub(crate) given: usize,
    pub(crate) updates: Vec<UpdateAdmitted>,
    pub(crate) completion: Completion,
}

/// What an input can be about.
enum Open {
    Timer(TimerId, EventNumber),
    Activity(EventNumber),
    Child(EventNumber),
    Signal(EventNumber),
    Cancel(EventNumber),
}

impl Server {
    /// A run whose history so far is `history`, which ends after a completed task or at the start.
    pub(crate) fn new(program: &Program, history: History) -> Self {
        let cached = Replay::new(program.code());
        Self { history, cached, turns: Vec::new(), updates_count: 0 }
    }

    pub(crate) fn closed(&self) -> bool {
        self.cached.code().closed()
    }

    /// Takes one step that `choice` draws: inputs, then a task that fails or is completed.
    pub(crate) fn step(&mut self, choices: &[u8]) {
        let (task, inputs) = choices.split_last().unwrap();
        for choice in inputs {
            self.input(*choice);
        }
        if task % 5 == 0 {
            self.history.start_task();
            self.history.push(TaskFailed::default());
        }
        let mut updates = Vec::new();
        if task % 3 == 0 {
            updates.push(self.update("accept"));
            updates.push(self.update("reject"));
        }
        self.task(updates);
    }

    /// Runs one task on the cached machine.
    pub(crate) fn task(&mut self, updates: Vec<UpdateAdmitted>) {
        self.history.start_task();
        let unseen = usize::try_from(self.cached.seen()).unwrap();
        self.cached.feed(self.history.events[unseen..].to_vec()).unwrap();
        let completion = self.cached.turn(&updates).unwrap();
        let given = self.history.events.len();
        self.history.complete_task(completion.flags.clone());
        completion.commands.iter().for_each(|command| self.history.record(command));
        self.turns.push(Turn { given, updates, completion });
    }

    fn update(&mut self, name: &str) -> UpdateAdmitted {
        self.updates_count += 1;
        let request = UpdateRequest { name: name.into(), ..UpdateRequest::default() };
        UpdateAdmitted { update: format!("update-{}", self.updates_count).into(), request }
    }

    fn input(&mut self, choice: u8) {
        let open = self.open();
        let choice = usize::from(choice);
        match open.get(choice % (open.len() + 2)) {
            Some(open) => self.answer(open, choice),
            None if choice.is_multiple_of(31) => self.history.push(RunCancelRequested::default()),
            None => {
                let name = if choice % 2 == 0 { "A" } else { "B" };
                let history = std::mem::take(&mut self.history);
                self.history = history.signal(name, &choice.to_string());
            }
        }
    }

    fn answer(&mut self, open: &Open, choice: usize) {
        match open {
            Open::Timer(timer, started) => {
                let (timer, started, fire_at) = (timer.clone(), *started, at(self.history.next()));
                if choice.is_multiple_of(7) {
                    let by = Mover::Outside {
                        identity: String::new(),
                        key: None,
                        received_at: fire_at,
                        asked: Digest::UNKNOWN,
                    };
                    self.history.push(TimerRescheduled { timer, fire_at, by });
                } else {
                    self.history.push(TimerFired { timer, started, fire_at });
                }
            }
            Open::Activity(scheduled) => {
                let scheduled = *scheduled;
                if choice.is_multiple_of(2) {
                    self.history.push(ActivityFailed { scheduled, ..ActivityFailed::default() });
                } else {
                    self.history
                        .push(ActivityCompleted { scheduled, ..ActivityCompleted::default() });
                }
            }
            Open::Child(initiated) => {
                let (initiated, run, failure) = (*initiated, run(), Failure::default());
                let retry_state = RetryState::PolicyNotSet;
                self.history.push(ChildFailed { initiated, run, failure, retry_state });
            }
            Open::Signal(initiated) => {
                self.history.push(ExternalSignalDelivered { initiated: *initiated });
            }
            Open::Cancel(initiated) => {
                let cause = DeliveryFailure::NotFound;
                self.history.push(ExternalCancelFailed { initiated: *initiated, cause });
            }
        }
    }

    /// What is open by history alone.
    fn open(&self) -> Vec<Open> {
        let mut open = Vec::new();
        let mut timers = BTreeMap::new();
        for Event { number, body, .. } in &self.history.events {
            let mut close = |closed: EventNumber| {
                open.retain(|open| match open {
                    Open::Timer(_, number)
                    | Open::Activity(number)
                    | Open::Child(number)
                    | Open::Signal(number)
                    | Open::Cancel(number) => *number != closed,
                });
            };
            match &body.fact {
                Fact::TimerFired(fired) => close(fired.started),
                Fact::TimerCancelled(cancelled) => close(cancelled.started),
                Fact::ActivityCompleted(completed) => close(completed.scheduled),
                Fact::ActivityFailed(failed) => close(failed.scheduled),
                Fact::ChildFailed(failed) => close(failed.initiated),
                Fact::ExternalSignalDelivered(delivered) => close(delivered.initiated),
                Fact::ExternalCancelFailed(failed) => close(failed.initiated),
                Fact::TimerStarted(started) if !started.spec.optional() => {
                    open.push(Open::Timer(started.spec.timer.clone(), *number));
                    timers.insert(started.spec.timer.clone(), *number);
                }
                // It may have fired: then it is armed again.
                Fact::TimerRescheduled(moved) if moved.by == Mover::Code => {
                    let started = timers[&moved.timer];
                    close(started);
                    open.push(Open::Timer(moved.timer.clone(), started));
                }
                Fact::ActivityScheduled(_) => open.push(Open::Activity(*number)),
                Fact::ChildInitiated(_) => open.push(Open::Child(*number)),
                Fact::ExternalSignalInitiated(_) => open.push(Open::Signal(*number)),
                Fact::ExternalCancelInitiated(_) => open.push(Open::Cancel(*number)),
                _ => {}
            }
        }
        open
    }
}
