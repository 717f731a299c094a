//! What strangers may do to a server, played against a true server process on loopback.
//!
//! A [`Scenario`] is a name, what it plays, and a function. The function gets an [`Arena`], which starts
//! fresh servers on temporary folders, each a process of its own ([`Victim`]): so an abort is seen, and
//! its memory can be read. An [`Honest`] client of the victim measures what others feel meanwhile. A
//! scenario ends with a [`Report`], or with a [`Finding`], which any error becomes by `?`:
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
//! [`fuzz`] goes on where scenarios end: it makes messages by the API's own descriptors, valid and mutated,
//! for every method and both streams.
//!
//! [`raw`]: crate::raw

#![warn(missing_docs)]

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
mod victim;

pub use arena::{Arena, Machine};
pub use honest::{Honest, Latency, Watch};
pub use report::{Bytes, Finding, Report};
pub use scenarios::Scenario;
pub use victim::Victim;
