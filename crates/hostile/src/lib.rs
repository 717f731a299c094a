//! Attacks by strangers, played against a real server process on loopback.
//!
//! A [`Scenario`] is a name, a description, and a function. The function gets an [`Arena`], which
//! starts fresh servers on temporary folders, each in its own process ([`Victim`]), so that an
//! abort is noticed and its memory can be measured. An [`Honest`] client of the victim measures
//! what other clients experience meanwhile. A scenario ends with a [`Report`] or with a
//! [`Finding`]; `?` turns any error into a finding:
//!
//! ```no_run
//! use abide_hostile::{Arena, Finding, Report};
//!
//! async fn play(arena: &Arena) -> Result<Report, Finding> {
//!     let victim = arena.start().await?;
//!     let watch = victim.honest().await?.watch();
//!     // Something hostile, through `victim.channel()`, with the bytes of [`raw`] or otherwise.
//!     let latency = watch.end().await?;
//!     let rss = victim.rss();
//!     victim.end().await?; // It lives, and nothing has panicked.
//!     Ok(Report::default().with("RSS", rss).with("slowest call", latency))
//! }
//! ```
//!
//! To add one, write a file in `scenarios` and give it a line in [`scenarios::ALL`].
//!
//! [`fuzz`] goes beyond the scenarios: it generates messages from the API's own descriptors, valid
//! and mutated, for every method and both streams.
//!
//! [`raw`]: crate::raw

mod arena;
pub mod fuzz;
mod generate;
mod honest;
mod memory;
mod owed;
mod parts;
pub mod raw;
mod report;
pub mod scenarios;
mod schema;
pub mod serve;
mod small_disk;
mod victim;
mod worker;

pub use arena::{Arena, Machine};
pub use honest::{Honest, Latency, Watch};
pub use report::{Bytes, Finding, Report};
pub use scenarios::Scenario;
pub use victim::Victim;
