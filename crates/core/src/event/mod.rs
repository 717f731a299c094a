//! The facts of a run's history: everything the engine knows about a run follows from these, in
//! order. One file per concept. An event's number and time are outside its body, so that a body can
//! be stored before it is numbered, and copied without being decoded.

use bytes::Bytes;

use crate::{ids::EventNumber, payload::Extension, time::Timestamp};

mod activity;
mod child;
mod marker;
mod run;
mod signal;
mod source;
mod task;
mod timer;
mod update;
mod wait;

pub use activity::*;
pub use child::*;
pub use marker::*;
pub use run::*;
pub use signal::*;
pub(crate) use source::FactSource;
pub use task::*;
pub use timer::*;
pub use update::*;
pub use wait::*;

/// A numbered fact in a run's history.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Dense, from 1.
    pub number: EventNumber,
    /// Never before the time of the previous event.
    pub time: Timestamp,
    #[doc(hidden)]
    pub body: Body,
}

impl Event {
    /// The event's name, as history shows it.
    pub const fn name(&self) -> &'static str {
        self.body.fact.name()
    }
}

/// Content of an event, without number and time.
#[derive(Clone, Debug)]
pub struct Body {
    pub fact: Fact,
    /// Data that gateways store with it.
    pub extension: Extension,
    /// Bytes that this body was decoded from. They are kept so that stored bytes are copied and
    /// never encoded again: fields of a newer version survive.
    stored: Option<Bytes>,
}

impl Body {
    /// A body without extension.
    pub fn new(fact: impl Into<Fact>) -> Self {
        Self { fact: fact.into(), extension: Extension::new(), stored: None }
    }

    /// A body that was decoded from `stored`.
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

    /// The fact, to be changed. The body no longer is what it was decoded from.
    pub fn fact_mut(&mut self) -> &mut Fact {
        self.stored = None;
        &mut self.fact
    }

    /// Bytes that this body was decoded from, if it was.
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
    RunStarted(boxed),
    /// The run completed with a result.
    RunCompleted,
    RunFailed,
    /// The run timed out.
    RunTimedOut,
    /// Cancellation of the run was requested.
    RunCancelRequested,
    /// The run's code ended it as cancelled.
    RunCancelled,
    /// The run was terminated.
    RunTerminated,
    /// The run closed and continues in a new one.
    RunContinuedAsNew(boxed),
    /// The run was paused: nothing new is scheduled or dispatched.
    RunPaused,
    RunUnpaused,
    /// A workflow task was scheduled.
    TaskScheduled,
    /// A worker took the task.
    TaskStarted,
    /// The worker replied with commands.
    TaskCompleted,
    /// The worker could not run the code, or its commands were refused.
    TaskFailed(boxed),
    /// The worker did not reply in time.
    TaskTimedOut,
    /// Code scheduled an activity.
    ActivityScheduled(boxed),
    /// The attempt that closed the activity started; written together with the close.
    ActivityStarted,
    /// The activity completed with a result.
    ActivityCompleted,
    /// The activity failed for good.
    ActivityFailed,
    /// A deadline of the activity passed, and no retry follows.
    ActivityTimedOut,
    /// Code requested cancellation of the activity.
    ActivityCancelRequested,
    /// The activity was cancelled.
    ActivityCancelled,
    /// Code started a timer.
    TimerStarted,
    /// The timer's due time was changed.
    TimerRescheduled,
    TimerFired,
    /// Code no longer needs the timer.
    TimerCancelled,
    /// Code waits for a condition on its own state.
    WaitOpened,
    /// Code changed what people see about a wait.
    WaitDescribed,
    /// The condition became true.
    WaitSatisfied,
    /// The condition's deadline passed first.
    WaitTimedOut,
    /// Code no longer waits for the condition.
    WaitCancelled,
    SignalReceived,
    /// An update was carried over from another run, to be delivered again.
    UpdateAdmitted,
    /// Code accepted an update.
    UpdateAccepted,
    /// An accepted update completed or failed.
    UpdateCompleted,
    /// Code started a child.
    ChildInitiated(boxed),
    ChildStarted,
    /// The child could not be started.
    ChildStartFailed,
    /// The child completed with a result.
    ChildCompleted,
    ChildFailed,
    /// The child timed out.
    ChildTimedOut,
    /// The child ended as cancelled.
    ChildCancelled,
    /// The child was terminated.
    ChildTerminated,
    /// Code sent a signal to another workflow.
    ExternalSignalInitiated,
    /// The signal was delivered to the other workflow.
    ExternalSignalDelivered,
    /// The signal could not be delivered.
    ExternalSignalFailed,
    /// Code requested cancellation of another workflow.
    ExternalCancelInitiated,
    /// The cancel request was delivered to the other workflow.
    ExternalCancelDelivered,
    /// The cancel request could not be delivered.
    ExternalCancelFailed,
    /// Code recorded a value: a side effect, a version, a local activity.
    MarkerRecorded,
    /// Code changed search attributes.
    SearchAttributesUpserted,
    /// Code changed the memo.
    MemoUpserted,
}
