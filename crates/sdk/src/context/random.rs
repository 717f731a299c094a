//! Random values that replay: a keyed hash of a counter, with the run as the key. History records
//! nothing.

use std::hash::Hasher;

use siphasher::sip::SipHasher24;

use crate::executor::Board;

/// Types that [`Context::random`](super::Context::random) can return: integers, `bool`, `f64` in
/// `0..1`, and byte arrays.
pub trait Random {
    /// Makes a value from random bits.
    fn draw(bits: &mut dyn FnMut() -> u64) -> Self;
}

impl Board {
    /// The next 64 random bits. The algorithm must not change: histories depend on it.
    pub(super) fn random(&self) -> u64 {
        let mut hasher = SipHasher24::new_with_key(self.started().original_run.as_bytes());
        hasher.write(&self.next_random().to_be_bytes());
        hasher.finish()
    }
}

macro_rules! whole_numbers {
    ($($number:ty),+) => {$(
        impl Random for $number {
            fn draw(bits: &mut dyn FnMut() -> u64) -> Self {
                Self::from_be_bytes(Random::draw(bits))
            }
        }
    )+};
}

whole_numbers!(u8, u16, u32, u64, u128, i8, i16, i32, i64, i128);

impl<const N: usize> Random for [u8; N] {
    fn draw(bits: &mut dyn FnMut() -> u64) -> Self {
        let mut bytes = [0; N];
        for chunk in bytes.chunks_mut(size_of::<u64>()) {
            chunk.copy_from_slice(&bits().to_be_bytes()[..chunk.len()]);
        }
        bytes
    }
}

impl Random for bool {
    fn draw(bits: &mut dyn FnMut() -> u64) -> Self {
        bits() & 1 == 1
    }
}

impl Random for f64 {
    fn draw(bits: &mut dyn FnMut() -> u64) -> Self {
        // 53 bits: the precision of a float.
        let numerator = u32::try_from(bits() >> 32).unwrap_or_default();
        let rest = u32::try_from(bits() >> 43).unwrap_or_default();
        (Self::from(numerator) + Self::from(rest) / 2_f64.powi(21)) / 2_f64.powi(32)
    }
}
