//! Payloads as JSON, as codec endpoints take and return them:
//! `{"payloads":[{"metadata":{"encoding":"BASE64"},"data":"BASE64"}]}`.

use std::collections::BTreeMap;

use abide_core::payload::Payload;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize};

/// The body of a request to a codec endpoint, and of its answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PayloadsJson {
    payloads: Vec<PayloadJson>,
}

/// One payload, all bytes in base64.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct PayloadJson {
    #[serde(default)]
    metadata: BTreeMap<String, String>,
    #[serde(default)]
    data: String,
}

/// Why the payloads cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{place} is not base64: {error}")]
pub struct PayloadsJsonError {
    place: String,
    #[source]
    error: base64::DecodeError,
}

impl PayloadsJson {
    /// The JSON form of these payloads.
    pub fn new(payloads: &[Payload]) -> Self {
        let payloads = payloads.iter().map(|Payload { metadata, data }| PayloadJson {
            metadata: metadata
                .iter()
                .map(|(name, value)| (name.clone(), STANDARD.encode(value)))
                .collect(),
            data: STANDARD.encode(data),
        });
        Self { payloads: payloads.collect() }
    }

    /// How many payloads there are.
    pub fn len(&self) -> usize {
        self.payloads.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.payloads.is_empty()
    }

    /// The payloads of this JSON form.
    pub fn payloads(&self) -> Result<Vec<Payload>, PayloadsJsonError> {
        let bytes = |text: &str, place: &dyn Fn() -> String| {
            STANDARD
                .decode(text)
                .map_err(|error| PayloadsJsonError { place: place(), error })
                .map(bytes::Bytes::from)
        };
        let payloads = self.payloads.iter().enumerate().map(|(index, payload)| {
            let metadata = payload.metadata.iter().map(|(name, value)| {
                let place = || format!("payloads[{index}].metadata.{name}");
                Ok((name.clone(), bytes(value, &place)?))
            });
            Ok(Payload {
                metadata: metadata.collect::<Result<_, PayloadsJsonError>>()?,
                data: bytes(&payload.data, &|| format!("payloads[{index}].data"))?,
            })
        });
        payloads.collect()
    }
}
