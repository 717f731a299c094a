//! One rule of a specification, ready to be searched.

use super::{calendar::Matcher, interval::Interval, zone::Zone};
use crate::time::Timestamp;

#[derive(Clone, Debug)]
pub(super) enum Rule {
    Calendar(Box<Matcher>, Zone),
    Interval(Interval),
}

impl Rule {
    /// First time after `after`; `None` if none follows.
    pub(super) fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Calendar(matcher, zone) => zone.next_after(matcher, after),
            Self::Interval(interval) => interval.next_after(after),
        }
    }
}
