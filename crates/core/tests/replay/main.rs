//! The replay machine, driven by small programs over histories that are written down or drawn.

mod cuts;
mod floats;
mod groups;
mod history;
mod mismatches;
mod routing;
mod server;
mod timer_origins;
