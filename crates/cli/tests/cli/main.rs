//! The binary as its users have it: real processes on free ports and folders of their own. What is
//! printed is compared with ids and times masked.

mod activity;
mod approvals;
mod bench;
mod codec;
mod conditions;
mod config;
mod course;
mod crash;
mod errors;
mod faults;
mod harness;
mod new;
mod nodes;
mod people;
mod policies;
mod postgres;
mod production;
mod replay;
mod schedules;
mod stories;
mod tls;
mod usage;
