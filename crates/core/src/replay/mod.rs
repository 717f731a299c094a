//! The worker's machine: drives workflow code through a run's history and checks that it does what
//! it did before.
//!
//! History is split into groups: all that a completed task saw. For each group, the machine sets
//! code's time, delivers the group's events one by one, each to quiescence, then the updates that
//! the task accepted, and then the results of local activities, in the order of their markers. The
//! commands that code emits must be those whose events the task recorded; otherwise the run is
//! blocked by a [`Mismatch`], which is final for this machine. The open task has no recorded
//! commands: the worker completes it with what code emits there.
//!
//! Commands are compared by kind and identity, never by data. The cancel of something that already
//! ended in the same group is withdrawn, live as on replay. A firing is void if code, reacting to
//! an earlier event, has rescheduled the timer past it; the reschedule is then sent, and arms the
//! timer again. Likewise a reschedule from outside overrides earlier ones by code. A task in which
//! that made a difference has [`Flag::HistoryOrder`]; older tasks are replayed as they ran: every
//! firing counts.
//!
//! Files: [`code`](Code) is the interface to workflow code, `group` splits the history, `route`
//! maps events to code's ids, `matching` compares, `float` keeps optional timers that older
//! histories lack, `shape` defines what identifies a step.

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
    group::{Cutter, EventRole, Group, GroupStart},
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

/// Drives the code of one run. Feed it events in order, in portions of any size, and take a turn
/// when a task is open.
///
/// A machine can be kept between tasks and fed with the events after [`Replay::seen`]. After a
/// turn, history must continue with the completion of that very task: its events are compared with
/// what was sent, and code does not run again. If the server discarded the turn (it failed, timed
/// out, or only rejected updates and left no event), drop the machine and replay from the start:
/// code cannot be rolled back.
#[derive(Clone, Debug)]
pub struct Replay<C> {
    code: C,
    cutter: Cutter,
    route: Route,
    floats: Floats,
    /// Commands of the current turn that are not yet matched with an event.
    emitted: Vec<Command>,
    /// Start of the open task whose turn was taken.
    turned: Option<EventNumber>,
    /// Whether history has all optional timers from here on.
    strict: bool,
    seen: EventNumber,
    acknowledged: EventNumber,
    failed: Option<Error>,
}

struct Rules<'a> {
    markers: &'a [&'a Marker],
    accepted: &'a [&'a UpdateId],
    /// Whether its commands are in history.
    replaying: bool,
    /// Whether reschedules take effect in the order of history.
    in_order: bool,
}

/// What a worker completes a task with.
#[derive(Clone, Debug, PartialEq)]
pub struct Completion {
    /// Commands, in order.
    pub commands: Vec<Command>,
    /// Replay rules that these commands follow, for the TaskCompleted.
    pub flags: BTreeSet<Flag>,
}

/// Why the machine cannot continue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The code must be fixed; the run waits for that.
    #[error(transparent)]
    Mismatch(#[from] Box<Mismatch>),
    /// Events are missing; feed the whole history to a new machine.
    #[error("expected event {expected} next, but received event {found}")]
    Gap {
        /// Number that must come next.
        expected: EventNumber,
        found: EventNumber,
    },
    /// The open task was discarded; feed the whole history to a new machine.
    #[error("the history does not contain the task that started at event {started}")]
    TurnDiscarded {
        /// Number of the TaskStarted event.
        started: EventNumber,
    },
    /// A turn needs a started task whose turn was not taken. The machine can still be fed.
    #[error("no task is open")]
    NoOpenTask,
}

impl<C: Code> Replay<C> {
    /// A machine at the start of a run.
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

    /// Takes the next events and replays every task that they complete. Events that were seen
    /// before are skipped. A completed task is replayed once the event after its commands is known:
    /// the next TaskScheduled or TaskStarted, or a call of [`Replay::settle`].
    pub fn feed(&mut self, events: impl IntoIterator<Item = Event>) -> Result<(), Error> {
        self.guarded(|machine| events.into_iter().try_for_each(|event| machine.push(event)))
    }

    /// Declares that the history ends here, after the commands of a completed task, and replays
    /// that task. For queries, and to check the history of a closed run.
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
        let rules = Rules { markers: &[], accepted: &[], replaying: false, in_order: true };
        self.execute(&start, &inputs, rules);
        for UpdateAdmitted { update, request } in updates {
            self.update(update.clone(), request);
        }
        self.turned = Some(start.number);
        Ok(self.completion())
    }

    /// Delivers the result of a local activity of the open task, whose turn was taken.
    /// [`Replay::completion`] then includes the commands that follow from it.
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

    /// Whether the commands of this turn close the run.
    pub fn closes(&self) -> bool {
        self.emitted.last().is_some_and(|command| command.ask.closes())
    }

    /// The completion of the task whose turn was taken, with the commands so far.
    pub fn completion(&self) -> Completion {
        // Works on a copy: code may still continue in this turn, and end a wait whose timer floats.
        // The timers land for good when the completed task is matched.
        let landed = self.floats.clone().land(self.emitted.clone());
        let mut flags = BTreeSet::from([Flag::OptionalTimers]);
        flags.extend(self.route.order_counted().then_some(Flag::HistoryOrder));
        Completion {
            commands: landed.into_iter().map(|command| self.route.translate(command)).collect(),
            flags,
        }
    }

    /// Deadlines that were changed from outside since the last task, by code's ids, in order. Code
    /// sees them with its next task; queries see them immediately.
    pub fn unseen_moves(&self) -> Vec<(TimerId, Timestamp)> {
        self.cutter.unseen().iter().filter_map(|event| self.route.outside_move(event)).collect()
    }

    /// Number of the last event that was fed.
    pub const fn seen(&self) -> EventNumber {
        self.seen
    }

    /// The last TaskCompleted that was fed and whose commands matched. A cached machine is valid
    /// for a task that builds on this completion.
    pub const fn acknowledged(&self) -> EventNumber {
        self.acknowledged
    }

    /// The code, for queries.
    pub const fn code(&self) -> &C {
        &self.code
    }

    /// The code, for queries that need mutable access. They must not change what it does.
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
            && matches!(EventRole::of(&event.body.fact), EventRole::Failed | EventRole::Started(_))
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

    /// The start of a task may be fed again with its completion. If it is another start with the
    /// same number, the earlier one was discarded.
    fn check_start(&self, event: &Event) -> Result<(), Error> {
        if self.cutter.contradicts(event) {
            return Err(Error::TurnDiscarded { started: event.number });
        }
        Ok(())
    }

    /// Start of the task whose turn was taken and whose completion was not fed yet.
    fn turn_in_flight(&self) -> Option<EventNumber> {
        self.turned.filter(|_| self.turned == self.cutter.started())
    }

    /// Runs a completed task, unless its turn was taken live, and matches its commands.
    fn replay(&mut self, group: Group) -> Result<(), Error> {
        if self.turned.take() != Some(group.start.number) {
            let markers: Vec<_> = group.commands.iter().filter_map(marker).collect();
            let accepted: Vec<_> = group.commands.iter().filter_map(accepted).collect();
            let (accepted, in_order) = (&*accepted, group.in_order);
            let rules = Rules { markers: &markers, accepted, replaying: true, in_order };
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
            mismatch.last_place = self.code.place();
            mismatch.advice = mismatch.advice.take().or_else(|| self.code.advice());
            return Err(mismatch.into());
        }
        self.acknowledged = group.completed;
        Ok(())
    }

    /// Delivers what a task saw.
    fn execute(&mut self, start: &GroupStart, inputs: &[Event], rules: Rules<'_>) {
        let Rules { markers, accepted, replaying, in_order } = rules;
        let turn = Turn {
            number: start.number,
            now: start.time,
            started: &start.task,
            replaying,
            in_order,
            markers,
            accepted,
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
                self.advance_at(happened_at(event), step);
            }
        }
    }

    /// A signal or update that arrives in the same turn after code has continued as new is unseen
    /// by code: the next run gets it.
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

    /// Tells code what happens in the turn itself.
    fn advance(&mut self, step: Step<'_>) {
        self.advance_at(self.route.now(), step);
    }

    fn advance_at(&mut self, at: Timestamp, step: Step<'_>) {
        for command in self.code.advance(at, step) {
            if self.route.emit(&command) {
                self.emitted.push(command);
            }
        }
    }

    /// Mismatch of an event that no task of this history can have caused.
    fn unexplained(&self, event: &Event) -> Error {
        let text = Shape::of_event(&self.route, &event.body.fact).to_string();
        Error::from(Box::new(Mismatch {
            reason: BlockedReason::HistoryShape,
            at: event.number,
            expected: Vec::new(),
            places: Vec::new(),
            recorded: vec![RecordedEvent { number: event.number, text }],
            before: Vec::new(),
            expected_condition: None,
            recorded_condition: None,
            last_place: self.code.place(),
            advice: None,
        }))
    }
}

/// When an input reached the run. A signal that arrives while a task is started is numbered later, but
/// never earlier: the clock that numbers it may be behind the one that saw it arrive.
fn happened_at(event: &Event) -> Timestamp {
    if let Fact::SignalReceived(signal) = &event.body.fact {
        signal.received_at.min(event.time)
    } else {
        event.time
    }
}

fn accepted(event: &Event) -> Option<&UpdateId> {
    if let Fact::UpdateAccepted(accepted) = &event.body.fact {
        return Some(&accepted.update);
    }
    None
}

fn marker(event: &Event) -> Option<&Marker> {
    if let Fact::MarkerRecorded(recorded) = &event.body.fact {
        return Some(&recorded.marker);
    }
    None
}
