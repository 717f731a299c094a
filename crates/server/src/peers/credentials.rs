//! How the nodes of a cluster authenticate each other: by a shared secret, by a name that only
//! their certificates have, or by both. Certificates of clients come from the same root, so the
//! name is what identifies a node.

use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};

use super::proof::{End, ProofKey, Terms};
use crate::tls;

#[derive(Clone)]
pub(crate) struct Credentials {
    /// Key for signing, if the nodes share a secret.
    pub(crate) key: Option<ProofKey>,
    /// Name in the certificates of nodes. For the node that is called, TLS checks it.
    pub(crate) name: Option<ServerName<'static>>,
}

impl Credentials {
    /// Whether a caller with these certificates may be a node.
    pub(super) fn certified(&self, certificates: Option<&[CertificateDer<'_>]>) -> bool {
        let Some(name) = &self.name else { return true };
        let own = certificates.and_then(<[_]>::first);
        own.is_some_and(|certificate| tls::has_name(certificate, name))
    }

    /// Proves that this end knows the secret, if there is one, and which node calls which.
    pub(super) fn sign(&self, terms: &Terms, end: End) -> Vec<u8> {
        terms.sign(&self.proof_key(), end)
    }

    /// Whether the other end knows the secret, if there is one, and agrees on which node calls which: a
    /// call that reaches another node than the one it is meant for must not become its link.
    pub(super) fn proven(&self, terms: &Terms, end: End, proof: &[u8]) -> bool {
        terms.proven(&self.proof_key(), end, proof)
    }

    fn proof_key(&self) -> ProofKey {
        self.key.clone().unwrap_or_else(ProofKey::without_secret)
    }
}
