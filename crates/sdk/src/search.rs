//! Search attributes: named, typed values of runs by which lists find them. A namespace registers them
//! first. They are stored as they are, also if codecs encrypt other data.

use std::{borrow::Cow, fmt, marker::PhantomData};

use abide_core::{
    payload::{Payload, PayloadMap},
    search::{self, attribute::TYPE},
    time::Timestamp,
};
use bytes::Bytes;

use crate::payload::{PayloadError, PayloadValue};

/// The type of a search attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AttributeKind {
    /// One text, compared as a whole.
    Keyword,
    /// Several texts, each compared as a whole.
    KeywordList,
    /// A text that is found by its words.
    Text,
    /// A whole number.
    Int,
    /// A floating-point number.
    Double,
    /// True or false.
    Bool,
    /// A point in time.
    Time,
}

impl AttributeKind {
    pub(crate) const fn to_core(self) -> search::AttributeKind {
        match self {
            Self::Keyword => search::AttributeKind::Keyword,
            Self::KeywordList => search::AttributeKind::KeywordList,
            Self::Text => search::AttributeKind::Text,
            Self::Int => search::AttributeKind::Int,
            Self::Double => search::AttributeKind::Double,
            Self::Bool => search::AttributeKind::Bool,
            Self::Time => search::AttributeKind::Time,
        }
    }

    #[cfg(feature = "worker")]
    pub(crate) const fn of(kind: search::AttributeKind) -> Self {
        match kind {
            search::AttributeKind::Keyword => Self::Keyword,
            search::AttributeKind::KeywordList => Self::KeywordList,
            search::AttributeKind::Text => Self::Text,
            search::AttributeKind::Int => Self::Int,
            search::AttributeKind::Double => Self::Double,
            search::AttributeKind::Bool => Self::Bool,
            search::AttributeKind::Time => Self::Time,
        }
    }
}

impl fmt::Display for AttributeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_core().fmt(f)
    }
}

/// The name and the type of a search attribute. Make it a constant, and use it wherever the attribute is
/// set or read:
///
/// ```
/// # use abide_sdk::{Context, Result, search::SearchAttribute};
/// const AMOUNT: SearchAttribute<i64> = SearchAttribute::int("Amount");
/// const REGION: SearchAttribute<String> = SearchAttribute::keyword("Region");
///
/// # fn example<W>(ctx: &Context<W>) -> Result<()> {
/// ctx.upsert_search_attributes([AMOUNT.set(120), REGION.set("eu")])?;
/// # Ok(())
/// # }
/// ```
pub struct SearchAttribute<T> {
    name: &'static str,
    kind: AttributeKind,
    value: PhantomData<fn(T) -> T>,
}

impl<T> Clone for SearchAttribute<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for SearchAttribute<T> {}

impl<T> fmt::Debug for SearchAttribute<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.kind)
    }
}

impl SearchAttribute<String> {
    /// One text, compared as a whole: an id, a region, a state.
    pub const fn keyword(name: &'static str) -> Self {
        Self::new(name, AttributeKind::Keyword)
    }

    /// A text that is found by its words.
    pub const fn text(name: &'static str) -> Self {
        Self::new(name, AttributeKind::Text)
    }
}

impl SearchAttribute<Vec<String>> {
    /// Several texts, each compared as a whole.
    pub const fn keyword_list(name: &'static str) -> Self {
        Self::new(name, AttributeKind::KeywordList)
    }
}

impl SearchAttribute<i64> {
    /// A whole number.
    pub const fn int(name: &'static str) -> Self {
        Self::new(name, AttributeKind::Int)
    }
}

impl SearchAttribute<f64> {
    /// A floating-point number, neither infinite nor undefined.
    pub const fn double(name: &'static str) -> Self {
        Self::new(name, AttributeKind::Double)
    }
}

impl SearchAttribute<bool> {
    /// True or false.
    pub const fn bool(name: &'static str) -> Self {
        Self::new(name, AttributeKind::Bool)
    }
}

impl SearchAttribute<Timestamp> {
    /// A point in time.
    pub const fn time(name: &'static str) -> Self {
        Self::new(name, AttributeKind::Time)
    }
}

impl<T> SearchAttribute<T> {
    const fn new(name: &'static str, kind: AttributeKind) -> Self {
        Self { name, kind, value: PhantomData }
    }

    /// The name in queries.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The type that it must be registered with.
    pub const fn kind(&self) -> AttributeKind {
        self.kind
    }

    /// The change that removes the attribute from a run.
    pub fn unset(&self) -> AttributeChange {
        AttributeChange { name: self.name.into(), payload: Ok(self.typed(Payload::default())) }
    }

    fn typed(&self, mut payload: Payload) -> Payload {
        let kind = Bytes::from_static(self.kind.to_core().name().as_bytes());
        payload.metadata.insert(TYPE.to_owned(), kind);
        payload
    }
}

impl<T: PayloadValue> SearchAttribute<T> {
    /// The change that sets the attribute of a run.
    pub fn set(&self, value: impl Into<T>) -> AttributeChange {
        let payload = value.into().to_payload().and_then(|payload| {
            let payload = payload.unwrap_or_default();
            // JSON writes numbers that it does not have as null, which would remove the attribute.
            if payload.data == "null" {
                return Err(PayloadError::new("is not a finite number".to_owned()));
            }
            Ok(self.typed(payload))
        });
        let named = |error: PayloadError| error.of(format!("search attribute {}", self.name));
        AttributeChange { name: self.name.into(), payload: payload.map_err(named) }
    }

    /// The value among those of a run, if it is set.
    pub(crate) fn of(&self, attributes: &PayloadMap) -> Option<Result<T, PayloadError>> {
        attributes.get(self.name).map(|payload| T::from_payload(Some(payload)))
    }
}

/// Sets a search attribute of a run or removes it; made by [`SearchAttribute::set`] and
/// [`SearchAttribute::unset`].
#[derive(Clone, Debug)]
#[must_use = "nothing changes until it is passed on"]
pub struct AttributeChange {
    name: Cow<'static, str>,
    payload: Result<Payload, PayloadError>,
}

impl AttributeChange {
    /// Sets an attribute whose name is only known when the program runs. The engine reads the value as the
    /// type that is registered.
    pub fn untyped<T: PayloadValue>(name: impl Into<String>, value: &T) -> Self {
        let name = name.into();
        let payload = value.to_payload().map(Option::unwrap_or_default);
        let payload = payload.map_err(|error| error.of(format!("search attribute {name}")));
        Self { name: name.into(), payload }
    }

    /// Adds the change to others.
    pub(crate) fn add_to(self, changes: &mut PayloadMap) -> Result<(), PayloadError> {
        changes.insert(self.name.into_owned(), self.payload?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_carries_its_type_and_refuses_numbers_that_json_does_not_have() {
        const RATE: SearchAttribute<f64> = SearchAttribute::double("Rate");
        const LABELS: SearchAttribute<Vec<String>> = SearchAttribute::keyword_list("Labels");
        let mut changes = PayloadMap::new();
        RATE.set(0.5).add_to(&mut changes).unwrap();
        LABELS.set(["a".to_owned()]).add_to(&mut changes).unwrap();
        assert_eq!(changes["Rate"].metadata["type"], "double");
        assert_eq!(RATE.of(&changes), Some(Ok(0.5)));
        assert_eq!(LABELS.of(&changes), Some(Ok(vec!["a".to_owned()])));
        RATE.unset().add_to(&mut changes).unwrap();
        assert!(changes["Rate"].data.is_empty());
        let error = RATE.set(f64::NAN).add_to(&mut changes).unwrap_err();
        assert_eq!(error.to_string(), "search attribute Rate: is not a finite number");
    }
}
