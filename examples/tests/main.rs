//! Runs the examples and the guide as a user would, and compares what they print.

#[cfg(unix)]
mod console;
#[cfg(unix)]
mod guide;
mod programs;
mod repository;
