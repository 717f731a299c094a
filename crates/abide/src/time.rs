//! Lengths of time by name, and what has a current time.

pub use abide_sdk::time::{Now, days, hours, minutes, months, seconds, weeks, years};
