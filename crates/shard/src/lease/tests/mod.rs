//! What leases promise: rules by example on a cluster whose store answers at once, then a simulation
//! in which everything is late, lost, paused or killed.

mod cluster;
mod rules;
mod simulation;
