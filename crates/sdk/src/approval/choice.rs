//! What can be decided: one of ours, or any type of the user's that serde can write.

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

/// What a request offers to choose from: an enum that serde can write and read, or `String`.
///
/// On the wire a choice is its name, so that anybody can send it; a variant that holds data is
/// `{"name": data}`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be chosen",
    note = "derive `Clone`, `serde::Serialize` and `serde::Deserialize` for it"
)]
pub trait Choice: Serialize + DeserializeOwned + Clone + 'static {}

impl<T: Serialize + DeserializeOwned + Clone + 'static> Choice for T {}

/// What most requests are decided by. A request offers `approve` and `reject` unless it says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    /// Yes.
    Approve,
    /// No.
    Reject,
    /// Somebody else shall decide.
    Escalate,
}

/// A choice as it travels, if it has a name.
pub(super) fn written<C: Choice>(choice: &C) -> Result<Value, String> {
    let value = serde_json::to_value(choice).map_err(|error| error.to_string())?;
    match name(&value) {
        Some(_) => Ok(value),
        None => Err(format!("{value} is no choice: it must be a text or a variant of an enum")),
    }
}

/// The name of a choice: a text, or the one key of an object.
pub(super) fn name(value: &Value) -> Option<&str> {
    match value {
        Value::String(name) => Some(name),
        Value::Object(fields) if fields.len() == 1 => fields.keys().next().map(String::as_str),
        _ => None,
    }
}

/// Why a choice cannot be read as a `C`, if it cannot.
pub(super) fn check<C: Choice>(value: &Value) -> Result<(), String> {
    C::deserialize(value).map(drop).map_err(|error| error.to_string())
}
