//! Runs the examples and the guide as a user would, and compares what they print.

mod comparison;
#[cfg(unix)]
mod console;
#[cfg(unix)]
mod guide;
mod programs;
mod repository;
