//! TLS of the server: its certificate, and the certificates that it requires of clients.

use std::{fs, path::Path, sync::Arc};

use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        RootCertStore, ServerConfig,
        client::verify_server_name,
        crypto::ring,
        pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject as _},
        server::{ParsedCertificate, WebPkiClientVerifier},
    },
};

use crate::{ServerError, Tls};

/// The protocol offered to clients by ALPN.
const PROTOCOL: &[u8] = b"h2";

/// Builds the acceptor of TLS connections.
pub(crate) fn acceptor(tls: &Tls) -> Result<TlsAcceptor, ServerError> {
    let wrong = |path: &Path, error: &dyn std::fmt::Display| ServerError::TlsContent {
        path: path.to_owned(),
        reason: error.to_string(),
    };
    let chain = certificates(&tls.certificate)?;
    let provider = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(&tls.certificate, &error))?;
    let builder = match &tls.client_ca {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let mut roots = RootCertStore::empty();
            roots.add_parsable_certificates(certificates(path)?);
            let verifier =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
            builder.with_client_cert_verifier(verifier.map_err(|error| wrong(path, &error))?)
        }
    };
    let key = PrivateKeyDer::from_pem_slice(&read(&tls.key)?);
    let key = key.map_err(|error| wrong(&tls.key, &error))?;
    let mut config =
        builder.with_single_cert(chain, key).map_err(|error| wrong(&tls.certificate, &error))?;
    config.alpn_protocols.push(PROTOCOL.to_vec());
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Whether a certificate is valid for this name.
pub(crate) fn has_name(certificate: &CertificateDer<'_>, name: &ServerName<'_>) -> bool {
    let certificate = ParsedCertificate::try_from(certificate);
    certificate.is_ok_and(|certificate| verify_server_name(&certificate, name).is_ok())
}

/// Reads the certificates in a file.
pub(crate) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, ServerError> {
    let pem = read(path)?;
    let certificates = CertificateDer::pem_slice_iter(&pem).collect::<Result<Vec<_>, _>>();
    certificates.map_err(|error| ServerError::TlsContent {
        path: path.to_owned(),
        reason: error.to_string(),
    })
}

/// Reads a file of the TLS configuration.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, ServerError> {
    fs::read(path).map_err(|error| ServerError::TlsFile { path: path.to_owned(), error })
}
