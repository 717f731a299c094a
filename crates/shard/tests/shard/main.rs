//! What a shard does, one rule per test, on the store in memory.

mod absent;
mod blocked;
mod clocks;
mod closing;
mod course;
mod cuts;
mod durability;
mod effects;
mod harness;
mod listed;
mod namespaces;
mod races;
mod read_only;
mod schedules;
mod starts;
mod timers;
mod updates;
mod work;
