//! Text forms of a time: RFC 3339 in human-readable formats, two numbers in others.

use std::{fmt, str::FromStr};

use jiff::fmt::temporal::Pieces;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::Timestamp;

/// Text that is not a time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a time; write it as 2026-11-30T12:00:00Z, with the zone: {reason}")]
pub struct ParseTimestampError {
    text: String,
    reason: String,
}

/// RFC 3339 with `Z` or an offset, to the nanosecond.
impl FromStr for Timestamp {
    type Err = ParseTimestampError;

    fn from_str(text: &str) -> Result<Self, ParseTimestampError> {
        parse(text).map_err(|reason| ParseTimestampError { text: text.to_owned(), reason })
    }
}

fn parse(text: &str) -> Result<Timestamp, String> {
    let pieces = Pieces::parse(text).map_err(|error| error.to_string())?;
    let offset = pieces.to_numeric_offset().ok_or("the zone is missing")?;
    let time = pieces.time().ok_or("the time of day is missing")?;
    let date = pieces.date();
    let days = days_from_civil(date.year().into(), date.month().into(), date.day().into());
    let of_day = i64::from(time.hour()) * 3600 + i64::from(time.minute()) * 60;
    let seconds = days * 86_400 + of_day + i64::from(time.second()) - i64::from(offset.seconds());
    let nanos = u32::try_from(time.subsec_nanosecond()).unwrap_or_default();
    Timestamp::new(seconds, nanos).ok_or_else(|| "it is outside the years 1 to 9999".to_owned())
}

/// The inverse of `civil_from_days`.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let year_of_era = year.rem_euclid(400);
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            return serializer.collect_str(self);
        }
        (self.seconds, self.nanos).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            return deserializer.deserialize_str(Rfc3339);
        }
        let (seconds, nanos) = <(i64, u32)>::deserialize(deserializer)?;
        Self::new(seconds, nanos).ok_or_else(|| de::Error::custom("not a point in time"))
    }
}

struct Rfc3339;

impl de::Visitor<'_> for Rfc3339 {
    type Value = Timestamp;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a time such as \"2026-11-30T12:00:00Z\"")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Timestamp, E> {
        text.parse().map_err(E::custom)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn text_is_read_with_its_zone() {
        let read = |text: &str| text.parse::<Timestamp>();
        assert_eq!(read("9999-12-31T23:59:59.999999999Z"), Ok(Timestamp::NEVER));
        assert_eq!(
            read("1970-01-01T01:00:00.5+01:00").unwrap().to_string(),
            "1970-01-01T00:00:00.5Z"
        );
        assert_eq!(read("2000-02-29 00:00:00Z").unwrap().seconds(), 951_782_400);
        for (text, reason) in [
            ("2026-11-30T12:00:00", "the zone is missing"),
            ("2026-11-30", "the zone is missing"),
            ("2026-02-30T12:00:00Z", "day"),
            ("9999-12-31T23:59:59-01:00", "outside the years 1 to 9999"),
            ("tomorrow", "2026-11-30T12:00:00Z"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }

    proptest! {
        #[test]
        fn what_is_shown_is_read_again(seconds in -62_135_596_800_i64..=253_402_300_799, nanos in 0..1_000_000_000_u32) {
            let time = Timestamp::new(seconds, nanos).unwrap();
            prop_assert_eq!(time.to_string().parse::<Timestamp>(), Ok(time));
            let json = serde_json::to_string(&time).unwrap();
            prop_assert_eq!(&json, &format!("\"{time}\""));
            prop_assert_eq!(serde_json::from_str::<Timestamp>(&json).unwrap(), time);
            let bytes = postcard::to_stdvec(&time).unwrap();
            prop_assert_eq!(postcard::from_bytes::<Timestamp>(&bytes).unwrap(), time);
        }
    }
}
