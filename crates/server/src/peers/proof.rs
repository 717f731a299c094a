//! How nodes prove to each other that they know the cluster's secret, without revealing it. Each
//! draws a nonce for every link, and each signs both nonces together with the addresses of caller
//! and called: a proof from one link is useless on another. The called node signs last, so that
//! strangers get nothing from which to guess the secret.

use std::sync::Arc;

use ring::hmac;
use uuid::Uuid;

use crate::secret::Secret;

/// Bytes of a nonce.
pub(super) const NONCE_BYTES: usize = 32;

/// A fresh random nonce.
pub(super) fn nonce() -> Vec<u8> {
    [Uuid::new_v4(), Uuid::new_v4()].map(Uuid::into_bytes).concat()
}

/// The secret, as a key for signing.
#[derive(Clone)]
pub(crate) struct ProofKey(Arc<hmac::Key>);

impl ProofKey {
    pub(crate) fn new(secret: &Secret) -> Self {
        Self(Arc::new(hmac::Key::new(hmac::HMAC_SHA256, secret.0.as_bytes())))
    }

    /// Binds a link to its two ends where certificates prove who they are.
    pub(super) fn without_secret() -> Self {
        Self(Arc::new(hmac::Key::new(hmac::HMAC_SHA256, b"")))
    }
}

/// Which end of the link signs, so that a proof cannot be reflected to its sender.
#[derive(Clone, Copy)]
pub(super) enum End {
    Caller,
    Called,
}

/// The content that both ends of a new link sign.
pub(super) struct Terms {
    /// Address at which the caller is reached.
    pub(super) caller: String,
    /// Address at which the called node is reached.
    pub(super) called: String,
    /// Nonce of the caller.
    pub(super) caller_nonce: Vec<u8>,
    /// Nonce of the called node.
    pub(super) called_nonce: Vec<u8>,
}

impl Terms {
    /// Proves that this end knows the secret.
    pub(super) fn sign(&self, key: &ProofKey, end: End) -> Vec<u8> {
        hmac::sign(&key.0, &self.bytes(end)).as_ref().to_vec()
    }

    /// Whether the proof shows that the other end knows the secret.
    pub(super) fn proven(&self, key: &ProofKey, end: End, proof: &[u8]) -> bool {
        hmac::verify(&key.0, &self.bytes(end), proof).is_ok()
    }

    /// Each part is preceded by its length, so that no two terms have the same bytes.
    fn bytes(&self, end: End) -> Vec<u8> {
        let end = match end {
            End::Caller => b"caller",
            End::Called => b"called",
        };
        let parts: [&[u8]; 6] = [
            b"abide node link 2",
            end,
            self.caller.as_bytes(),
            self.called.as_bytes(),
            &self.caller_nonce,
            &self.called_nonce,
        ];
        let part = |part: &[u8]| [&part.len().to_be_bytes()[..], part].concat();
        parts.map(part).concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms() -> Terms {
        Terms {
            caller: "a:1".into(),
            called: "b:2".into(),
            caller_nonce: vec![1; NONCE_BYTES],
            called_nonce: vec![2; NONCE_BYTES],
        }
    }

    #[test]
    fn a_proof_holds_for_its_own_link_end_and_secret_only() {
        let (key, other) = (ProofKey::new(&Secret::draw()), ProofKey::new(&Secret::draw()));
        let proof = terms().sign(&key, End::Caller);
        assert!(terms().proven(&key, End::Caller, &proof));
        assert!(!terms().proven(&key, End::Called, &proof));
        assert!(!terms().proven(&other, End::Caller, &proof));
        assert!(!terms().proven(&key, End::Caller, &proof[1..]));
        assert!(!terms().proven(&key, End::Caller, &[]));
        let others = [
            Terms { caller: "c:1".into(), ..terms() },
            Terms { called: "c:1".into(), ..terms() },
            Terms { caller: "a:1b".into(), called: ":2".into(), ..terms() },
            Terms { caller_nonce: nonce(), ..terms() },
            Terms { called_nonce: nonce(), ..terms() },
        ];
        assert!(others.iter().all(|terms| !terms.proven(&key, End::Caller, &proof)));
    }
}
