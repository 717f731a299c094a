//! The engine drives the true machines on a true store. Workers here run interpreted programs.

mod cable;
mod clocks;
mod cluster;
mod namespaces;
mod recovery;
mod runs;
mod support;
mod wires;
