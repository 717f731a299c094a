//! Durable workflows in Rust: the one crate to import.
//!
//! A workflow is ordinary async code that may sleep for a month, wait for a signal, or call activities,
//! and survives any crash or deploy while it waits.
//!
//! ```
//! use std::time::Duration;
//!
//! use abide::prelude::*;
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Clone, Serialize, Deserialize)]
//! struct Decision {
//!     approved: bool,
//! }
//!
//! #[activity]
//! async fn notify(person: String, text: String) -> std::io::Result<()> {
//!     println!("to {person}: {text}");
//!     Ok(())
//! }
//!
//! #[derive(Default)]
//! struct Approval {
//!     reminders: u32,
//! }
//!
//! #[workflow]
//! impl Approval {
//!     #[run]
//!     async fn run(ctx: &Context<Self>, person: String) -> abide::Result<bool> {
//!         loop {
//!             ctx.activity(notify, (person.clone(), "please decide".into())).await?;
//!             ctx.write(|state| state.reminders += 1);
//!             match ctx.receive(Self::decided).timeout(Duration::from_secs(24 * 60 * 60)).await? {
//!                 Outcome::Received(decision) => return Ok(decision.approved),
//!                 Outcome::TimedOut => continue,
//!             }
//!         }
//!     }
//!
//!     #[signal]
//!     pub fn decided(decision: Decision);
//!
//!     #[query]
//!     pub fn reminders(&self) -> u32 {
//!         self.reminders
//!     }
//! }
//! # let mut registry = abide::Registry::new();
//! # registry.workflow::<Approval>().unwrap();
//! # registry.activity(notify).unwrap();
//! ```
//!
//! Everything of the SDK is here: [`Context`] is what workflows hold, [`ActivityContext`] what
//! activities hold, and [`Registry`] what a worker can run.

#![warn(missing_docs)]

pub use abide_sdk::*;

#[cfg(feature = "embedded")]
pub use abide_embedded as embedded;

#[cfg(feature = "testing")]
pub use abide_sdk_testing as testing;
