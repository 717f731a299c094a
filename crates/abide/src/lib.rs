//! Durable workflows in Rust: the one crate to import.
//!
//! A *workflow* is ordinary async code that can wait for a month and survives crashes meanwhile. An
//! *activity* is an async function with side effects. A *worker* runs both, and a *client* starts
//! workflows and sends them messages. This is a complete program, with the engine inside:
//!
#![cfg_attr(feature = "embedded", doc = "```")]
#![cfg_attr(not(feature = "embedded"), doc = "```ignore")]
//! use abide::{embedded::Embedded, prelude::*};
//!
//! #[activity]
//! async fn greet(name: String) -> String {
//!     format!("Hello, {name}!")
//! }
//!
//! #[workflow]
//! async fn hello(ctx: &Context, name: String) -> abide::Result<String> {
//!     ctx.activity(greet, name).await
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let engine = Embedded::in_memory().await;
//!     engine.worker().workflow::<hello>().activity(greet).spawn();
//!     let hello = hello::start(&engine.client(), "hello-1", "Ada").await?;
//!     println!("{}", hello.result().await?);
//!     Ok(())
//! }
//! ```
//!
//! # What is where
//!
//! - In workflow code: [`Context`] and what it returns, in [`context`]; [`Error`], [`RetryPolicy`],
//!   [`Saga`], [`join!`], [`select!`], [`join_all`].
//! - In activities: [`ActivityContext`] and [`ActivityError`].
//! - Around them: `Client`, `WorkflowHandle` and `Worker`; the calls that a client makes are in
//!   `client`, the rows that it lists in `list`.
//! - [`approval`] asks people; `embedded` is an engine in your process; `testing` is for tests.
//! - [`prelude`] has what most files need.
//!
//! The guide is in the folder `docs` of the repository; the folder `examples` has small programs that
//! show one idea each.
//!
//! # Features
//!
//! | feature | what it adds |
//! |---|---|
//! | `macros` (default) | `#[workflow]`, `#[activity]`, `#[activities]`, `condition!` |
//! | `grpc` (default) | `Client::connect`: connects to a server; includes `worker` |
//! | `worker` | workers and clients, over any transport |
//! | `codecs` | `abide::codec`: compressed and encrypted payloads, large payloads by reference |
//! | `codec-endpoint` | `abide::codec::CodecEndpoint`: decodes payloads for the command line |
//! | `protobuf` | `abide::Proto`: protobuf messages as arguments and results |
//! | `embedded` | `abide::embedded`: an engine in your own process, on an SQLite file or in memory |
//! | `postgres` | `Embedded::open("postgres://…")`; includes `embedded` |
//! | `opentelemetry` | `abide::telemetry`: traces and metrics of clients and workers |
//! | `testing` | `abide::testing`: an engine with a clock that skips ahead, and replay of histories |

#![warn(missing_docs)]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod approval;
#[cfg(feature = "worker")]
pub mod client;
#[cfg(feature = "worker")]
pub mod codec;
pub mod context;
pub mod definition;
#[cfg(feature = "embedded")]
pub mod embedded;
pub mod ids;
pub mod interceptor;
#[cfg(feature = "worker")]
pub mod list;
pub mod payload;
pub mod prelude;
#[cfg(feature = "worker")]
pub mod schedule;
pub mod search;
#[cfg(feature = "opentelemetry")]
pub mod telemetry;
#[cfg(feature = "testing")]
pub mod testing;
pub mod time;
#[cfg(feature = "worker")]
pub mod worker;

// Definitions.
#[cfg(feature = "protobuf")]
pub use abide_sdk::Proto;
pub use abide_sdk::{
    Binary, IntoArgument, IntoArguments, PayloadError, PayloadValue, RawPayload, Workflow,
};
#[cfg(feature = "macros")]
pub use abide_sdk::{activities, activity, condition, workflow};

// Workflow code.
pub use abide_sdk::{
    Cancellation, Canceller, Condition, ConflictPolicy, Context, Deadline, NextRun, OnCancel,
    Outcome, ParentClosePolicy, RescheduleError, RetryPolicy, ReusePolicy, Saga, Timestamp, Window,
    first_success, join, join_all, select, try_join, try_join_all,
};

// Activities.
pub use abide_sdk::{ActivityContext, ActivityError};

// Failures.
pub use abide_sdk::{
    ActivityFailure, BoxError, ChildFailure, DeliveryFailure, Error, ExternalFailure, Failure,
    FailureKind, Result, RetryState, SagaFailure, TimeoutKind, TypedError, UndoFailure,
};

// Clients and workers.
#[cfg(feature = "worker")]
pub use abide_sdk::{
    Client, ClientError, Codecs, RunningWorker, Worker, WorkerError, WorkflowHandle,
};

// What the macros refer to. Not part of the API: it may change at any time.
#[doc(hidden)]
pub use abide_sdk::__private;
