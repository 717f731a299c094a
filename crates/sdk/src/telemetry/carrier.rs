//! The context of a trace in the headers of a call.

use std::collections::BTreeMap;

use abide_core::payload::PayloadMap;
use opentelemetry::propagation::{Extractor, Injector};

use crate::interceptor::{self, Headers};

/// Writes into headers.
pub(super) struct Carrier<'a>(pub(super) &'a mut Headers);

impl Injector for Carrier<'_> {
    fn set(&mut self, key: &str, value: String) {
        // An empty value says nothing, and headers are part of history.
        if !value.is_empty() {
            self.0.set_text(key, value);
        }
    }
}

/// The headers that are text.
pub(super) struct HeaderTexts(BTreeMap<String, String>);

impl HeaderTexts {
    pub(super) fn of(headers: &PayloadMap) -> Self {
        let text = |name: &String| interceptor::header::<String>(headers, name).ok().flatten();
        Self(headers.keys().filter_map(|name| Some((name.clone(), text(name)?))).collect())
    }
}

impl Extractor for HeaderTexts {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(String::as_str).collect()
    }
}
