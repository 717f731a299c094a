//! Values for tests. The tables of the codec describe how each type is built from its parts; a
//! source provides the parts: random ones, drawn from bytes that a property test can shrink, or the
//! fixed ones of the golden files, which are named after their path.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Debug,
    time::Duration,
    vec::IntoIter,
};

use bytes::Bytes;
use proptest::prelude::{Strategy, any as any_value};

use crate::{
    digest::Digest,
    event::{Body, Event, Fact},
    failure::Failure,
    ids::RunId,
    time::Timestamp,
};

/// Any value of a type.
pub(crate) fn any<T: Sample + Debug>() -> impl Strategy<Value = T> {
    proptest::collection::vec(any_value::<u8>(), 0..400)
        .prop_map(|bytes| T::sample(&mut Source::random(bytes)))
}

/// A type whose values can be drawn from a source.
pub(crate) trait Sample: Sized {
    fn sample(source: &mut Source) -> Self;
}

/// An enum whose cases can be drawn one by one.
pub(crate) trait Cases: Sized {
    fn cases() -> Vec<Case<Self>>;
}

/// Name of an enum's case, and a function that draws it.
pub(crate) type Case<T> = (&'static str, fn(&mut Source) -> T);

/// Provides the parts of a value.
pub(crate) struct Source {
    mode: Mode,
    path: String,
}

enum Mode {
    /// Every choice consumes bytes, and takes the first alternative when none are left.
    Random(IntoIter<u8>),
    /// Every optional part is present, and its value names its path.
    Full,
}

impl Source {
    /// Parts that are drawn from `bytes`.
    pub(crate) fn random(bytes: Vec<u8>) -> Self {
        Self { mode: Mode::Random(bytes.into_iter()), path: String::new() }
    }

    /// The fixed parts of golden files.
    pub(crate) fn full() -> Self {
        Self { mode: Mode::Full, path: String::new() }
    }

    /// The part of this name.
    pub(crate) fn part<T: Sample>(&mut self, name: &str) -> T {
        let length = self.path.len();
        if length > 0 {
            self.path.push('.');
        }
        self.path.push_str(name);
        let part = T::sample(self);
        self.path.truncate(length);
        part
    }

    /// One of the cases; in golden files one of the first two, so that they do not change when
    /// cases are added.
    pub(crate) fn case<T: Cases>(&mut self) -> T {
        let cases = T::cases();
        let bound = match self.mode {
            Mode::Random(_) => cases.len(),
            Mode::Full => cases.len().min(2),
        };
        let index = self.below(bound as u64);
        cases[usize::try_from(index).unwrap()].1(self)
    }

    /// Whether an optional part is present.
    fn present(&mut self) -> bool {
        match &mut self.mode {
            Mode::Random(bytes) => bytes.next().unwrap_or(0) % 2 == 1,
            Mode::Full => true,
        }
    }

    /// A few parts; in golden files two, and one inside a nested list.
    fn list<T: Sample>(&mut self) -> Vec<T> {
        let length = match &mut self.mode {
            Mode::Random(bytes) => bytes.next().unwrap_or(0) % 3,
            Mode::Full if self.path.bytes().any(|byte| byte.is_ascii_digit()) => 1,
            Mode::Full => 2,
        };
        (0..length).map(|index| self.part(&index.to_string())).collect()
    }

    fn below(&mut self, bound: u64) -> u64 {
        match &mut self.mode {
            Mode::Random(bytes) => u64::from(bytes.next().unwrap_or(0)) % bound,
            // Uses bits that differ between fields of one message, so that swapped fields are
            // detected.
            Mode::Full => (self.hash() >> 22) % bound,
        }
    }

    fn number(&mut self) -> u64 {
        let (choice, bytes) = match &mut self.mode {
            Mode::Full => return self.hash() % 10_000 + 1,
            Mode::Random(bytes) => (bytes.next().unwrap_or(0) % 4, bytes),
        };
        match choice {
            0 => 0,
            1 => u64::MAX,
            2 => u64::from(bytes.next().unwrap_or(0)),
            _ => bytes.take(8).fold(0, |number, byte| number << 8 | u64::from(byte)),
        }
    }

    /// The end of the path, which suffices to distinguish the parts of a value.
    fn place(&self) -> String {
        let parts: Vec<_> = self.path.split('.').collect();
        parts[parts.len().saturating_sub(3)..].join(".")
    }

    /// Hash of the path; pinned, because golden files depend on it.
    fn hash(&self) -> u64 {
        self.path.bytes().fold(5381, |hash, byte| hash.wrapping_mul(33) ^ u64::from(byte))
    }
}

impl Sample for bool {
    fn sample(source: &mut Source) -> Self {
        source.present()
    }
}

impl Sample for u64 {
    fn sample(source: &mut Source) -> Self {
        source.number()
    }
}

impl Sample for u32 {
    fn sample(source: &mut Source) -> Self {
        let number = source.number();
        Self::try_from(number).unwrap_or(Self::MAX)
    }
}

impl Sample for Digest {
    fn sample(source: &mut Source) -> Self {
        Self::from_number(u64::sample(source))
    }
}

impl Sample for String {
    fn sample(source: &mut Source) -> Self {
        match source.mode {
            Mode::Full => source.place(),
            Mode::Random(_) => match source.below(4) {
                0 => Self::new(),
                1 => "ü\0∞".to_owned(),
                2 => "long".repeat(40),
                _ => source.number().to_string(),
            },
        }
    }
}

impl Sample for Bytes {
    fn sample(source: &mut Source) -> Self {
        match source.mode {
            Mode::Full => source.place().into(),
            Mode::Random(_) => source.number().to_be_bytes().to_vec().into(),
        }
    }
}

impl Sample for RunId {
    fn sample(source: &mut Source) -> Self {
        let number = source.number();
        Self::from_parts(Timestamp::from_unix_millis(number), u128::from(number))
    }
}

impl Sample for Timestamp {
    fn sample(source: &mut Source) -> Self {
        let number = source.number();
        match number {
            0 => Self::EPOCH,
            u64::MAX => Self::NEVER,
            255 => Self::new(-62_135_596_800, 0).unwrap(),
            _ => Self::from_unix_millis(number).saturating_add(Duration::from_nanos(number)),
        }
    }
}

impl Sample for Duration {
    fn sample(source: &mut Source) -> Self {
        let number = source.number();
        Self::new(number, u32::try_from(number % 1_000_000_000).unwrap())
    }
}

impl<T: Sample> Sample for Option<T> {
    fn sample(source: &mut Source) -> Self {
        source.present().then(|| T::sample(source))
    }
}

impl<T: Sample> Sample for Box<T> {
    fn sample(source: &mut Source) -> Self {
        Self::new(T::sample(source))
    }
}

impl<T: Sample> Sample for Vec<T> {
    fn sample(source: &mut Source) -> Self {
        source.list()
    }
}

impl<T: Sample + Ord> Sample for BTreeSet<T> {
    fn sample(source: &mut Source) -> Self {
        source.list().into_iter().collect()
    }
}

impl<T: Sample> Sample for BTreeMap<String, T> {
    fn sample(source: &mut Source) -> Self {
        source.list().into_iter().collect()
    }
}

impl<A: Sample, B: Sample> Sample for (A, B) {
    fn sample(source: &mut Source) -> Self {
        (A::sample(source), B::sample(source))
    }
}

/// In golden files, a failure and its cause.
impl Sample for Failure {
    fn sample(source: &mut Source) -> Self {
        let cause = |source: &mut Source| source.part::<Option<Self>>("cause");
        let innermost = source.path.ends_with(".cause") && matches!(source.mode, Mode::Full);
        Self {
            message: source.part("message"),
            error_type: source.part("error_type"),
            stack: source.part("stack"),
            kind: source.part("kind"),
            non_retryable: source.part("non_retryable"),
            next_retry_delay: source.part("next_retry_delay"),
            details: source.part("details"),
            causes: if innermost { None } else { cause(source) }.into_iter().collect(),
            extension: source.part("extension"),
        }
    }
}

impl Sample for Body {
    fn sample(source: &mut Source) -> Self {
        let fact: Fact = Sample::sample(source);
        Self::new(fact).with_extension(source.part("extension"))
    }
}

impl Sample for Event {
    fn sample(source: &mut Source) -> Self {
        Self { number: source.part("number"), time: source.part("time"), body: source.part("body") }
    }
}
