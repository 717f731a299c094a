//! The texts of failures as payloads: message and stack trace move into an encoded payload in the
//! failure's extension, and back.

use abide_core::{carried::FailureTexts, payload::Payload};
use serde::{Deserialize, Serialize};

use super::{CodecError, pack, unpack};
use crate::payload::{decode, encode};

/// Where the encoded texts are, in the extension of a failure.
const PLACE: &str = "abide.texts";

/// What a failure says whose texts are encoded.
const INSTEAD: &str = "the text of this failure is encoded";

#[derive(Serialize, Deserialize)]
struct SealedTexts {
    message: String,
    stack: String,
}

/// The texts of these failures, one payload each.
pub(super) fn found(failures: &[FailureTexts<'_>]) -> Vec<Payload> {
    let texts = failures.iter().map(|failure| {
        let texts = SealedTexts { message: failure.message.clone(), stack: failure.stack.clone() };
        // Two strings can always be written as one payload.
        encode(&texts).ok().and_then(|payloads| payloads.into_iter().next()).unwrap_or_default()
    });
    texts.collect()
}

/// Puts encoded texts in the place of the texts.
pub(super) fn hide(failures: &mut [FailureTexts<'_>], encoded: impl Iterator<Item = Payload>) {
    for (failure, encoded) in failures.iter_mut().zip(encoded) {
        failure.extension.insert(PLACE.to_owned(), pack(&encoded));
        INSTEAD.clone_into(failure.message);
        failure.stack.clear();
    }
}

/// The encoded texts of these failures, as far as they have some.
pub(super) fn hidden(failures: &[FailureTexts<'_>]) -> Result<Vec<Payload>, CodecError> {
    let places = failures.iter().filter_map(|failure| failure.extension.get(PLACE));
    places.map(|bytes| unpack("text of a failure", bytes.clone())).collect()
}

/// Puts decoded texts back.
pub(super) fn show(
    failures: &mut [FailureTexts<'_>],
    mut decoded: impl Iterator<Item = Payload>,
) -> Result<(), CodecError> {
    for failure in failures.iter_mut().filter(|failure| failure.extension.contains_key(PLACE)) {
        let text = decoded.next();
        if text.as_ref().is_some_and(|text| super::encoded(text).is_some()) {
            // It was kept, because it cannot be decoded here.
            continue;
        }
        let texts: SealedTexts = decode(text.as_slice())
            .map_err(|error| CodecError::refused("text of a failure", error.to_string()))?;
        *failure.message = texts.message;
        *failure.stack = texts.stack;
        failure.extension.remove(PLACE);
    }
    Ok(())
}
