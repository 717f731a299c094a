//! Generates messages that are valid, or nearly so: known names, small numbers, and values that the
//! server itself has sent, such as tokens. An obviously invalid message would get no further than
//! the first check.

use std::collections::HashMap;

use fastrand::Rng;

use crate::{
    parts::{self, Part, Value},
    schema::{FieldType, Kind, Schema},
};

/// How many values of a kind are remembered.
const REMEMBERED: usize = 32;

/// Fields whose values the server sends and expects back.
const TOLD: &[&str] =
    &["run", "next_page_token", "page_token", "token", "wait", "timer", "activity", "update"];

/// Messages that the server sends and expects back.
const TOKENS: &[&str] = &["TaskToken", "QueryToken", "ActivityToken", "StartId", "RunTarget"];

/// Values that a server has sent.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    fields: HashMap<String, Vec<Vec<u8>>>,
    messages: HashMap<usize, Vec<Vec<u8>>>,
}

impl Seen {
    /// Remembers the id of a workflow, which may have a run.
    pub(crate) fn workflow(&mut self, id: &str) {
        remember(self.fields.entry("workflow".to_owned()).or_default(), id.as_bytes());
    }

    /// Remembers the values in an answer.
    pub(crate) fn take(&mut self, schema: &Schema, index: usize, answer: &[u8]) {
        parts::read(schema, index, answer, &mut |name, message, content| match message {
            Some(message) if TOKENS.contains(&schema.messages[message].name.as_str()) => {
                remember(self.messages.entry(message).or_default(), content);
            }
            None if TOLD.contains(&name) => {
                let name = name.trim_start_matches("next_");
                remember(self.fields.entry(name.to_owned()).or_default(), content);
            }
            Some(_) | None => {}
        });
    }
}

fn remember(contents: &mut Vec<Vec<u8>>, content: &[u8]) {
    if contents.len() == REMEMBERED {
        contents.remove(0);
    }
    contents.push(content.to_owned());
}

pub(crate) struct Generator<'a> {
    pub(crate) schema: &'a Schema,
    pub(crate) seen: &'a Seen,
    pub(crate) rng: &'a mut Rng,
    /// Whether every field is set, once, with one case of each choice.
    pub(crate) full: bool,
}

impl Generator<'_> {
    /// A message of the type with this index.
    pub(crate) fn message(&mut self, index: usize) -> Vec<Part> {
        let fields = &self.schema.messages[index].fields;
        let mut parts = Vec::new();
        let mut chosen: HashMap<i32, u32> = HashMap::new();
        for field in fields {
            if let Some(choice) = field.choice {
                let cases: Vec<_> =
                    fields.iter().filter(|other| other.choice == Some(choice)).collect();
                let case = *chosen
                    .entry(choice)
                    .or_insert_with(|| cases[self.rng.usize(..cases.len())].tag);
                if case != field.tag {
                    continue;
                }
            } else if !self.full && self.rng.u8(..16) < if field.optional { 11 } else { 1 } {
                continue;
            }
            let some = field.repeated && !self.full;
            let count = if some { self.rng.usize(..4) } else { 1 };
            for _ in 0..count {
                parts.push(Part { tag: field.tag, value: self.value(field) });
            }
        }
        parts
    }

    /// A message with one field set to this value, and no other case of the same choice.
    pub(crate) fn message_with(&mut self, index: usize, name: &str, value: Value) -> Vec<Part> {
        let fields = &self.schema.messages[index].fields;
        let Some(field) = fields.iter().find(|field| field.name == name) else {
            return self.message(index);
        };
        let rival = |tag: u32| {
            let other = fields.iter().find(|other| other.tag == tag);
            other.is_some_and(|other| other.choice.is_some() && other.choice == field.choice)
        };
        let mut parts = self.message(index);
        parts.retain(|part| part.tag != field.tag && !rival(part.tag));
        parts.push(Part { tag: field.tag, value });
        parts
    }

    /// A plausible value of a field.
    pub(crate) fn value(&mut self, field: &FieldType) -> Value {
        match &field.kind {
            Kind::Message(index) => match self.seen.messages.get(index) {
                Some(told) if self.rng.u8(..10) > 0 => Value::Bytes(self.one_of(told)),
                Some(_) | None => Value::Message(self.message(*index)),
            },
            Kind::Text | Kind::Bytes => match self.seen.fields.get(&field.name) {
                Some(told) if self.rng.bool() => Value::Bytes(self.one_of(told)),
                Some(_) | None => Value::Bytes(self.text(field)),
            },
            Kind::Enumeration(numbers) => {
                // The first number means "unspecified".
                let first = usize::from(numbers.len() > 1 && self.rng.u8(..16) > 0);
                let number = numbers[self.rng.usize(first..numbers.len())];
                Value::Number(number.unsigned_abs().into())
            }
            Kind::Number => Value::Number(self.number(&field.name)),
            Kind::Fixed32 => Value::Fixed32(self.rng.u32(..)),
            Kind::Fixed64 => Value::Fixed64(self.rng.u64(..)),
        }
    }

    /// Prefers the newest, which are the likeliest to be valid.
    fn one_of(&mut self, told: &[Vec<u8>]) -> Vec<u8> {
        let back = self.rng.usize(..told.len()).min(self.rng.usize(..told.len()));
        told[told.len() - 1 - back].clone()
    }

    fn text(&mut self, field: &FieldType) -> Vec<u8> {
        let few = |rng: &mut Rng, word: &str| format!("{word}{}", rng.u8(..4));
        match field.name.as_str() {
            "namespace" => b"default".to_vec(),
            "queue" => b"fuzz".to_vec(),
            "session" => few(self.rng, "fuzz-session-").into(),
            "workflow" => few(self.rng, "fuzz-").into(),
            "cron" if self.rng.bool() => b"0 0 * * *".to_vec(),
            "cron" => Vec::new(),
            "run" => self.bytes(16),
            _ if field.kind == Kind::Text => few(self.rng, "x").into(),
            _ => {
                let length = self.rng.usize(..20);
                self.bytes(length)
            }
        }
    }

    fn bytes(&mut self, length: usize) -> Vec<u8> {
        std::iter::repeat_with(|| self.rng.u8(..)).take(length).collect()
    }

    fn number(&mut self, name: &str) -> u64 {
        match name {
            "protocol_version" => 1,
            "credits" => self.rng.u64(1..50),
            // Some are near the present, as seconds since 1970.
            "seconds" if self.rng.bool() => 1_800_000_000 + self.rng.u64(..100_000),
            "nanos" => self.rng.u64(..1_000_000_000),
            _ if self.rng.u8(..20) == 0 => BOUNDARIES[self.rng.usize(..BOUNDARIES.len())],
            _ => self.rng.u64(..12),
        }
    }
}

/// Numbers at which something may overflow.
pub(crate) const BOUNDARIES: [u64; 14] = [
    0,
    1,
    0x7f,
    0x80,
    0xffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x1_0000_0000,
    // The last second of the year 9999, and the one after it.
    253_402_300_799,
    253_402_300_800,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    0xffff_ffff_ffff_ffff,
];
