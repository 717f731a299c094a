//! Splits a history into groups: what one completed task saw, and what it did. A task that failed
//! or timed out did nothing, so what it saw joins the next group. Events may arrive in portions of
//! any size.

use crate::{
    event::{Event, Fact, FactSource, Flag, TaskCompleted, TaskStarted},
    ids::EventNumber,
    time::Timestamp,
};

/// Role of an event in a group.
#[derive(Clone, Copy, Debug)]
pub(super) enum EventRole<'a> {
    /// Ends the commands of the previous task.
    Scheduled,
    /// Ends the inputs of a group, if the task completes.
    Started(&'a TaskStarted),
    /// Begins the commands of a task.
    Completed(&'a TaskCompleted),
    /// The task did nothing.
    Failed,
    /// Result of a command.
    Command,
    Input,
}

impl<'a> EventRole<'a> {
    #[expect(clippy::wildcard_enum_match_arm, reason = "a task that ended otherwise did nothing")]
    pub(super) fn of(fact: &'a Fact) -> Self {
        match fact.source() {
            FactSource::Command => Self::Command,
            FactSource::Input | FactSource::Unshown => Self::Input,
            FactSource::Task => match fact {
                Fact::TaskScheduled(_) => Self::Scheduled,
                Fact::TaskStarted(task) => Self::Started(task),
                Fact::TaskCompleted(task) => Self::Completed(task),
                _ => Self::Failed,
            },
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct GroupStart {
    /// Number of the TaskStarted event.
    pub(super) number: EventNumber,
    /// Time that code sees in this task.
    pub(super) time: Timestamp,
    pub(super) task: TaskStarted,
    /// Number of collected inputs that came before it.
    seen: usize,
}

/// What a completed task saw and did.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) start: GroupStart,
    /// Inputs, in order.
    pub(super) inputs: Vec<Event>,
    pub(super) completed: EventNumber,
    /// Whether this task, and all after it, record every wait for a signal.
    pub(super) strict: bool,
    /// Whether reschedules took effect in the order of history.
    pub(super) in_order: bool,
    /// Events of its commands, in order.
    pub(super) commands: Vec<Event>,
}

/// Collects events until a group is complete.
#[derive(Clone, Debug, Default)]
pub(super) struct Cutter {
    inputs: Vec<Event>,
    start: Option<GroupStart>,
    completed: Option<Group>,
}

impl Cutter {
    /// Takes the next event. Returns the group that it completes, or returns the event if no task
    /// can have caused it.
    pub(super) fn push(&mut self, event: Event) -> Result<Option<Group>, Box<Event>> {
        let unbegun = self.ends_unbegun(&event);
        match (EventRole::of(&event.body.fact), &mut self.completed) {
            (EventRole::Scheduled, _) => return Ok(self.completed.take()),
            (EventRole::Started(task), _) => {
                let (task, seen) = (task.clone(), self.inputs.len());
                self.start =
                    Some(GroupStart { number: event.number, time: event.time, task, seen });
                return Ok(self.completed.take());
            }
            (EventRole::Completed(task), None) => {
                let strict = task.flags.contains(&Flag::OptionalTimers);
                let in_order = task.flags.contains(&Flag::HistoryOrder);
                let completed = event.number;
                let Some(start) = self.start.take() else { return Err(Box::new(event)) };
                let inputs = self.inputs_before(&start);
                let commands = Vec::new();
                let group = Group { start, inputs, completed, strict, in_order, commands };
                self.completed = Some(group);
            }
            (EventRole::Failed, _) => self.start = None,
            (EventRole::Command, Some(group)) => group.commands.push(event),
            (EventRole::Input, _) => self.inputs.push(event),
            (EventRole::Command, None) if unbegun => self.inputs.push(event),
            (EventRole::Completed(_), Some(_)) | (EventRole::Command, None) => {
                return Err(Box::new(event));
            }
        }
        Ok(None)
    }

    /// Whether the run is cancelled before its code starts, which needs no command.
    fn ends_unbegun(&self, event: &Event) -> bool {
        let cancelled = matches!(event.body.fact, Fact::RunCancelled(_));
        cancelled
            && self.start.is_none()
            && self.inputs.first().is_some_and(|first| first.number == 1)
    }

    /// Takes the completed task whose commands may still be arriving as complete.
    pub(super) fn settle(&mut self) -> Option<Group> {
        self.completed.take()
    }

    /// Start of the task that has not completed yet.
    pub(super) fn started(&self) -> Option<EventNumber> {
        self.start.as_ref().map(|start| start.number)
    }

    /// Whether the event is another start with the number of the open task's.
    pub(super) fn contradicts(&self, event: &Event) -> bool {
        let start = self.start.as_ref().filter(|start| start.number == event.number);
        start.is_some_and(|start| match EventRole::of(&event.body.fact) {
            EventRole::Started(task) => *task != start.task || event.time != start.time,
            EventRole::Scheduled
            | EventRole::Completed(_)
            | EventRole::Failed
            | EventRole::Command
            | EventRole::Input => true,
        })
    }

    /// The started task that has not completed yet, and what it sees. It stays started; its inputs
    /// are returned once.
    pub(super) fn open(&mut self) -> Option<(GroupStart, Vec<Event>)> {
        let mut start = self.start.clone()?;
        let inputs = self.inputs_before(&start);
        start.seen = 0;
        self.start = Some(start.clone());
        Some((start, inputs))
    }

    /// Events that no task has seen yet.
    pub(super) fn unseen(&self) -> &[Event] {
        &self.inputs
    }

    fn inputs_before(&mut self, start: &GroupStart) -> Vec<Event> {
        let later = self.inputs.split_off(start.seen);
        std::mem::replace(&mut self.inputs, later)
    }
}
