//! The border between the machine and workflow code: what code can be told ([`Step`]) and what it
//! answers (commands). Code is told about its own ids only; event numbers stay in the machine,
//! except where code needs them to ask for something else.

use crate::{
    command::Command,
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
/// - The answer depends on nothing but the steps so far. Ids in commands are counted, never drawn.
/// - Each step runs to quiescence: until code waits for something that has not happened.
/// - A close is the last command; nothing follows it.
/// - Ids of timers for signal waits without deadline come from a sequence of their own. A history of
///   code that did not record them then still has the same ids for everything else.
pub trait Code {
    /// Tells code what happened; code goes on as far as it can and says what it asks for.
    fn advance(&mut self, step: Step<'_>) -> Vec<Command>;

    /// What a person can do if code does not fit the history, as far as code knows.
    fn advice(&self) -> Option<String> {
        None
    }
}

/// The task that code runs in.
#[derive(Clone, Copy, Debug)]
pub struct Turn<'a> {
    /// The event of the task's start.
    pub number: EventNumber,
    /// Code's time until the next turn.
    pub now: Timestamp,
    /// The task's start: who runs it, and whether the history is long.
    pub started: &'a TaskStarted,
    /// The answer to this turn is already in history. Code that is new to a run may change its way
    /// only where this is false.
    pub replaying: bool,
    /// Moves of timers take effect in the order of history; see [`crate::event::Flag::HistoryOrder`].
    pub in_order: bool,
    /// What code recorded in this turn, in order, so that it reads the same values again. Code still
    /// asks for each of these markers.
    pub markers: &'a [&'a Marker],
    /// What the task saw: what code is told next, as far as it concerns code. So a close can wait for
    /// messages that code is about to be told.
    pub inputs: &'a [Event],
}

/// One thing that code is told.
#[derive(Clone, Debug)]
pub enum Step<'a> {
    /// A task begins: comes first, before the events that the task is about.
    Turn(Turn<'a>),
    /// The run began.
    Start(&'a RunStarted),
    /// A signal arrived.
    Signal {
        /// Names it when code continues as new without having read it.
        number: EventNumber,
        /// The signal.
        signal: &'a SignalReceived,
    },
    /// Somebody asked the run to cancel itself.
    CancelRequested(&'a RunCancelRequested),
    /// An activity closed.
    ActivityResolved {
        /// The activity.
        activity: ActivityId,
        /// Identifies it over all attempts: what a recorded retry refers to.
        execution: ExecutionId,
        /// How it closed.
        close: ActivityClose<'a>,
    },
    /// The due time of an open timer came.
    TimerFired {
        /// The timer.
        timer: TimerId,
        /// The due time that came.
        fire_at: Timestamp,
    },
    /// Somebody outside moved the due time of an open timer.
    TimerRescheduled {
        /// The timer.
        timer: TimerId,
        /// The new due time.
        fire_at: Timestamp,
    },
    /// A child that code asked for in an earlier turn has its number. Comes right after the turn.
    ChildInitiated {
        /// Counts the StartChild commands of the run, from 1.
        child: u64,
        /// The event that asks for the child: the `child` of a [`crate::event::Target`].
        initiated: EventNumber,
        /// The child's run.
        run: RunId,
    },
    /// A child runs.
    ChildStarted {
        /// Counts the StartChild commands of the run, from 1.
        child: u64,
        /// The child's run.
        run: RunId,
    },
    /// A child closed, or could not be started.
    ChildResolved {
        /// Counts the StartChild commands of the run, from 1.
        child: u64,
        /// How it closed.
        close: ChildClose<'a>,
    },
    /// A signal or cancel request to another workflow was answered.
    ExternalResolved {
        /// Counts the SignalExternal and CancelExternal commands of the run, from 1.
        external: u64,
        /// Whether it arrived.
        result: Result<(), DeliveryFailure>,
    },
    /// A local activity ended. Code that still waits for it records the marker, which holds the end,
    /// and goes on; other code does nothing.
    LocalResolved(&'a Marker),
    /// Somebody asks for an update; code accepts or rejects it in this step.
    Update {
        /// The update.
        update: UpdateId,
        /// What is asked for.
        request: &'a UpdateRequest,
    },
}

/// How an activity closed.
#[derive(Clone, Copy, Debug)]
pub enum ActivityClose<'a> {
    /// With a result.
    Completed(&'a ActivityCompleted),
    /// With a failure.
    Failed(&'a ActivityFailed),
    /// A deadline passed.
    TimedOut(&'a ActivityTimedOut),
    /// Code had asked for it to be cancelled.
    Cancelled(&'a ActivityCancelled),
}

/// How a child closed.
#[derive(Clone, Copy, Debug)]
pub enum ChildClose<'a> {
    /// It never ran.
    StartFailed(DeliveryFailure),
    /// With a result.
    Completed(&'a ChildCompleted),
    /// With a failure.
    Failed(&'a ChildFailed),
    /// Its time was up.
    TimedOut(&'a ChildTimedOut),
    /// It cancelled itself.
    Cancelled(&'a ChildCancelled),
    /// It was ended from outside.
    Terminated(&'a ChildTerminated),
}
