//! A decision in progress: records are numbered, applied and collected. Events change the run
//! immediately, notes when the decision is finished: the order in which a log row folds.

use super::{Context, Decision, Refusal, Reply, Run, Task};
use crate::{
    event::{Body, Event, Fact, TaskScheduled},
    failure::Failure,
    ids::UpdateId,
    limits::Exceeded,
    note::{Note, Record},
    run::StartRun,
    time::Timestamp,
};

pub(super) struct Draft<'a> {
    pub(super) run: &'a mut Run,
    pub(super) context: &'a Context<'a>,
    events: Vec<Event>,
    notes: Vec<Note>,
    rejected: Vec<(UpdateId, Failure)>,
    successor: Option<Box<StartRun>>,
}

impl<'a> Draft<'a> {
    pub(super) fn new(run: &'a mut Run, context: &'a Context<'a>) -> Self {
        Self {
            run,
            context,
            events: Vec::new(),
            notes: Vec::new(),
            rejected: Vec::new(),
            successor: None,
        }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.context.now
    }

    pub(super) fn event(&mut self, fact: impl Into<Fact>) {
        self.body(Body::new(fact));
    }

    pub(super) fn body(&mut self, body: Body) {
        self.body_at(self.context.now, body);
    }

    /// Numbers a body with its own time; time never goes backwards.
    pub(super) fn body_at(&mut self, time: Timestamp, body: Body) {
        let number = self.run.last_event + 1;
        let event = Event { number, time: time.max(self.run.last_time), body };
        self.run.apply_event(&event);
        self.events.push(event);
    }

    /// Adds a note, which takes effect when the decision is finished.
    pub(super) fn note(&mut self, note: Note) {
        self.notes.push(note);
    }

    /// Takes an input from outside the workflow's code: buffers it while a task is started,
    /// otherwise numbers it immediately and schedules a task that shows it to code.
    pub(super) fn input(&mut self, fact: impl Into<Fact>) {
        self.input_body(Body::new(fact));
    }

    pub(super) fn input_body(&mut self, body: Body) {
        self.input_bodies([body]);
    }

    /// Takes inputs that belong together: one task shows all of them.
    pub(super) fn input_bodies(&mut self, bodies: impl IntoIterator<Item = Body>) {
        let buffered = self.run.volatile.turn.is_some();
        for body in bodies {
            if buffered {
                self.note(Note::InputBuffered(body));
            } else {
                self.body(body);
            }
        }
        if !buffered {
            self.wake();
        }
    }

    /// Events of this decision so far.
    pub(super) fn events(&self) -> &[Event] {
        &self.events
    }

    /// Schedules a workflow task if there is something that code has not seen.
    pub(super) fn wake(&mut self) {
        let run = &*self.run;
        let held = run.paused || run.first_task_at.is_some() || run.volatile.turn.is_some();
        if run.open() && run.unseen && !held {
            self.schedule_task(1);
        }
    }

    pub(super) fn schedule_task(&mut self, attempt: u32) {
        let queue = self.run.spec.queue.clone();
        let timeout = self.run.task_timeout(self.context.limits);
        self.event(TaskScheduled { queue, attempt, timeout });
    }

    pub(super) fn reject(&mut self, update: UpdateId, failure: Failure) {
        self.rejected.push((update, failure));
    }

    pub(super) fn rejected_updates(&self) -> Vec<&UpdateId> {
        self.rejected.iter().map(|(update, _)| update).collect()
    }

    pub(super) fn follow(&mut self, successor: StartRun) {
        self.successor = Some(Box::new(successor));
    }

    /// Checks that there is room for another input from outside; returns `Busy` if there will be
    /// soon.
    pub(super) fn room(&self) -> Result<(), Refusal> {
        let run = &*self.run;
        let waiting = u64::try_from(run.buffer.len()).unwrap_or(u64::MAX);
        let limit = self.context.limits.events;
        if run.last_event.saturating_add(waiting) >= limit {
            return Err(Exceeded { what: "events of the run".into(), limit }.into());
        }
        self.buffer_room()
    }

    /// Checks that the buffer has room, if it is in use.
    pub(super) fn buffer_room(&self) -> Result<(), Refusal> {
        let (run, limits) = (&*self.run, self.context.limits);
        let full = || {
            run.buffer.len() >= limits.buffered_inputs
                || run.buffered_memory() >= limits.buffered_bytes
        };
        if run.volatile.turn.is_some() && full() { Err(Refusal::Busy) } else { Ok(()) }
    }

    pub(super) fn task_idle(&self) -> bool {
        self.run.task == Task::Idle
    }

    pub(super) fn finish(self, reply: Reply) -> Decision {
        for note in &self.notes {
            self.run.apply_note(note);
        }
        let events = self.events.into_iter().map(Record::Event);
        let notes = self.notes.into_iter().map(Record::Note);
        Decision {
            records: events.chain(notes).collect(),
            reply,
            rejected: self.rejected,
            successor: self.successor,
        }
    }
}
