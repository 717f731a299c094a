//! The worker half: drives workflow code through a run's history and matches what it does with what
//! it did before.
//!
//! History is cut into groups: all that a completed task saw. For each group, code's time is set, the
//! group's events are delivered one by one, each to quiescence, then the updates that the task
//! accepted, and then the ends of local activities, in the order of their markers. The commands that
//! code emitted must be those whose events the task recorded; if not, the run is blocked by a
//! [`Mismatch`], which is final for this machine. The task that is still open has no recorded commands:
//! what code emits there is what the worker completes it with.
//!
//! Commands are compared by kind and identity, never by data. The cancel of something whose end was
//! already in the same group is withdrawn, live as on replay. A firing is void if code has moved the
//! timer past it for an event that stands before; the move is then sent, and arms the timer again. In the
//! same way a move from outside overtakes the moves of code before it. A task in which that made a
//! difference has [`Flag::HistoryOrder`]; older tasks are replayed as they were run: every firing stands.
//! Files: [`code`](Code) is the border to
//! workflow code, `group` cuts, `route` knows whose event it is, `matching` compares, `float` keeps
//! the optional timers that older histories lack, `shape` says what identifies a step.

mod code;
mod float;
mod group;
mod matching;
mod mismatch;
mod route;
mod shape;

use std::collections::BTreeSet;

pub use self::{
    code::{ActivityClose, ChildClose, Code, Step, Turn},
    mismatch::{Mismatch, RecordedEvent},
};
use self::{
    float::Floats,
    group::{Cutter, Group, Role, Start},
    matching::Matching,
    route::Route,
    shape::Shape,
};
use crate::{
    command::{Ask, Command},
    event::{BlockedReason, Event, Fact, Flag, Marker, MarkerKind, UpdateAdmitted, UpdateRequest},
    ids::{EventNumber, TimerId, UpdateId},
    time::Timestamp,
};

/// Drives one run's code. Feed it events in order, in any portions; take a turn when a task is open.
///
/// A machine can be kept between tasks and fed what came after [`Replay::seen`]. After a turn the
/// history must go on with the completion of that very task: its events are compared with what was
/// sent and code does not run again. If the server discarded the turn (it failed, timed out, or ended
/// with rejected updates only and left no event), throw the machine away and replay from the start:
/// code cannot be turned back.
#[derive(Clone, Debug)]
pub struct Replay<C> {
    code: C,
    cutter: Cutter,
    route: Route,
    floats: Floats,
    /// What code emitted in the current turn and no event was matched with yet.
    emitted: Vec<Command>,
    /// The start of the open task whose turn was taken.
    turned: Option<EventNumber>,
    /// History has all optional timers from here on.
    strict: bool,
    seen: EventNumber,
    acknowledged: EventNumber,
    failed: Option<Error>,
}

/// How a task is run.
struct Rules<'a> {
    /// What it has recorded.
    markers: &'a [&'a Marker],
    /// Its answer is in history.
    replaying: bool,
    /// Moves of timers take effect in the order of history.
    in_order: bool,
}

/// What a worker completes a task with.
#[derive(Clone, Debug, PartialEq)]
pub struct Completion {
    /// What code asks for, in order.
    pub commands: Vec<Command>,
    /// The replay rules that these commands follow, for the TaskCompleted.
    pub flags: BTreeSet<Flag>,
}

/// Why the machine cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The code must be repaired; the run waits for it.
    #[error(transparent)]
    Mismatch(#[from] Box<Mismatch>),
    /// Events are missing; feed the whole history to a new machine.
    #[error("event {expected} must come next, but event {found} came")]
    Gap {
        /// The number that must come next.
        expected: EventNumber,
        /// The number that came.
        found: EventNumber,
    },
    /// The open task was discarded; feed the whole history to a new machine.
    #[error("the task that was started at event {started} is no part of the history")]
    TurnDiscarded {
        /// The event of the task's start.
        started: EventNumber,
    },
    /// A turn needs a started task whose turn was not taken. The machine can still be fed.
    #[error("no task is open")]
    NoOpenTask,
}

impl<C: Code> Replay<C> {
    /// A machine at the very beginning of a run.
    pub fn new(code: C) -> Self {
        Self {
            code,
            cutter: Cutter::default(),
            route: Route::default(),
            floats: Floats::default(),
            emitted: Vec::new(),
            turned: None,
            strict: false,
            seen: 0,
            acknowledged: 0,
            failed: None,
        }
    }

    /// Takes the next events and replays every task that they complete. Events that were seen before
    /// are skipped. A completed task is replayed when the event that follows its commands is known:
    /// the next TaskScheduled or TaskStarted, or a call of [`Replay::settle`].
    pub fn feed(&mut self, events: impl IntoIterator<Item = Event>) -> Result<(), Error> {
        self.guarded(|machine| events.into_iter().try_for_each(|event| machine.push(event)))
    }

    /// Says that the history ends here, after the commands of a completed task: replays it. For
    /// queries, and to check the history of a closed run.
    pub fn settle(&mut self) -> Result<(), Error> {
        self.guarded(|machine| match machine.cutter.settle() {
            Some(group) => machine.replay(group),
            None => Ok(()),
        })
    }

    /// Runs the open task with the updates that came with it.
    pub fn turn(&mut self, updates: &[UpdateAdmitted]) -> Result<Completion, Error> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        if self.turn_in_flight().is_some() {
            return Err(Error::NoOpenTask);
        }
        let (start, inputs) = self.cutter.open().ok_or(Error::NoOpenTask)?;
        self.execute(&start, &inputs, Rules { markers: &[], replaying: false, in_order: true });
        for UpdateAdmitted { update, request } in updates {
            self.update(update.clone(), request);
        }
        self.turned = Some(start.number);
        Ok(self.completion())
    }

    /// A local activity of the open task, whose turn was taken, has ended: code goes on from there.
    /// [`Replay::completion`] then has what the task is completed with.
    pub fn local_resolved(&mut self, marker: &Marker) -> Result<(), Error> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        if self.turn_in_flight().is_none() {
            return Err(Error::NoOpenTask);
        }
        self.advance(Step::LocalResolved(marker));
        Ok(())
    }

    /// What code has asked for in this turn ends the run.
    pub fn closes(&self) -> bool {
        self.emitted.last().is_some_and(|command| command.ask.closes())
    }

    /// What the task whose turn was taken is completed with, as far as code has come.
    pub fn completion(&self) -> Completion {
        // On a copy: code may still go on in this turn, and end a wait whose timer floats. The timers
        // land for good when the completed task is matched.
        let landed = self.floats.clone().land(self.emitted.clone());
        let mut flags = BTreeSet::from([Flag::OptionalTimers]);
        flags.extend(self.route.order_counted().then_some(Flag::HistoryOrder));
        Completion {
            commands: landed.into_iter().map(|command| self.route.translate(command)).collect(),
            flags,
        }
    }

    /// The deadlines that were moved from outside since the last task, by code's ids, in order. Code is
    /// told with its next task; queries are answered with them at once.
    pub fn unseen_moves(&self) -> Vec<(TimerId, Timestamp)> {
        self.cutter.unseen().iter().filter_map(|event| self.route.outside_move(event)).collect()
    }

    /// The number of the last event that was fed.
    pub const fn seen(&self) -> EventNumber {
        self.seen
    }

    /// The last TaskCompleted that was fed and whose commands fit. A cached machine is good for a
    /// task that builds on this completion.
    pub const fn acknowledged(&self) -> EventNumber {
        self.acknowledged
    }

    /// The code, for queries.
    pub const fn code(&self) -> &C {
        &self.code
    }

    /// The code, for queries that need it mutable. They must not change what it does.
    pub const fn code_mut(&mut self) -> &mut C {
        &mut self.code
    }

    fn guarded(
        &mut self,
        action: impl FnOnce(&mut Self) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let result = action(self);
        self.failed = result.as_ref().err().cloned();
        result
    }

    fn push(&mut self, event: Event) -> Result<(), Error> {
        if event.number <= self.seen {
            return self.check_start(&event);
        }
        if event.number != self.seen + 1 {
            return Err(Error::Gap { expected: self.seen + 1, found: event.number });
        }
        if let Some(started) = self.turn_in_flight()
            && matches!(Role::of(&event.body.fact), Role::Failed | Role::Started(_))
        {
            return Err(Error::TurnDiscarded { started });
        }
        self.seen = event.number;
        match self.cutter.push(event) {
            Ok(Some(group)) => self.replay(group),
            Ok(None) => Ok(()),
            Err(event) => Err(self.unexplained(&event)),
        }
    }

    /// The start of a task may be fed again with its completion. If it is another start of the same
    /// number, the one that was fed before came to nothing.
    fn check_start(&self, event: &Event) -> Result<(), Error> {
        if self.cutter.contradicts(event) {
            return Err(Error::TurnDiscarded { started: event.number });
        }
        Ok(())
    }

    /// The start of the task whose turn was taken and whose completion was not fed yet.
    fn turn_in_flight(&self) -> Option<EventNumber> {
        self.turned.filter(|_| self.turned == self.cutter.started())
    }

    /// Runs a completed task, unless its turn was taken live, and matches what it did.
    fn replay(&mut self, group: Group) -> Result<(), Error> {
        if self.turned.take() != Some(group.start.number) {
            let markers: Vec<_> = group.commands.iter().filter_map(marker).collect();
            let in_order = group.in_order;
            let rules = Rules { markers: &markers, replaying: true, in_order };
            self.execute(&group.start, &group.inputs, rules);
            for event in &group.commands {
                if let Fact::UpdateAccepted(accepted) = &event.body.fact {
                    self.update(accepted.update.clone(), &accepted.request);
                }
            }
            for marker in markers {
                if marker.kind == MarkerKind::LocalActivity {
                    self.advance(Step::LocalResolved(marker));
                }
            }
        }
        self.strict |= group.strict;
        let mut emitted = std::mem::take(&mut self.emitted);
        emitted.retain(|command| command.ask.event_name().is_some());
        if self.strict {
            emitted = self.floats.land(emitted);
        }
        let matching = Matching {
            route: &mut self.route,
            floats: &mut self.floats,
            strict: self.strict,
            completed: group.completed,
            recorded: &group.commands,
            emitted: emitted.into(),
        };
        if let Err(mut mismatch) = matching.run() {
            mismatch.advice = mismatch.advice.take().or_else(|| self.code.advice());
            return Err(mismatch.into());
        }
        self.acknowledged = group.completed;
        Ok(())
    }

    /// Delivers what a task saw.
    fn execute(&mut self, start: &Start, inputs: &[Event], rules: Rules<'_>) {
        let Rules { markers, replaying, in_order } = rules;
        let turn = Turn {
            number: start.number,
            now: start.time,
            started: &start.task,
            replaying,
            in_order,
            markers,
            inputs,
        };
        let initiated = self.route.begin(start.time);
        self.advance(Step::Turn(turn));
        for step in initiated {
            self.advance(step);
        }
        for event in inputs {
            if in_order && self.route.overtaken(event) {
                continue;
            }
            self.route.withdraw(event, in_order, &mut self.emitted);
            if let Some(step) = self.route.step(event) {
                self.carry_over(&step);
                self.advance(step);
            }
        }
    }

    /// A signal or update that comes after code has continued as new, in the same turn, is one that code
    /// has not seen: the next run gets it.
    fn carry_over(&mut self, step: &Step<'_>) {
        let last = self.emitted.last_mut().map(|last| &mut last.ask);
        let Some(Ask::ContinueAsNew(next)) = last else { return };
        #[expect(clippy::wildcard_enum_match_arm, reason = "other steps end with their run")]
        match step {
            Step::Signal { number, .. } => next.signals.push(*number),
            Step::Update { update, .. } => next.updates.push(update.clone()),
            _ => {}
        }
    }

    /// Delivers an update, unless code knows it from another run.
    fn update(&mut self, update: UpdateId, request: &UpdateRequest) {
        if !self.route.knows_update(&update) {
            self.advance(Step::Update { update, request });
        }
    }

    fn advance(&mut self, step: Step<'_>) {
        for command in self.code.advance(step) {
            if self.route.emit(&command) {
                self.emitted.push(command);
            }
        }
    }

    /// The mismatch of an event that no task of this history can have caused.
    fn unexplained(&self, event: &Event) -> Error {
        let text = Shape::of_event(&self.route, &event.body.fact).to_string();
        Error::from(Box::new(Mismatch {
            reason: BlockedReason::HistoryShape,
            at: event.number,
            expected: Vec::new(),
            recorded: vec![RecordedEvent { number: event.number, text }],
            before: Vec::new(),
            expected_condition: None,
            recorded_condition: None,
            advice: None,
        }))
    }
}

fn marker(event: &Event) -> Option<&Marker> {
    if let Fact::MarkerRecorded(recorded) = &event.body.fact {
        return Some(&recorded.marker);
    }
    None
}
