//! Headers: named values that travel beside the arguments of a call.

use abide_core::payload::{Payload, PayloadMap};

use crate::payload::{PayloadError, PayloadValue};

/// Named values that travel beside the arguments of a start, signal, query, update, activity or
/// child. The engine carries them and reads none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headers(pub(crate) PayloadMap);

impl Headers {
    /// The value with this name; none if there is none.
    pub fn get<T: PayloadValue>(&self, name: &str) -> Result<Option<T>, PayloadError> {
        read(&self.0, name)
    }

    /// The value with this name as text; none if there is none or it is no text.
    pub fn text(&self, name: &str) -> Option<String> {
        self.get(name).ok().flatten()
    }

    /// Sets a value; one that is there already is replaced.
    pub fn set<T: PayloadValue>(
        &mut self,
        name: impl Into<String>,
        value: &T,
    ) -> Result<(), PayloadError> {
        let name = name.into();
        let payload = value.to_payload().map_err(|error| error.of(subject(&name)))?;
        self.0.insert(name, payload.unwrap_or_default());
        Ok(())
    }

    /// Sets a text; a value that is there already is replaced.
    pub fn set_text(&mut self, name: impl Into<String>, text: impl Into<String>) {
        // Text can always be encoded.
        let _written = self.set(name, &text.into());
    }

    /// Removes the value with this name; returns whether there was one.
    pub fn remove(&mut self, name: &str) -> bool {
        self.0.remove(name).is_some()
    }

    /// The names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Copies the value with this name from other headers, unless these have one.
    pub(crate) fn adopt(&mut self, name: &str, from: &PayloadMap) -> bool {
        let Some(value) = from.get(name).filter(|_| !self.0.contains_key(name)) else {
            return false;
        };
        self.0.insert(name.to_owned(), Payload::clone(value));
        true
    }
}

/// The value of a header.
pub(crate) fn read<T: PayloadValue>(
    map: &PayloadMap,
    name: &str,
) -> Result<Option<T>, PayloadError> {
    let value = map.get(name).map(|payload| T::from_payload(Some(payload)));
    value.transpose().map_err(|error| error.of(subject(name)))
}

fn subject(name: &str) -> String {
    format!("header {name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_what_they_were_set_to() {
        let mut headers = Headers::default();
        assert!(headers.is_empty());
        headers.set_text("tenant", "acme");
        headers.set("level", &7_u8).unwrap();
        assert_eq!(headers.text("tenant").as_deref(), Some("acme"));
        assert_eq!(headers.get::<u8>("level").unwrap(), Some(7));
        assert_eq!((headers.text("level"), headers.text("other")), (None, None));
        assert_eq!(headers.names().collect::<Vec<_>>(), ["level", "tenant"]);
        let error = headers.get::<u8>("tenant").unwrap_err().to_string();
        assert!(error.starts_with("header tenant: "), "{error}");
        assert!(headers.remove("tenant") && !headers.remove("tenant"));
    }
}
