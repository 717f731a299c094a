//! The async driver: it carries messages between the machines of `abide-shard`, a store and workers,
//! and decides nothing. An `if` about workflow state here is a bug.
//!
//! - [`Engine`]: the handle; calls go in, answers come out, workers connect.
//! - [`Worker session`](Session): one connected worker; what it is given arrives on its stream.
//! - [`clock`]: real time, or time that a test moves.
//! - [`Gauge`]: what is under way, for tests that move time.
//! - [`Figures`]: what is counted, for those who watch.
//! - [`Health`]: what is wrong, for those who run it.
//! - `access`: who may ask for what.
//! - `reads`: what is read from the store; `history`: pages of a run's log.
//! - `driver`: one task per shard: fetch, step, commit, deliver.
//! - `members`: which shards are served here; with [`Membership`], one node of several.
//! - [`peers`]: the way to other nodes.

#![warn(missing_docs)]

mod access;
pub mod clock;
mod cluster;
mod driver;
mod engine;
mod figures;
mod gauge;
mod health;
mod history;
mod members;
mod node;
mod nodes;
pub mod peers;
mod reads;
mod session;
mod way;

pub use abide_shard::{borders::Borders, lease::LeaseOptions, node::Given};
pub use cluster::Membership;
pub use engine::{DEFAULT_NAMESPACE, Engine, Options};
pub use figures::{CommitTimes, Figures, StoreFault};
pub use gauge::{Gauge, Work};
pub use health::{ClockStep, Damage, Health, StoreTrouble};
pub use session::{Credits, Session};
