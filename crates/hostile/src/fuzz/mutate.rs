//! Mutates messages: nests, repeats, cuts and swaps parts, and lies about lengths and types.

use fastrand::Rng;
use prost::encoding::{WireType, encode_key, encode_varint};

use crate::{
    generate::BOUNDARIES,
    parts::{Part, Value, encode, groups, nested},
};

/// Largest message in bytes: a server refuses a larger one unread.
const BYTES_MAX: usize = 17 << 20;

/// How often a part is repeated or nested; the large numbers are rare.
const COUNTS: [usize; 10] = [2, 2, 3, 3, 10, 10, 101, 101, 5_000, 70_000];

/// The bytes of a message after some mutations.
pub(super) fn mutated(rng: &mut Rng, mut message: Vec<Part>) -> Vec<u8> {
    for _ in 0..1 + rng.usize(..3) {
        mutate_tree(rng, &mut message);
    }
    let mut bytes = encode(&message);
    if rng.u8(..8) == 0 {
        mutate_bytes(rng, &mut bytes);
    }
    bytes.truncate(BYTES_MAX);
    bytes
}

fn mutate_tree(rng: &mut Rng, message: &mut Vec<Part>) {
    let parts = count(message);
    if parts == 0 {
        message.push(odd_field(rng, 1));
        return;
    }
    let mut place = rng.usize(..parts);
    let Some((around, index)) = find(message, &mut place) else { return };
    let tag = around[index].tag;
    match rng.u8(..14) {
        0 => around[index].value = Value::Raw(nested(tag, some(rng))),
        1 => around[index].value = Value::Raw(groups(tag, some(rng), rng.bool())),
        2 => repeat(rng, around, index),
        3 => drop(around.remove(index)),
        4 => {
            let other = rng.usize(..around.len());
            let tag = std::mem::replace(&mut around[other].tag, tag);
            around[index].tag = tag;
        }
        5 => around[index].tag = rng.u32(1..80),
        6 => around[index] = odd_field(rng, tag),
        7 => around.push(odd_field(rng, tag)),
        8 => around[index].value = Value::Number(BOUNDARIES[rng.usize(..BOUNDARIES.len())]),
        9 => around[index].value = Value::Bytes(Vec::new()),
        10 => around[index].value = Value::Bytes(not_text(rng)),
        11 => around[index].value = Value::Bytes(vec![b'x'; length(rng)]),
        12 => around[index].value = Value::Bytes(vec![rng.u8(..); length(rng)]),
        _ => cut(rng, &mut around[index]),
    }
}

fn some(rng: &mut Rng) -> usize {
    COUNTS[rng.usize(..COUNTS.len())]
}

/// A length near one of the bounds.
fn length(rng: &mut Rng) -> usize {
    let lengths = [1, 999, 1_000, 1_001, 9_000, 65_536, 65_537, 2 << 20, (2 << 20) + 1, 5 << 20];
    // The large ones are rare: they find little and take long.
    let most = if rng.u8(..8) == 0 { lengths.len() } else { 5 };
    lengths[rng.usize(..most)]
}

fn repeat(rng: &mut Rng, around: &mut Vec<Part>, index: usize) {
    let mut times = some(rng);
    let size = encode(&around[index..=index]).len().max(1);
    times = times.min(BYTES_MAX / size);
    let copies = vec![around[index].clone(); times];
    around.splice(index..index, copies);
}

/// Cuts the end off a field, gives it a wrong length, or appends stray bytes.
fn cut(rng: &mut Rng, part: &mut Part) {
    let mut bytes = encode(std::slice::from_ref(part));
    match rng.u8(..3) {
        0 => bytes.truncate(rng.usize(..bytes.len().max(1))),
        1 => {
            bytes.clear();
            encode_key(part.tag.max(1), WireType::LengthDelimited, &mut bytes);
            encode_varint(BOUNDARIES[rng.usize(..BOUNDARIES.len())], &mut bytes);
        }
        _ => bytes.extend([0xff; 11]),
    }
    part.value = Value::Raw(bytes);
}

/// A field of any type but the right one.
fn odd_field(rng: &mut Rng, tag: u32) -> Part {
    let value = match rng.u8(..5) {
        0 => Value::Number(rng.u64(..)),
        1 => Value::Fixed32(rng.u32(..)),
        2 => Value::Fixed64(rng.u64(..)),
        3 => Value::Raw(vec![rng.u8(..), rng.u8(..)]),
        // Many numbers, as in a packed field.
        _ => Value::Bytes(vec![rng.u8(..0x80); some(rng)]),
    };
    Part { tag, value }
}

fn not_text(rng: &mut Rng) -> Vec<u8> {
    let bytes: [&[u8]; 5] =
        [b"\xff\xfe", b"\xc3\x28", b"a\0b", b"\x1b[31m\r\n", "\u{202e}\u{feff}".as_bytes()];
    bytes[rng.usize(..bytes.len())].to_vec()
}

fn mutate_bytes(rng: &mut Rng, bytes: &mut Vec<u8>) {
    if bytes.is_empty() {
        return;
    }
    let place = rng.usize(..bytes.len());
    match rng.u8(..4) {
        0 => bytes.truncate(place),
        1 => bytes[place] ^= 1 << rng.u8(..8),
        2 => bytes[place] = rng.u8(..),
        _ => {
            let again = bytes[place..].to_vec();
            bytes.extend(again);
        }
    }
}

/// Number of parts, on all levels.
fn count(message: &[Part]) -> usize {
    let inner = |part: &Part| match &part.value {
        Value::Message(parts) => count(parts),
        _ => 0,
    };
    message.iter().map(|part| 1 + inner(part)).sum()
}

/// Finds a part by its number, with its siblings.
fn find<'a>(message: &'a mut Vec<Part>, place: &mut usize) -> Option<(&'a mut Vec<Part>, usize)> {
    for index in 0..message.len() {
        if *place == 0 {
            return Some((message, index));
        }
        *place -= 1;
        let inner = match &message[index].value {
            Value::Message(parts) => count(parts),
            _ => 0,
        };
        if *place >= inner {
            *place -= inner;
            continue;
        }
        return match &mut message[index].value {
            Value::Message(parts) => find(parts, place),
            _ => None,
        };
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_can_be_found() {
        let number = |tag| Part { tag, value: Value::Number(tag.into()) };
        let inner = vec![number(2), number(3)];
        let mut message = vec![Part { tag: 1, value: Value::Message(inner) }, number(4), number(5)];
        assert_eq!(count(&message), 5);
        let tags = (0..5).map(|mut place| {
            let (around, index) = find(&mut message, &mut place).expect("it is there");
            around[index].tag
        });
        assert_eq!(tags.collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    }

    #[test]
    fn the_same_seed_makes_the_same_message() {
        let message = || vec![Part { tag: 1, value: Value::Bytes(b"hello".to_vec()) }];
        let make = |seed| mutated(&mut Rng::with_seed(seed), message());
        for seed in 0..200 {
            assert_eq!(make(seed), make(seed));
        }
    }
}
