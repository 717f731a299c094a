//! The facts of a run's history. "Show me your tables": everything the engine knows about a run
//! follows from these, in order. One file per concept; an event's number and time lie outside its
//! body, so that a body can be stored before it is numbered and copied without being read.

use bytes::Bytes;

use crate::{ids::EventNumber, payload::Extension, time::Timestamp};

mod activity;
mod child;
mod marker;
mod run;
mod signal;
mod task;
mod timer;
mod update;
mod wait;

pub use activity::*;
pub use child::*;
pub use marker::*;
pub use run::*;
pub use signal::*;
pub use task::*;
pub use timer::*;
pub use update::*;
pub use wait::*;

/// A numbered fact in a run's history.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Dense, from 1.
    pub number: EventNumber,
    /// Never before the time of the event before it.
    pub time: Timestamp,
    /// What happened.
    pub body: Body,
}

/// What happened, without number and time.
#[derive(Clone, Debug)]
pub struct Body {
    /// The fact itself.
    pub fact: Fact,
    /// What gateways keep with it.
    pub extension: Extension,
    /// The bytes this body was read from. Kept so that stored bytes are copied and never encoded
    /// again: fields of a newer version survive.
    stored: Option<Bytes>,
}

impl Body {
    /// A body without extension.
    pub fn new(fact: impl Into<Fact>) -> Self {
        Self { fact: fact.into(), extension: Extension::new(), stored: None }
    }

    /// A body that was read from `stored`.
    pub fn from_stored(fact: Fact, extension: Extension, stored: Bytes) -> Self {
        Self { fact, extension, stored: Some(stored) }
    }

    /// The same body with an extension.
    #[must_use]
    pub fn with_extension(mut self, extension: Extension) -> Self {
        self.extension = extension;
        self.stored = None;
        self
    }

    /// The bytes this body was read from, if it was.
    pub const fn stored(&self) -> Option<&Bytes> {
        self.stored.as_ref()
    }
}

impl PartialEq for Body {
    fn eq(&self, other: &Self) -> bool {
        self.fact == other.fact && self.extension == other.extension
    }
}

macro_rules! facts {
    ($($(#[$doc:meta])* $name:ident $(($boxed:tt))?,)*) => {
        /// Every kind of event.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Fact {
            $($(#[$doc])* $name(facts!(@type $name $($boxed)?)),)*
        }

        impl Fact {
            /// The names of all events.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name)),*];

            /// The event's name, as history shows it.
            pub const fn name(&self) -> &'static str {
                match self {
                    $(Self::$name(_) => stringify!($name),)*
                }
            }
        }

        $(
            impl From<$name> for Fact {
                fn from(body: $name) -> Self {
                    Self::$name(body.into())
                }
            }
        )*
    };
    (@type $name:ident) => { $name };
    (@type $name:ident boxed) => { Box<$name> };
}

facts! {
    /// The run began.
    RunStarted(boxed),
    /// The run ended with a result.
    RunCompleted,
    /// The run ended with a failure.
    RunFailed,
    /// The run's time was up.
    RunTimedOut,
    /// Somebody asked the run to cancel itself.
    RunCancelRequested,
    /// The run ended by cancelling itself.
    RunCancelled,
    /// The run was ended from outside.
    RunTerminated,
    /// The run ended and a new one goes on.
    RunContinuedAsNew(boxed),
    /// Nothing new is scheduled or dispatched from here on.
    RunPaused,
    /// The pause is over.
    RunUnpaused,
    /// The workflow's code should run.
    TaskScheduled,
    /// A worker took the task.
    TaskStarted,
    /// The worker answered with commands.
    TaskCompleted,
    /// The worker could not run the code, or its answer was refused.
    TaskFailed(boxed),
    /// The worker did not answer in time.
    TaskTimedOut,
    /// Code asked for an activity.
    ActivityScheduled(boxed),
    /// The attempt that closed the activity began; written with the close.
    ActivityStarted,
    /// The activity has a result.
    ActivityCompleted,
    /// The activity failed for good.
    ActivityFailed,
    /// One of the activity's deadlines passed for good.
    ActivityTimedOut,
    /// Code asked for the activity to be cancelled.
    ActivityCancelRequested,
    /// The activity was cancelled.
    ActivityCancelled,
    /// Code asked to be woken at a time.
    TimerStarted,
    /// The timer's due time was moved.
    TimerRescheduled,
    /// The timer's due time came.
    TimerFired,
    /// Code no longer needs the timer.
    TimerCancelled,
    /// Code waits for a condition on its own state.
    WaitOpened,
    /// Code changed what people are shown about a wait.
    WaitDescribed,
    /// The condition became true.
    WaitSatisfied,
    /// The condition's deadline passed first.
    WaitTimedOut,
    /// Code no longer waits for the condition.
    WaitCancelled,
    /// A signal arrived.
    SignalReceived,
    /// An update was carried over from another run, to be delivered again.
    UpdateAdmitted,
    /// Code accepted an update.
    UpdateAccepted,
    /// An accepted update has its outcome.
    UpdateCompleted,
    /// Code asked for a child.
    ChildInitiated(boxed),
    /// The child runs.
    ChildStarted,
    /// The child could not be started.
    ChildStartFailed,
    /// The child has a result.
    ChildCompleted,
    /// The child failed.
    ChildFailed,
    /// The child's time was up.
    ChildTimedOut,
    /// The child cancelled itself.
    ChildCancelled,
    /// The child was terminated.
    ChildTerminated,
    /// Code asked to signal another workflow.
    ExternalSignalInitiated,
    /// The other workflow has the signal.
    ExternalSignalDelivered,
    /// The other workflow could not be signalled.
    ExternalSignalFailed,
    /// Code asked to cancel another workflow.
    ExternalCancelInitiated,
    /// The other workflow has the request.
    ExternalCancelDelivered,
    /// The other workflow could not be asked.
    ExternalCancelFailed,
    /// Code recorded a value: a side effect, a version, a local activity.
    MarkerRecorded,
    /// Code changed search attributes.
    SearchAttributesUpserted,
    /// Code changed the memo.
    MemoUpserted,
}
