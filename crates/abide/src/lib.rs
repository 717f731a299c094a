//! Durable workflows in Rust: the one crate to import.
//!
//! A *workflow* is ordinary async code that may wait for a month and survives every crash meanwhile. An
//! *activity* is an async function that touches the world. A *worker* runs both, and a *client* starts
//! workflows and speaks to them. This is a whole program, with the engine inside:
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
//!     tokio::spawn(engine.worker().workflow::<Hello>().activity(greet).run());
//!     let hello = engine.client().start::<Hello>("hello-1", "Ada".to_owned()).await?;
//!     println!("{}", hello.result().await?);
//!     Ok(())
//! }
//! ```
//!
//! # Where to go on
//!
//! - The folder `docs` of the repository is the guide, step by step; its folder `examples` holds small
//!   programs of one idea each.
//! - [`Context`] is everything that workflow code can do; [`ActivityContext`] is what an activity knows.
//! - `Client` and `WorkflowHandle` start workflows and speak to them; `Worker` runs them.
//! - [`Error`] is what can go wrong in a workflow, `ClientError` what can go wrong outside.
//!
//! # Features
//!
//! | feature | what it adds |
//! |---|---|
//! | `macros` (default) | `#[workflow]`, `#[activity]`, `#[activities]` |
//! | `grpc` (default) | `Client::connect`: the way to a server; brings `worker` along |
//! | `worker` | workers and clients, over any transport |
//! | `embedded` | `abide::embedded`: an engine in your own process |
//! | `testing` | `abide::testing`: an engine whose time skips ahead, and replay of histories |

#![warn(missing_docs)]

pub use abide_sdk::*;

#[cfg(feature = "embedded")]
pub use abide_embedded as embedded;

#[cfg(feature = "testing")]
pub use abide_sdk_testing as testing;
