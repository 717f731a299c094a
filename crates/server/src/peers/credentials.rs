//! How the nodes of a cluster know each other: by a secret that they share, by a name that only their
//! certificates have, or by both. Certificates that clients have are from the same root, so the name is what
//! makes a node.

use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};

use super::proof::{End, ProofKey, Terms};
use crate::tls;

/// How the nodes of a cluster know each other.
#[derive(Clone)]
pub(crate) struct Credentials {
    /// What they sign with, if they share a secret.
    pub(crate) key: Option<ProofKey>,
    /// The name that their certificates have. TLS sees to it for the node that is called.
    pub(crate) name: Option<ServerName<'static>>,
}

impl Credentials {
    /// Whether a caller with these certificates may be a node.
    pub(super) fn certified(&self, certificates: Option<&[CertificateDer<'_>]>) -> bool {
        let Some(name) = &self.name else { return true };
        let own = certificates.and_then(<[_]>::first);
        own.is_some_and(|certificate| tls::has_name(certificate, name))
    }

    /// Shows that this end knows the secret, if there is one.
    pub(super) fn sign(&self, terms: &Terms, end: End) -> Vec<u8> {
        self.key.as_ref().map(|key| terms.sign(key, end)).unwrap_or_default()
    }

    /// Whether the other end knows the secret, if there is one.
    pub(super) fn proven(&self, terms: &Terms, end: End, proof: &[u8]) -> bool {
        self.key.as_ref().is_none_or(|key| terms.proven(key, end, proof))
    }
}
