//! Points in time as seconds and nanoseconds, the only representation in which "never"
//! (9999-12-31T23:59:59.999999999Z) survives exactly: 64-bit nanoseconds overflow in 2262 and
//! microsecond columns round it. Nothing here reads a clock.

mod text;

use std::{
    fmt,
    ops::{Add, Sub},
    time::{Duration, SystemTime},
};

pub use self::text::ParseTimestampError;

const NANOS_PER_SECOND: u32 = 1_000_000_000;

/// Flipped, it makes negative numbers sort before others.
const SIGN: u64 = 1 << 63;

/// A point in time in UTC, to the nanosecond, from 0001-01-01 to 9999-12-31.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    seconds: i64,
    nanos: u32,
}

impl Timestamp {
    /// 1970-01-01T00:00:00Z.
    pub const EPOCH: Self = Self { seconds: 0, nanos: 0 };

    /// Last representable time, which means "never" as the due time of a signal wait.
    pub const NEVER: Self = Self { seconds: 253_402_300_799, nanos: NANOS_PER_SECOND - 1 };

    /// Latest time at which something can be due.
    pub const LATEST: Self = Self { nanos: NANOS_PER_SECOND - 2, ..Self::NEVER };

    const MIN_SECONDS: i64 = -62_135_596_800;

    /// The time `seconds` and `nanos` after the epoch; `None` outside the years 1 to 9999.
    pub const fn new(seconds: i64, nanos: u32) -> Option<Self> {
        if seconds < Self::MIN_SECONDS || seconds > Self::NEVER.seconds || nanos >= NANOS_PER_SECOND
        {
            return None;
        }
        Some(Self { seconds, nanos })
    }

    /// The time `millis` milliseconds after the epoch.
    pub fn from_unix_millis(millis: u64) -> Self {
        Self::EPOCH.saturating_add(Duration::from_millis(millis))
    }

    /// Whole seconds since the epoch; negative before it.
    pub const fn seconds(self) -> i64 {
        self.seconds
    }

    /// Nanoseconds within the second.
    pub const fn nanos(self) -> u32 {
        self.nanos
    }

    /// Whole milliseconds since the epoch; zero before it.
    pub fn unix_millis(self) -> u64 {
        let seconds = u64::try_from(self.seconds).unwrap_or_default();
        seconds.saturating_mul(1000).saturating_add(u64::from(self.nanos / 1_000_000))
    }

    /// Twelve bytes that sort like the times that they stand for.
    #[doc(hidden)]
    pub fn to_sorted_bytes(self) -> [u8; 12] {
        let mut bytes = [0; 12];
        let seconds = self.seconds.cast_unsigned() ^ SIGN;
        bytes[..8].copy_from_slice(&seconds.to_be_bytes());
        bytes[8..].copy_from_slice(&self.nanos.to_be_bytes());
        bytes
    }

    /// The time that these bytes stand for, if any.
    #[doc(hidden)]
    pub fn from_sorted_bytes(bytes: &[u8]) -> Option<Self> {
        let (seconds, nanos) = bytes.split_first_chunk::<8>()?;
        let seconds = (u64::from_be_bytes(*seconds) ^ SIGN).cast_signed();
        Self::new(seconds, u32::from_be_bytes(nanos.try_into().ok()?))
    }

    /// Whether this is the sentinel that means "never".
    pub fn is_never(self) -> bool {
        self == Self::NEVER
    }

    /// Adds `duration`, saturating at [`Self::NEVER`].
    #[must_use]
    pub fn saturating_add(self, duration: Duration) -> Self {
        let nanos = self.nanos + duration.subsec_nanos();
        let seconds = i64::try_from(duration.as_secs())
            .unwrap_or(i64::MAX)
            .saturating_add(self.seconds)
            .saturating_add(i64::from(nanos / NANOS_PER_SECOND));
        Self::new(seconds, nanos % NANOS_PER_SECOND).unwrap_or(Self::NEVER)
    }

    /// Subtracts `duration`, saturating at the year 1.
    #[must_use]
    pub fn saturating_sub(self, duration: Duration) -> Self {
        let borrow = self.nanos < duration.subsec_nanos();
        let nanos = self.nanos + if borrow { NANOS_PER_SECOND } else { 0 };
        let seconds = self
            .seconds
            .saturating_sub(i64::try_from(duration.as_secs()).unwrap_or(i64::MAX))
            .saturating_sub(i64::from(borrow));
        Self::new(seconds, nanos - duration.subsec_nanos())
            .unwrap_or(Self { seconds: Self::MIN_SECONDS, nanos: 0 })
    }

    /// Time since `earlier`; zero if that is later.
    pub fn saturating_since(self, earlier: Self) -> Duration {
        if self <= earlier {
            return Duration::ZERO;
        }
        let borrow = self.nanos < earlier.nanos;
        let seconds = self.seconds - earlier.seconds - i64::from(borrow);
        let nanos = self.nanos + if borrow { NANOS_PER_SECOND } else { 0 } - earlier.nanos;
        Duration::new(u64::try_from(seconds).unwrap_or_default(), nanos)
    }
}

/// Saturates at [`Timestamp::NEVER`].
impl Add<Duration> for Timestamp {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        self.saturating_add(duration)
    }
}

/// Saturates at the year 1.
impl Sub<Duration> for Timestamp {
    type Output = Self;

    fn sub(self, duration: Duration) -> Self {
        self.saturating_sub(duration)
    }
}

/// Zero if the other time is later.
impl Sub for Timestamp {
    type Output = Duration;

    fn sub(self, earlier: Self) -> Duration {
        self.saturating_since(earlier)
    }
}

/// Saturates outside the years 1 to 9999.
impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Self {
        match time.duration_since(SystemTime::UNIX_EPOCH) {
            Ok(since) => Self::EPOCH.saturating_add(since),
            Err(before) => Self::EPOCH.saturating_sub(before.duration()),
        }
    }
}

/// A time that the system cannot represent becomes the epoch.
impl From<Timestamp> for SystemTime {
    fn from(time: Timestamp) -> Self {
        let (since, before) = (time - Timestamp::EPOCH, Timestamp::EPOCH - time);
        let shifted = if before.is_zero() {
            Self::UNIX_EPOCH.checked_add(since)
        } else {
            Self::UNIX_EPOCH.checked_sub(before)
        };
        shifted.unwrap_or(Self::UNIX_EPOCH)
    }
}

/// RFC 3339, with as many fractional digits as needed.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = civil_from_days(self.seconds.div_euclid(86_400));
        let second_of_day = self.seconds.rem_euclid(86_400);
        let (hour, minute, second) =
            (second_of_day / 3600, second_of_day / 60 % 60, second_of_day % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")?;
        if self.nanos != 0 {
            let digits = format!("{:09}", self.nanos);
            write!(f, ".{}", digits.trim_end_matches('0'))?;
        }
        f.write_str("Z")
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Year, month and day of the proleptic Gregorian calendar, `days` after the epoch. Counts in
/// 400-year eras that begin on March 1st, so that the leap day is the last day of a year.
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_sentinel_is_exact() {
        assert_eq!(Timestamp::NEVER.to_string(), "9999-12-31T23:59:59.999999999Z");
        assert_eq!(Timestamp::NEVER.seconds(), 253_402_300_799);
        assert_eq!(Timestamp::NEVER.saturating_add(Duration::from_nanos(1)), Timestamp::NEVER);
        let before = Timestamp::new(253_402_300_799, 999_999_998).unwrap();
        assert!(!before.is_never());
        assert!(before.saturating_add(Duration::from_nanos(1)).is_never());
    }

    #[test]
    fn known_dates() {
        let show = |seconds| Timestamp::new(seconds, 0).unwrap().to_string();
        assert_eq!(show(0), "1970-01-01T00:00:00Z");
        assert_eq!(show(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(show(-1), "1969-12-31T23:59:59Z");
        assert_eq!(show(Timestamp::MIN_SECONDS), "0001-01-01T00:00:00Z");
        assert_eq!(Timestamp::from_unix_millis(1_500).to_string(), "1970-01-01T00:00:01.5Z");
        assert!(Timestamp::new(Timestamp::MIN_SECONDS - 1, 0).is_none());
        assert!(Timestamp::new(0, NANOS_PER_SECOND).is_none());
    }

    #[test]
    fn there_is_nothing_before_the_first_moment() {
        let first = Timestamp::new(Timestamp::MIN_SECONDS, 0).unwrap();
        assert_eq!(first - Duration::from_nanos(1), first);
        assert_eq!(Timestamp::NEVER - Duration::MAX, first);
        assert_eq!(first + Duration::MAX, Timestamp::NEVER);
    }

    proptest! {
        #[test]
        fn moments_of_the_system_are_kept(
            seconds in -4_000_000_000..4_000_000_000_i64, nanos in 0..NANOS_PER_SECOND / 100,
        ) {
            // Some systems count in steps of 100 nanoseconds.
            let moment = Timestamp::new(seconds, nanos * 100).unwrap();
            prop_assert_eq!(Timestamp::from(SystemTime::from(moment)), moment);
        }

        #[test]
        fn adding_and_subtracting_agree(
            seconds in 0..4_000_000_000_i64, nanos in 0..NANOS_PER_SECOND,
            more in 0..4_000_000_000_u64, more_nanos in 0..NANOS_PER_SECOND,
        ) {
            let start = Timestamp::new(seconds, nanos).unwrap();
            let duration = Duration::new(more, more_nanos);
            prop_assert_eq!((start + duration) - start, duration);
            prop_assert_eq!((start + duration) - duration, start);
            prop_assert_eq!(start.saturating_since(start.saturating_add(duration)), Duration::ZERO);
        }
    }
}
