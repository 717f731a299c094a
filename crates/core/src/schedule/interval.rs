//! Times at a fixed distance. They count from the epoch, so they do not depend on when they were
//! asked for.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{limits::InvalidField, time::Timestamp};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interval {
    /// Distance between two times, in whole seconds.
    pub every: Duration,
    /// Moves all times by so much: less than the distance, in whole seconds.
    pub offset: Option<Duration>,
}

impl Interval {
    pub(crate) fn every(every: Duration) -> Self {
        Self { every, offset: None }
    }

    pub(crate) fn check(&self, field: &str) -> Result<(), InvalidField> {
        let refuse = |problem: String| Err(InvalidField::new(field, problem));
        let whole = |length: Duration| length.subsec_nanos() == 0;
        if !whole(self.every) || self.every.is_zero() {
            return refuse(format!("is {:?}; it takes one or more whole seconds", self.every));
        }
        if i64::try_from(self.every.as_secs()).is_err() {
            return refuse(format!("is {:?}, which no time can be apart", self.every));
        }
        let offset = self.offset.unwrap_or_default();
        if !whole(offset) || offset >= self.every {
            return refuse(format!(
                "has the offset {offset:?}, which is not a whole number of seconds below {:?}",
                self.every
            ));
        }
        Ok(())
    }

    /// First time after `after`.
    pub(crate) fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        let every = i64::try_from(self.every.as_secs()).ok().filter(|every| *every > 0)?;
        let offset = i64::try_from(self.offset.unwrap_or_default().as_secs()).ok()?;
        let passed = after.seconds().checked_sub(offset)?.div_euclid(every);
        let next = passed.checked_add(1)?.checked_mul(every)?.checked_add(offset)?;
        Timestamp::new(next, 0)
    }
}
