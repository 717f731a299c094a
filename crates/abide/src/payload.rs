//! Data on its way: arguments, results and details are payloads, by default in JSON.

pub use abide_sdk::payload::{
    Payload, PayloadError, PayloadValue, Payloads, RawPayload, decode, encode,
};
