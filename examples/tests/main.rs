//! Runs the examples and the guide as a user would, and compares what they print.

mod console;
mod guide;
mod programs;
mod repository;
