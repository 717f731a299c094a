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
//! #[derive(Default)]
//! struct Hello;
//!
//! #[workflow]
//! impl Hello {
//!     #[run]
//!     async fn run(ctx: &Context<Self>, name: String) -> abide::Result<String> {
//!         ctx.activity(greet, name).await
//!     }
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let engine = Embedded::in_memory().await;
//!     engine.worker().workflow::<Hello>().activity(greet).spawn();
//!     let hello = engine.client().start::<Hello>("hello-1", "Ada".to_owned()).await?;
//!     println!("{}", hello.result().await?);
//!     Ok(())
//! }
//! ```
//!
//! # Where to go next
//!
//! - The guide is in the folder `docs` of the repository; the folder `examples` has small programs
//!   that show one idea each.
//! - [`Context`] is the API of workflow code; [`ActivityContext`] is the API of activities.
//! - `Client` and `WorkflowHandle` start workflows and send them messages; `Worker` runs them.
//! - [`Error`] describes failures in a workflow, `ClientError` failures of a client's call.
//!
//! # Features
//!
//! | feature | what it adds |
//! |---|---|
//! | `macros` (default) | `#[workflow]`, `#[activity]`, `#[activities]` |
//! | `grpc` (default) | `Client::connect`: connects to a server; includes `worker` |
//! | `worker` | workers and clients, over any transport |
//! | `codecs` | `abide::codec`: compressed and encrypted payloads, large payloads by reference |
//! | `codec-endpoint` | `abide::codec::CodecEndpoint`: decodes payloads for the command line |
//! | `protobuf` | `abide::Proto`: protobuf messages as arguments and results |
//! | `embedded` | `abide::embedded`: an engine in your own process |
//! | `testing` | `abide::testing`: an engine with a clock that skips ahead, and replay of histories |
//! | `mimalloc` | sets the allocator of the program, which makes workers and embedded engines faster |

#![warn(missing_docs)]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub use abide_sdk::*;

#[cfg(feature = "embedded")]
pub use abide_embedded as embedded;

#[cfg(feature = "testing")]
pub use abide_sdk_testing as testing;

/// Values of workflows are allocated on one thread and freed on another; this allocator is good at that.
#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
