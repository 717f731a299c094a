//! The interface between the machine and workflow code: what code receives ([`Step`]), and the
//! commands that it returns. Code sees only its own ids; event numbers stay in the machine, except
//! where code needs one in a command.

use crate::{
    command::{Command, SourcePlace},
    event::{
        ActivityCancelled, ActivityCompleted, ActivityFailed, ActivityTimedOut, ChildCancelled,
        ChildCompleted, ChildFailed, ChildTerminated, ChildTimedOut, DeliveryFailure, Event,
        Marker, RunCancelRequested, RunStarted, SignalReceived, TaskStarted, UpdateRequest,
    },
    ids::{ActivityId, EventNumber, ExecutionId, RunId, TimerId, UpdateId},
    time::Timestamp,
};

/// Workflow code, driven one step at a time.
///
/// Rules that make it replayable:
///
/// - The commands depend only on the steps so far. Ids in commands are counted, never random.
/// - Each step runs to quiescence: until code waits for something that has not happened.
/// - A close is the last command; nothing follows it.
/// - Ids of timers for signal waits without deadline come from their own sequence. So everything
///   else has the same ids in a history of code that did not record such timers.
pub trait Code {
    /// Tells code what happened, and when. Code advances as far as it can and returns its commands. Its own
    /// time is that of the turn, which may be later: what happened may have waited for a worker.
    fn advance(&mut self, at: Timestamp, step: Step<'_>) -> Vec<Command>;

    /// Where code made its last durable call, for messages to people.
    fn place(&self) -> SourcePlace {
        SourcePlace::default()
    }

    /// Advice for a person if code does not fit the history, as far as code knows.
    fn advice(&self) -> Option<String> {
        None
    }
}

/// Task that code runs in.
#[derive(Clone, Copy, Debug)]
pub struct Turn<'a> {
    /// Number of the TaskStarted event.
    pub number: EventNumber,
    /// Time that code sees until the next turn.
    pub now: Timestamp,
    /// The start of the task: its worker, and whether the history is long.
    pub started: &'a TaskStarted,
    /// Whether the commands of this turn are already in history. New code may take a new path only
    /// where this is false.
    pub replaying: bool,
    /// Whether reschedules take effect in the order of history; see
    /// [`crate::event::Flag::HistoryOrder`].
    pub in_order: bool,
    /// Markers that code recorded in this turn, in order, so that it reads the same values again.
    /// Code still emits a command for each of them.
    pub markers: &'a [&'a Marker],
    /// Updates that code accepted in this turn, if it is replayed. It rejected all others.
    pub accepted: &'a [&'a UpdateId],
    /// Events that the task saw, which code receives next. So a close can wait for messages that
    /// code is about to get.
    pub inputs: &'a [Event],
}

#[derive(Clone, Debug)]
pub enum Step<'a> {
    /// A task begins: comes first, before the events of the task.
    Turn(Turn<'a>),
    Start(&'a RunStarted),
    Signal {
        /// Identifies the signal if code continues as new without having read it.
        number: EventNumber,
        signal: &'a SignalReceived,
    },
    /// Cancellation of the run was requested.
    CancelRequested(&'a RunCancelRequested),
    ActivityResolved {
        activity: ActivityId,
        /// Identifies the activity across all attempts: what a recorded retry refers to.
        execution: ExecutionId,
        close: ActivityClose<'a>,
    },
    TimerFired {
        timer: TimerId,
        /// Due time at which it fired.
        fire_at: Timestamp,
    },
    /// The due time of an open timer was changed from outside.
    TimerRescheduled {
        timer: TimerId,
        fire_at: Timestamp,
    },
    /// A child that code started in an earlier turn got its event number. Comes right after the
    /// turn.
    ChildInitiated {
        /// Number of the StartChild command within the run, from 1.
        child: u64,
        /// Number of the ChildInitiated event: the `child` of a [`crate::event::Target`].
        initiated: EventNumber,
        run: RunId,
    },
    ChildStarted {
        /// Number of the StartChild command within the run, from 1.
        child: u64,
        run: RunId,
    },
    /// A child closed, or could not be started.
    ChildResolved {
        /// Number of the StartChild command within the run, from 1.
        child: u64,
        close: ChildClose<'a>,
    },
    /// A signal or cancel request to another workflow was answered.
    ExternalResolved {
        /// Number of the SignalExternal or CancelExternal command within the run, from 1.
        external: u64,
        result: Result<(), DeliveryFailure>,
    },
    /// A local activity ended. Code that still waits for it records the marker with its result and
    /// continues; other code does nothing.
    LocalResolved(&'a Marker),
    /// An update arrived; code accepts or rejects it in this step.
    Update {
        update: UpdateId,
        request: &'a UpdateRequest,
    },
}

/// How an activity closed.
#[derive(Clone, Copy, Debug)]
pub enum ActivityClose<'a> {
    Completed(&'a ActivityCompleted),
    Failed(&'a ActivityFailed),
    TimedOut(&'a ActivityTimedOut),
    /// Code had requested its cancellation.
    Cancelled(&'a ActivityCancelled),
}

/// How a child closed.
#[derive(Clone, Copy, Debug)]
pub enum ChildClose<'a> {
    StartFailed(DeliveryFailure),
    Completed(&'a ChildCompleted),
    Failed(&'a ChildFailed),
    TimedOut(&'a ChildTimedOut),
    Cancelled(&'a ChildCancelled),
    Terminated(&'a ChildTerminated),
}
