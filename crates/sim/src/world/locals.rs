//! Local activities: they end within the task that started them or in a later one, and run again if
//! the worker drops the run before that.

use std::time::Duration;

use abide_core::{event::Marker, failure::Failure, payload::Payload};
use abide_sdk::activity::{LocalActivity, LocalEnd, LocalVerdict};

use super::World;
use crate::code;

/// How often a running one does not end within the task, in thousandths.
const GOES_ON: u64 = 300;

impl World {
    /// The end of one of the running local activities, if one ends now.
    pub(super) fn end_local(&mut self, running: &[LocalActivity]) -> Option<Marker> {
        if !self.calm && self.rng.chance(GOES_ON) {
            return None;
        }
        let activity = self.rng.pick(running)?;
        let mut attempt = activity.attempt;
        loop {
            let Some(failure) = self.fails_locally(&activity.activity_type) else {
                let value = format!("made {}", code::make_value());
                let end = LocalEnd::Completed(vec![Payload::new(value)]);
                return Some(activity.marker(attempt, end));
            };
            match activity.judge(attempt, failure, Duration::ZERO) {
                LocalVerdict::Again(_) => attempt += 1,
                LocalVerdict::Ends(end) => return Some(activity.marker(attempt, end)),
            }
        }
    }

    fn fails_locally(&mut self, activity_type: &str) -> Option<Failure> {
        let non_retryable = match activity_type {
            "flaky" if self.trouble(500) => false,
            "fatal" if self.trouble(500) => true,
            _ => return None,
        };
        Some(Failure { message: "drawn".into(), non_retryable, ..Failure::default() })
    }
}
