//! The engine runs the real state machines on a real store. The test workers run interpreted programs.

mod cable;
mod clocks;
mod cluster;
mod namespaces;
mod recovery;
mod runs;
mod support;
mod wires;
