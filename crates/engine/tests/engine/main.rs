//! The engine runs the real state machines on a real store. The test workers run interpreted programs.

mod batches;
mod cable;
mod clocks;
mod cluster;
mod links;
mod lists;
mod loads;
mod namespaces;
mod panics;
mod recovery;
mod runs;
mod support;
mod turns;
