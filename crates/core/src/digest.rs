//! Digests of requests, stored with idempotency keys: a repeated request has the same digest, and a
//! key that is reused for another request is refused. They are stored, so they never change.

use std::{hash::Hasher, time::Duration};

use serde::{Deserialize, Serialize};
use siphasher::sip::SipHasher24;

use crate::{payload::Payload, time::Timestamp};

/// Digest of a request: SipHash-2-4 with a zero key over its length-prefixed parts. It detects
/// mistakes, not forgery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Digest(u64);

impl Digest {
    /// The request is not known: the record predates digests, or the request has no content.
    pub const UNKNOWN: Self = Self(0);

    /// Digest of a signal, an update or a start: its name and its arguments. Caller and headers may
    /// differ between repeats.
    pub fn of_message(name: &str, input: &[Payload]) -> Self {
        let mut parts = Parts::default();
        parts.add(name.as_bytes());
        for Payload { metadata, data } in input {
            parts.count(metadata.len());
            for (name, value) in metadata {
                parts.add(name.as_bytes());
                parts.add(value);
            }
            parts.add(data);
        }
        parts.digest()
    }

    /// Digest of the time that a reschedule asks for: the length, if the caller asked for a time
    /// from now, because a repeat of "in two hours" computes another due time.
    pub fn of_due_time(fire_at: Timestamp, after: Option<Duration>) -> Self {
        let mut parts = Parts::default();
        let (kind, seconds, nanos) = match after {
            None => ("at", fire_at.seconds().to_be_bytes(), fire_at.nanos()),
            Some(after) => ("after", after.as_secs().to_be_bytes(), after.subsec_nanos()),
        };
        parts.add(kind.as_bytes());
        parts.add(&seconds);
        parts.add(&nanos.to_be_bytes());
        parts.digest()
    }

    /// Digest from its number in the log; zero means unknown.
    pub const fn from_number(number: u64) -> Self {
        Self(number)
    }

    pub const fn number(self) -> u64 {
        self.0
    }

    /// Whether both are known and differ.
    pub fn differs(self, other: Self) -> bool {
        self != Self::UNKNOWN && other != Self::UNKNOWN && self != other
    }
}

#[derive(Default)]
struct Parts(SipHasher24);

impl Parts {
    fn add(&mut self, part: &[u8]) {
        self.count(part.len());
        self.0.write(part);
    }

    fn count(&mut self, count: usize) {
        self.0.write(&u64::try_from(count).unwrap_or(u64::MAX).to_be_bytes());
    }

    /// Never zero, which means unknown.
    fn digest(self) -> Digest {
        Digest(self.0.finish().max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payload(encoding: &'static str, data: &'static str) -> Payload {
        let metadata = [("encoding".to_owned(), encoding.into())].into();
        Payload { metadata, data: data.into() }
    }

    /// Digests are stored in logs, so these numbers never change.
    #[test]
    fn digests_are_pinned() {
        let signal = Digest::of_message("go", &[payload("json", "1"), payload("json", "2")]);
        let at = Digest::of_due_time(Timestamp::from_unix_millis(1500), None);
        let after = Digest::of_due_time(Timestamp::EPOCH, Some(Duration::from_millis(1500)));
        assert_eq!(
            [signal.number(), at.number(), after.number()],
            [17_313_348_093_320_132_686, 99_796_949_927_305_513, 4_614_726_317_682_784_649]
        );
    }

    #[test]
    fn every_part_counts_and_parts_do_not_run_together() {
        let json = |data| payload("json", data);
        let said = [
            Digest::of_message("go", &[]),
            Digest::of_message("g", &[Payload::new("o")]),
            Digest::of_message("go", &[Payload::default()]),
            Digest::of_message("go", &[json("12")]),
            Digest::of_message("go", &[json("1"), json("2")]),
            Digest::of_message("go", &[json("2"), json("1")]),
            Digest::of_message("go", &[payload("text", "12")]),
        ];
        for (index, one) in said.iter().enumerate() {
            assert!(said[index + 1..].iter().all(|other| one.differs(*other)), "{index}");
        }
    }

    #[test]
    fn a_time_from_now_is_the_same_request_whenever_it_is_repeated() {
        let hours = |hours: u64| Duration::from_secs(hours * 3600);
        let asked = |now: u64, after| {
            let now = Timestamp::from_unix_millis(now);
            (Digest::of_due_time(now + after, Some(after)), Digest::of_due_time(now + after, None))
        };
        let ((first, first_at), (again, again_at)) = (asked(1, hours(2)), asked(2, hours(2)));
        assert!(!first.differs(again) && first_at.differs(again_at));
        assert!(first.differs(asked(1, hours(3)).0) && first.differs(first_at));
    }

    #[test]
    fn what_is_not_known_may_be_the_same() {
        let known = Digest::of_message("go", &[]);
        assert!(!known.differs(Digest::UNKNOWN) && !Digest::UNKNOWN.differs(known));
        assert!(!known.differs(known));
    }
}
