//! What can be decided: `Decision`, or any serializable type of the user.

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

/// What a request offers to choose from: an enum that serde can serialize and deserialize, or
/// `String`.
///
/// On the wire a choice is its name, so that any client can send it; a variant that holds data is
/// `{"name": data}`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be chosen",
    note = "derive `Clone`, `serde::Serialize` and `serde::Deserialize` for it"
)]
pub trait Choice: Serialize + DeserializeOwned + Clone + 'static {}

impl<T: Serialize + DeserializeOwned + Clone + 'static> Choice for T {}

/// The usual decisions. A request offers `approve` and `reject` unless it sets other choices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    /// The request is granted.
    Approve,
    /// The request is denied.
    Reject,
    /// Another person should decide. Only a request that offers it takes it.
    Escalate,
}

/// A choice in its wire form, if it has a name.
pub(super) fn written<C: Choice>(choice: &C) -> Result<Value, String> {
    let value = serde_json::to_value(choice).map_err(|error| error.to_string())?;
    match name(&value) {
        Some(_) => Ok(value),
        None => {
            Err(format!("{value} is not a choice: it must be a string or a variant of an enum"))
        }
    }
}

/// The name of a choice: a string, or the only key of an object.
pub(super) fn name(value: &Value) -> Option<&str> {
    match value {
        Value::String(name) => Some(name),
        Value::Object(fields) if fields.len() == 1 => fields.keys().next().map(String::as_str),
        _ => None,
    }
}

/// Checks that a choice can be decoded as a `C`.
pub(super) fn check<C: Choice>(value: &Value) -> Result<(), String> {
    C::deserialize(value).map(drop).map_err(|error| error.to_string())
}
