//! Lengths of time by name, and what has a current time.

pub use abide_sdk::time::{
    Now, ParseTimestampError, days, hours, minutes, months, now, seconds, weeks, years,
};
