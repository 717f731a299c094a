//! Time zones, from data that is part of the program: no file is read, so all nodes of one version
//! agree.
//!
//! When clocks are put forward, the skipped hour does not exist; when they are put back, an hour
//! comes twice. A calendar with given hours then still matches each of its times once: a skipped
//! time at the moment the clocks change, a repeated time when it comes first. A calendar that
//! matches in every hour follows the clock on the wall: skipped times do not come, repeated ones
//! come twice.

use std::{sync::LazyLock, time::Duration};

use jiff::{
    SignedDuration, Span,
    civil::DateTime,
    tz::{AmbiguousOffset, Offset, TimeZone, TimeZoneDatabase},
};

use super::calendar::Matcher;
use crate::time::Timestamp;

/// The data of all time zones, inside the program.
static ZONES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// A time zone.
#[derive(Clone, Debug)]
pub(super) struct Zone(TimeZone);

/// Changes of a zone's offset that one search crosses.
const CHANGES_SEARCHED: usize = 1000;

impl Zone {
    pub(super) const UTC: Self = Self(TimeZone::UTC);

    /// The zone of an IANA name; an empty one is UTC.
    pub(super) fn named(name: &str) -> Result<Self, String> {
        if name.is_empty() {
            return Ok(Self::UTC);
        }
        let hint = "is no time zone; use a name of the IANA list, such as Europe/Berlin or UTC";
        ZONES.get(name).map(Self).map_err(|_| format!("{name:?} {hint}"))
    }

    /// What a clock on the wall shows.
    pub(super) fn local(&self, at: Timestamp) -> Option<DateTime> {
        Some(self.0.to_datetime(to_jiff(at)?))
    }

    /// Last moment before the next day begins.
    pub(super) fn end_of_day(&self, at: Timestamp) -> Option<Timestamp> {
        let midnight = self.local(at)?.date().tomorrow().ok()?.to_datetime(Default::default());
        Some(self.moment(midnight)? - Duration::from_nanos(1))
    }

    /// First time after `after` that matches.
    pub(super) fn next_after(&self, matcher: &Matcher, after: Timestamp) -> Option<Timestamp> {
        if matcher.hourly() {
            self.next_literal(matcher, after)
        } else {
            self.next_once(matcher, after)
        }
    }

    /// Each time of the calendar comes once. Later times of a wall clock are never earlier moments, so
    /// the first that is late enough is the next.
    fn next_once(&self, matcher: &Matcher, after: Timestamp) -> Option<Timestamp> {
        let mut from = following_second(self.local(after)?)?;
        loop {
            let found = matcher.next(from)?;
            let at = self.moment(found)?;
            if at > after {
                return Some(at);
            }
            from = following_second(found)?;
        }
    }

    /// Each moment whose wall clock matches, searched between changes of the offset.
    fn next_literal(&self, matcher: &Matcher, after: Timestamp) -> Option<Timestamp> {
        let after = to_jiff(after)?;
        let mut from = following_second(self.0.to_datetime(after))?;
        let mut begin = after;
        for _ in 0..CHANGES_SEARCHED {
            let offset = self.0.to_offset(begin);
            let found = offset.to_timestamp(matcher.next(from)?).ok()?;
            let change = self.0.following(begin).next().map(|change| change.timestamp());
            match change {
                Some(change) if change <= found => {
                    // If it is far beyond, all changes on the way are skipped.
                    let near = found.checked_sub(SignedDuration::from_hours(48)).ok()?;
                    begin = change.max(near);
                    from = self.0.to_datetime(begin);
                }
                _ => return from_jiff(found),
            }
        }
        None
    }

    /// The moment of a time of a wall clock that comes once.
    fn moment(&self, local: DateTime) -> Option<Timestamp> {
        let at = self.0.to_ambiguous_timestamp(local);
        let earliest = |offset: Offset| offset.to_timestamp(local).ok();
        from_jiff(match at.offset() {
            AmbiguousOffset::Unambiguous { offset } => earliest(offset)?,
            AmbiguousOffset::Fold { before, .. } => earliest(before)?,
            AmbiguousOffset::Gap { before, .. } => {
                let inside = earliest(before)?.checked_add(SignedDuration::from_nanos(1)).ok()?;
                self.0.preceding(inside).next()?.timestamp()
            }
        })
    }
}

/// The whole second after a time.
fn following_second(local: DateTime) -> Option<DateTime> {
    let second = local.with().subsec_nanosecond(0).build().ok()?;
    second.checked_add(Span::new().seconds(1)).ok()
}

fn to_jiff(at: Timestamp) -> Option<jiff::Timestamp> {
    jiff::Timestamp::new(at.seconds(), i32::try_from(at.nanos()).ok()?).ok()
}

fn from_jiff(at: jiff::Timestamp) -> Option<Timestamp> {
    Timestamp::new(at.as_second(), 0)
}
