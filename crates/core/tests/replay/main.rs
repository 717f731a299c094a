//! The replay machine, driven by small programs over histories that are written down or drawn.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, and so do its helpers")]

mod cuts;
mod floats;
mod groups;
mod history;
mod mismatches;
mod programs;
mod routing;
mod server;
mod steps;
mod timer_origins;
