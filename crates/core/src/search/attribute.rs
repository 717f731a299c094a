//! Search attributes: their types, which ones a namespace has, and how the payloads of a run become
//! entries of an index. A payload that was accepted says its type, so entries follow from the log alone.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    str::FromStr,
};

use bytes::Bytes;

use super::{Finite, Value, error::meant, parse::taken_name};
use crate::{
    ids::NamespaceId,
    limits::{InvalidField, Limits},
    payload::{Payload, PayloadMap},
    time::Timestamp,
};

/// The type of a search attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AttributeKind {
    /// One text, compared as a whole.
    Keyword,
    /// Several texts, each compared as a whole.
    KeywordList,
    /// A text that is found by its words.
    Text,
    /// A whole number of 64 bits.
    Int,
    /// A floating-point number.
    Double,
    Bool,
    Time,
}

/// The entry of a payload's metadata that names the type.
pub const TYPE: &str = "type";

const ENCODING: &str = "encoding";

const JSON: &[u8] = b"json/plain";

/// Bytes of a word that are compared: longer ones are no words of a language.
const WORD_BYTES: usize = 64;

impl AttributeKind {
    pub const ALL: [Self; 7] = [
        Self::Keyword,
        Self::KeywordList,
        Self::Text,
        Self::Int,
        Self::Double,
        Self::Bool,
        Self::Time,
    ];

    /// The number that stands in entries and in the registry. Never reused.
    pub const fn number(self) -> u8 {
        match self {
            Self::Keyword => 1,
            Self::KeywordList => 2,
            Self::Text => 3,
            Self::Int => 4,
            Self::Double => 5,
            Self::Bool => 6,
            Self::Time => 7,
        }
    }

    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.number() == number)
    }

    /// The name of the type, as people write it and as payloads say it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Keyword => "keyword",
            Self::KeywordList => "keyword-list",
            Self::Text => "text",
            Self::Int => "int",
            Self::Double => "double",
            Self::Bool => "bool",
            Self::Time => "time",
        }
    }

    /// The values of a payload of this type; `None` if it removes the attribute.
    fn values(self, data: &[u8]) -> Result<Option<Vec<Value>>, serde_json::Error> {
        let one = |value: Value| vec![value];
        Ok(match self {
            Self::Keyword => json::<String>(data)?.map(Value::Text).map(one),
            Self::KeywordList => {
                let list = json::<Vec<String>>(data)?.filter(|list| !list.is_empty());
                list.map(|list| list.into_iter().map(Value::Text).collect())
            }
            Self::Text => json::<String>(data)?
                .map(|text| words(&text).into_iter().map(Value::Text).collect()),
            Self::Int => json::<i64>(data)?.map(Value::Int).map(one),
            Self::Double => json::<f64>(data)?.and_then(Finite::new).map(Value::Double).map(one),
            Self::Bool => json::<bool>(data)?.map(Value::Bool).map(one),
            Self::Time => json::<Timestamp>(data)?.map(Value::Time).map(one),
        })
    }
}

/// A value, or null.
fn json<'a, T: serde::Deserialize<'a>>(data: &'a [u8]) -> Result<Option<T>, serde_json::Error> {
    if data.is_empty() {
        return Ok(None);
    }
    serde_json::from_slice(data)
}

impl fmt::Display for AttributeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for AttributeKind {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(|| {
            let names = Self::ALL.map(Self::name);
            let near = meant(name, names.into_iter()).map(|near| format!("; did you mean {near}?"));
            format!("{name:?} is none of {}{}", names.join(", "), near.unwrap_or_default())
        })
    }
}

/// The words of a text, in lower case, each once.
pub fn words(text: &str) -> BTreeSet<String> {
    let words = text.split(|letter: char| !letter.is_alphanumeric());
    words.filter(|word| !word.is_empty()).map(|word| cut(&word.to_lowercase()).to_owned()).collect()
}

fn cut(word: &str) -> &str {
    &word[..word.floor_char_boundary(WORD_BYTES)]
}

/// The search attributes of a namespace: their names and types.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Definitions(BTreeMap<String, AttributeKind>);

impl FromIterator<(String, AttributeKind)> for Definitions {
    fn from_iter<I: IntoIterator<Item = (String, AttributeKind)>>(attributes: I) -> Self {
        Self(attributes.into_iter().collect())
    }
}

impl Definitions {
    /// The name of the registry's row with the attributes of a namespace.
    pub fn registry_name(namespace: &NamespaceId) -> String {
        format!("search-attributes/{namespace}")
    }

    pub fn get(&self, name: &str) -> Option<AttributeKind> {
        self.0.get(name).copied()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, AttributeKind)> {
        self.0.iter().map(|(name, kind)| (name.as_str(), *kind))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds an attribute. Returns whether that changes anything: to repeat the same is no error.
    pub fn add(
        &mut self,
        name: &str,
        kind: AttributeKind,
        limits: &Limits,
    ) -> Result<bool, InvalidField> {
        check_name(name)?;
        match self.get(name) {
            Some(known) if known == kind => return Ok(false),
            Some(known) => {
                let problem = format!(
                    "{name} is registered as {known} already; remove it first, or choose another name"
                );
                return Err(InvalidField::new("search attribute", problem));
            }
            None => {}
        }
        let most = limits.search_attributes;
        if self.0.len() >= most {
            let problem = format!("{name} is one too many: a namespace has at most {most} of them");
            return Err(InvalidField::new("search attribute", problem));
        }
        self.0.insert(name.to_owned(), kind);
        Ok(true)
    }

    /// Removes an attribute, and returns whether there was one.
    pub fn remove(&mut self, name: &str) -> bool {
        self.0.remove(name).is_some()
    }

    /// All of these are registered, and with the types that they say themselves.
    pub fn cover(&self, attributes: &PayloadMap) -> bool {
        attributes.iter().all(|(name, payload)| {
            let said = payload.metadata.get(TYPE);
            self.get(name).is_some_and(|kind| said.is_none_or(|it| *it == kind.name().as_bytes()))
        })
    }

    /// Checks the attributes of a run, or changes of them, and marks each with its type.
    pub fn check(&self, attributes: &mut PayloadMap, limits: &Limits) -> Result<(), InvalidField> {
        attributes.iter_mut().try_for_each(|(name, payload)| self.check_one(name, payload, limits))
    }

    fn check_one(
        &self,
        name: &str,
        payload: &mut Payload,
        limits: &Limits,
    ) -> Result<(), InvalidField> {
        let refused =
            |problem: String| InvalidField::new(format!("search attribute {name}"), problem);
        let Some(kind) = self.get(name) else {
            let near = meant(name, self.iter().map(|(name, _)| name));
            let hint = near.map_or_else(
                || "register it with `abide search-attribute create`".to_owned(),
                |near| format!("did you mean {near}?"),
            );
            return Err(refused(format!("is not registered in the namespace; {hint}")));
        };
        if let Some(said) = payload.metadata.get(TYPE).filter(|it| **it != kind.name().as_bytes()) {
            let said = String::from_utf8_lossy(said);
            return Err(refused(format!("is registered as {kind}, and this value says {said:?}")));
        }
        if let Some(encoding) = payload.metadata.get(ENCODING).filter(|it| **it != JSON) {
            let encoding = String::from_utf8_lossy(encoding);
            return Err(refused(format!(
                "is encoded as {encoding:?}; the engine must read it as JSON"
            )));
        }
        let values = kind.values(&payload.data);
        let values =
            values.map_err(|_| refused(format!("is registered as {kind}; {}", form(kind))))?;
        for value in values.iter().flatten() {
            if let Value::Text(text) = value
                && text.len() > limits.id_bytes
            {
                let (bytes, limit) = (text.len(), limits.id_bytes);
                return Err(refused(format!("has {bytes} bytes, the limit is {limit}")));
            }
        }
        payload.metadata.insert(ENCODING.to_owned(), Bytes::from_static(JSON));
        payload.metadata.insert(TYPE.to_owned(), Bytes::from_static(kind.name().as_bytes()));
        if values.is_none() {
            // A payload without data removes the attribute.
            payload.data = Bytes::new();
        }
        Ok(())
    }
}

/// Checks that all attributes of a run, marked with their types, do not make too many entries.
pub fn check_entries(attributes: &PayloadMap, limits: &Limits) -> Result<(), InvalidField> {
    let (count, most) = (entries(attributes).len(), limits.search_entries);
    if count <= most {
        return Ok(());
    }
    let problem = format!("have {count} keywords, words and other values, the limit is {most}");
    Err(InvalidField::new("search attributes", problem))
}

/// How a value of this type is written.
const fn form(kind: AttributeKind) -> &'static str {
    match kind {
        AttributeKind::Keyword => "write a text of JSON: \"eu-west\"",
        AttributeKind::KeywordList => "write a list of texts: [\"urgent\", \"eu\"]",
        AttributeKind::Text => "write a text of JSON: \"late delivery\"",
        AttributeKind::Int => "write a whole number: 100",
        AttributeKind::Double => "write a number: 99.5",
        AttributeKind::Bool => "write true or false",
        AttributeKind::Time => "write \"2026-11-30T12:00:00Z\"",
    }
}

/// Bytes of the name of an attribute.
const NAME_BYTES: usize = 64;

fn check_name(name: &str) -> Result<(), InvalidField> {
    let refused = |problem: String| Err(InvalidField::new("search attribute", problem));
    let letters = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let begins = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic());
    if !letters || !begins || name.len() > NAME_BYTES {
        let shown: String = name.chars().take(NAME_BYTES).collect();
        return refused(format!(
            "{shown:?} is no name: it needs a letter, then letters, digits and _, at most \
             {NAME_BYTES} of them"
        ));
    }
    if taken_name(name) {
        return refused(format!("{name} is a word of the query language; choose another name"));
    }
    Ok(())
}

/// The entries of a run's attributes in an index: name and value of each, in order, each once. Payloads
/// that do not say their type are of no use for an index.
pub fn entries(attributes: &PayloadMap) -> BTreeSet<(&str, Vec<u8>)> {
    let typed = attributes.iter().filter_map(|(name, payload)| {
        let said = std::str::from_utf8(payload.metadata.get(TYPE)?).ok()?;
        Some((name.as_str(), said.parse::<AttributeKind>().ok()?, payload))
    });
    let values = typed.flat_map(|(name, kind, payload)| {
        let values = kind.values(&payload.data).ok().flatten().unwrap_or_default();
        values.into_iter().map(move |value| (name, value.to_entry(kind)))
    });
    values.collect()
}
