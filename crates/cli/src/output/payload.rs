//! User data as JSON: JSON as it is, anything else as its encoding and its bytes in hexadecimal.

use abide::codec::ENCODED;
use abide_core::payload::Payload;
use serde_json::{Value, json};

pub(crate) fn payload(payload: &Payload) -> Value {
    let encoding = payload.metadata.get("encoding");
    let encoding = encoding.map(|encoding| String::from_utf8_lossy(encoding));
    // A codec's own data is not the user's, even if it is JSON.
    let encoded = encoding.as_ref().is_some_and(|encoding| encoding.starts_with(ENCODED));
    let json = serde_json::from_slice(&payload.data).ok().filter(|_| !encoded);
    json.unwrap_or_else(|| {
        let hex: String = payload.data.iter().map(|byte| format!("{byte:02x}")).collect();
        json!({ "encoding": encoding, "hex": hex })
    })
}

/// A result: null, one value, or a list of several.
pub(crate) fn payloads(payloads: &[Payload]) -> Value {
    match payloads {
        [] => Value::Null,
        [one] => payload(one),
        several => several.iter().map(payload).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_shown_as_it_is_and_bytes_in_hexadecimal() {
        assert_eq!(payloads(&[]), Value::Null);
        assert_eq!(payloads(&[Payload::new("{\"a\":1}")]), json!({ "a": 1 }));
        assert_eq!(payloads(&[Payload::new("1"), Payload::new("\"x\"")]), json!([1, "x"]));
        assert_eq!(
            payload(&Payload::new(&b"\xff\x00"[..])),
            json!({ "encoding": null, "hex": "ff00" })
        );
        // A worker may send what no parser reads.
        let deep = "[".repeat(1 << 20);
        let hex = "5b".repeat(1 << 20);
        assert_eq!(payload(&Payload::new(deep)), json!({ "encoding": null, "hex": hex }));
    }
}
