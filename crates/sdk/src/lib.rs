//! Workflows and activities in Rust.
//!
//! A workflow is an async function, or a struct with a run, signals, queries and updates; an
//! activity is an async function. The attributes `#[workflow]`, `#[activity]` and `#[activities]`
//! (feature `macros`) leave them as they are and add definitions: typed values that clients and
//! workflows refer to by path.
//!
//! - [`Context`] is the handle of workflow code; [`ActivityContext`] is the handle of activities.
//! - [`parallel`] runs many things at once; [`context::Scoped`] groups what is cancelled together.
//! - [`approval`] asks people, and collects their decisions.
//! - [`definition`] says what a workflow is made of, [`arguments`] what callers may pass,
//!   [`payload`] how data is encoded, [`Error`] what can go wrong.
//! - [`search`] has the typed names of search attributes.
//! - [`interceptor`] sees what goes in and out of clients and workers, and carries headers along.
//! - [`executor`] runs workflow code deterministically; [`registry`] is what a worker can run.
//! - Feature `worker`: `schedule` has what a client says of schedules; `Client` starts workflows and communicates with them, `Worker` runs them,
//!   over any [`transport`].
//!
//! Without features nothing here needs a runtime or a network.

#![warn(missing_docs)]
#![cfg_attr(docsrs, feature(doc_cfg))]

// The macros refer to this crate by the name that users know.
extern crate self as abide;

pub mod activity;
pub mod approval;
pub mod arguments;
#[cfg(feature = "worker")]
mod backoff;
mod binary;
#[cfg(feature = "worker")]
pub mod client;
#[cfg(feature = "worker")]
pub mod codec;
pub mod context;
pub mod definition;
mod error;
pub mod executor;
mod failure;
pub mod future;
#[cfg(feature = "grpc")]
pub mod grpc;
pub mod interceptor;
pub mod join_macro;
#[cfg(feature = "worker")]
pub mod list;
mod lock;
mod macros;
mod panic;
pub mod parallel;
pub mod payload;
mod policy;
#[cfg(feature = "protobuf")]
mod protobuf;
pub mod registry;
pub mod replay;
mod retry;
mod returned;
mod saga;
#[cfg(feature = "worker")]
pub mod schedule;
pub mod search;
pub mod select_macro;
#[cfg(feature = "opentelemetry")]
pub mod telemetry;
pub mod time;
pub mod transport;
mod typed;
mod unread;
#[cfg(feature = "worker")]
pub mod worker;

#[cfg(feature = "macros")]
pub use abide_sdk_macros::{activities, activity, condition, workflow};

#[cfg(feature = "protobuf")]
pub use self::protobuf::Proto;
pub use self::{
    activity::{ActivityContext, ActivityDef, ActivityError},
    arguments::{IntoArgument, IntoArguments},
    binary::Binary,
    context::{
        Canceller, Condition, Context, Deadline, NextRun, OnCancel, Outcome, RescheduleError,
    },
    definition::{QueryDef, SignalDef, UnfinishedHandlers, UpdateDef, Workflow},
    error::{ActivityFailure, ChildFailure, Error, ExternalFailure, Result},
    executor::Cancellation,
    failure::{DeliveryFailure, Failure, FailureKind, RetryState, TimeoutKind},
    parallel::{Window, first_success, join_all, try_join_all},
    payload::{PayloadError, PayloadValue, RawPayload},
    policy::{ConflictPolicy, ParentClosePolicy, ReusePolicy},
    registry::Registry,
    retry::RetryPolicy,
    returned::{BoxError, ReturnedError},
    saga::{Saga, SagaFailure, UndoFailure},
    typed::TypedError,
};
#[cfg(feature = "worker")]
pub use self::{
    client::{Client, ClientError, WorkflowHandle},
    codec::Codecs,
    worker::{RunningWorker, Worker, WorkerError},
};
pub use abide_core::{event, ids, time::Timestamp};

/// What generated code refers to. Not part of the API: it may change at any time.
#[doc(hidden)]
pub mod __private {
    pub use crate::typed::{Kind, Plain, PlainKind, Typed, TypedKind};
    pub use crate::*;
}

/// What most programs need, for a glob import.
pub mod prelude {
    pub use crate::{
        ActivityContext, ActivityError, Context, Deadline, Error, OnCancel, Outcome, RetryPolicy,
        Saga, Timestamp, Window, first_success, join, join_all, select,
        time::{Now as _, days, hours, minutes, months, seconds, weeks, years},
        try_join, try_join_all,
    };
    #[cfg(feature = "worker")]
    pub use crate::{Client, Worker};
    #[cfg(feature = "macros")]
    pub use abide_sdk_macros::{activities, activity, condition, workflow};
}
