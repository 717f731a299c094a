//! Identifies attempts that are completed from outside a worker: by a token for the attempt, or by
//! the id of the activity.

use std::hash::Hasher;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use siphasher::sip::SipHasher24;
use uuid::Uuid;

use crate::{
    ids::{ActivityId, EventNumber, RunId, WorkflowKey},
    limits::InvalidField,
    operation::RunTarget,
    payload::Payloads,
    run::Resolution,
};

/// Version of the text form of a token.
const TEXT_VERSION: u8 = 1;

/// Bytes of the checksum that ends a token.
const CHECKSUM_BYTES: usize = 4;

/// Token that lets another process complete an attempt of an activity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActivityToken {
    pub workflow: WorkflowKey,
    pub run: RunId,
    /// Number of the ActivityScheduled event.
    pub scheduled: EventNumber,
    pub start: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttemptName {
    Token(ActivityToken),
    /// The current attempt of the activity with this id.
    Activity(RunTarget, ActivityId),
}

/// A report about an attempt from outside its worker.
#[derive(Clone, Debug, PartialEq)]
pub enum AttemptReport {
    Resolved(Resolution),
    /// The attempt continues; a retry may resume from this progress.
    Heartbeat(Payloads),
}

impl AttemptName {
    /// Workflow of the attempt, and its run if that is known.
    pub const fn place(&self) -> (&WorkflowKey, Option<RunId>) {
        match self {
            Self::Token(token) => (&token.workflow, Some(token.run)),
            Self::Activity(target, _) => (&target.workflow, target.run),
        }
    }
}

impl ActivityToken {
    /// Encodes the token as one word of letters, digits, `-` and `_`. The content is opaque to its
    /// users.
    pub fn to_text(&self) -> String {
        let mut bytes = vec![TEXT_VERSION];
        bytes.extend(self.run.as_bytes());
        bytes.extend(self.scheduled.to_be_bytes());
        bytes.extend(self.start.to_be_bytes());
        let namespace = self.workflow.namespace.as_str();
        // Namespaces are far shorter than `u16::MAX`.
        bytes.extend(u16::try_from(namespace.len()).unwrap_or(u16::MAX).to_be_bytes());
        bytes.extend(namespace.bytes());
        bytes.extend(self.workflow.workflow.as_str().bytes());
        bytes.extend(checksum(&bytes));
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Decodes a token. The error says whether the text was truncated, changed or never was a
    /// token.
    pub fn from_text(text: &str) -> Result<Self, InvalidField> {
        let wrong = || InvalidField::new("token", "is not a complete activity token");
        let bytes = URL_SAFE_NO_PAD.decode(text.trim()).map_err(|_| wrong())?;
        let (version, _) = bytes.split_first().ok_or_else(wrong)?;
        if *version != TEXT_VERSION {
            let problem = format!("has version {version}; this program reads {TEXT_VERSION}");
            return Err(InvalidField::new("token", problem));
        }
        let (bytes, sum) = bytes.split_last_chunk::<CHECKSUM_BYTES>().ok_or_else(wrong)?;
        if *sum != checksum(bytes) {
            return Err(wrong());
        }
        Self::of_fields(bytes.get(1..).unwrap_or_default()).ok_or_else(wrong)
    }

    fn of_fields(bytes: &[u8]) -> Option<Self> {
        let (run, bytes) = bytes.split_first_chunk::<16>()?;
        let (scheduled, bytes) = bytes.split_first_chunk::<8>()?;
        let (start, bytes) = bytes.split_first_chunk::<4>()?;
        let (length, bytes) = bytes.split_first_chunk::<2>()?;
        let (namespace, workflow) =
            bytes.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
        Some(Self {
            workflow: WorkflowKey {
                namespace: str::from_utf8(namespace).ok()?.into(),
                workflow: str::from_utf8(workflow).ok()?.into(),
            },
            run: RunId::new(Uuid::from_bytes(*run)),
            scheduled: EventNumber::from_be_bytes(*scheduled),
            start: u32::from_be_bytes(*start),
        })
    }
}

/// Detects copying mistakes, not forgery.
fn checksum(bytes: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let mut hasher = SipHasher24::new();
    hasher.write(bytes);
    let [a, b, c, d, ..] = hasher.finish().to_be_bytes();
    [a, b, c, d]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Timestamp;

    fn token() -> ActivityToken {
        ActivityToken {
            workflow: WorkflowKey { namespace: "default".into(), workflow: "bestellung-ü".into() },
            run: RunId::from_parts(Timestamp::from_unix_millis(1_800_000_000_000), 7),
            scheduled: 5,
            start: 2,
        }
    }

    #[test]
    fn a_token_survives_being_written_down() {
        let text = token().to_text();
        assert_eq!(ActivityToken::from_text(&format!(" {text}\n")), Ok(token()));
        assert_eq!(
            text, "AQGjGFxQAHAAgAAAAAAAAAcAAAAAAAAABQAAAAIAB2RlZmF1bHRiZXN0ZWxsdW5nLcO84l3Sdg",
            "tokens that were handed out stay valid"
        );
    }

    #[test]
    fn a_token_that_is_cut_changed_or_foreign_is_refused() {
        let text = token().to_text();
        let cut = (0..text.len()).map(|end| text[..end].to_owned());
        let foreign = ["".into(), "no token".into(), "Ä".into(), "AAAA".into()];
        let mut changed = text.clone().into_bytes();
        changed[30] = if changed[30] == b'A' { b'B' } else { b'A' };
        let changed = String::from_utf8(changed).unwrap();
        for text in cut.chain(foreign).chain([changed]) {
            let error = ActivityToken::from_text(&text).unwrap_err();
            assert_eq!(error.field, "token", "{text}");
        }
    }
}
