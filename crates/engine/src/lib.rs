//! The async driver: it carries messages between the state machines of `abide-shard`, a store and
//! workers, and decides nothing. An `if` about workflow state here is a bug.
//!
//! - [`Engine`]: the handle of clients, operators and workers.
//! - [`Session`]: one connected worker, with the stream that delivers its work.
//! - [`clock`]: system time, or time that a test moves.
//! - [`Gauge`]: counts work in flight, for tests that move time.
//! - [`Figures`]: counters and gauges for metrics.
//! - [`Health`]: current problems, for operators.
//! - `access`: authorization of callers.
//! - `reads`: operations answered from the store; `history`: pages of a run's log.
//! - `driver`: one task per shard: fetch, step, commit, deliver.
//! - `members`: drives the lease, which decides the shards that this node serves; with
//!   [`Membership`], one node of several.
//! - [`peers`]: the transport to other nodes.

mod access;
pub mod clock;
mod cluster;
mod driver;
mod engine;
mod figures;
mod gauge;
mod health;
mod history;
mod lock;
mod members;
mod node;
mod nodes;
mod outbox;
pub mod peers;
mod reads;
mod route;
mod search;
mod session;
mod turns;

pub use abide_core::dispatch::Given;
pub use abide_shard::{borders::Borders, lease::LeaseOptions};
pub use cluster::Membership;
pub use engine::{DEFAULT_NAMESPACE, Engine, Options};
pub use figures::{CommitTimes, Figures, StoreFault};
pub use gauge::{Gauge, InFlight};
pub use health::{ClockStep, Damage, Health, RefusedCommit, StoreTrouble};
pub use outbox::{Account, Charge};
pub use session::{Credits, Session};
pub use turns::{Turn, Turns};
