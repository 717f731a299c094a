//! Certificates: which roots are trusted, which client certificate is sent, and how the database's
//! certificate is checked.

use std::{path::Path, sync::Arc};

use tokio_rustls::rustls::{
    ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    client::{
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_cert_signed_by_trust_anchor,
    },
    crypto::{
        self, CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature,
        verify_tls13_signature,
    },
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject},
    server::ParsedCertificate,
};

use super::{Mode, Roots, Settings};
use crate::OpenError;

/// ALPN protocol name for servers of version 17 and later; older ones ignore it.
const PROTOCOL: &[u8] = b"postgresql";

/// TLS client configuration for these settings.
pub(super) fn client(settings: &Settings) -> Result<ClientConfig, OpenError> {
    let wrong = |error: Error| OpenError::Address { reason: error.to_string() };
    let provider = Arc::new(crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(wrong)?;
    let roots = trusted(settings)?;
    let checking = match (settings.mode, roots) {
        (Mode::VerifyFull, Some(roots)) => builder.with_root_certificates(roots),
        (_, roots) => {
            let any = Arc::new(AnyHost::new(roots, &provider));
            builder.dangerous().with_custom_certificate_verifier(any)
        }
    };
    let mut config = match (&settings.certificate, &settings.key) {
        (Some(certificate), Some(key)) => {
            let chain = certificates(certificate)?;
            let secret =
                PrivateKeyDer::from_pem_file(key).map_err(|error| unreadable(key, &error))?;
            checking
                .with_client_auth_cert(chain, secret)
                .map_err(|error| unreadable(key, &error))?
        }
        _ => checking.with_no_client_auth(),
    };
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    Ok(config)
}

/// The trusted roots, if the settings ask for a check.
fn trusted(settings: &Settings) -> Result<Option<RootCertStore>, OpenError> {
    let mut trusted = RootCertStore::empty();
    match (&settings.roots, settings.mode) {
        (Some(Roots::File(path)), _) => {
            for certificate in certificates(path)? {
                trusted.add(certificate).map_err(|error| unreadable(path, &error))?;
            }
        }
        (Some(Roots::System), _) | (None, Mode::VerifyFull) => {
            let found = rustls_native_certs::load_native_certs();
            trusted.add_parsable_certificates(found.certs);
            if trusted.is_empty() {
                let reason = "the system has no trusted roots: name one by sslrootcert".to_owned();
                return Err(OpenError::Address { reason });
            }
        }
        (None, _) => return Ok(None),
    }
    Ok(Some(trusted))
}

/// All certificates in a file, at least one.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, OpenError> {
    let found: Vec<_> = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect)
        .map_err(|error| unreadable(path, &error))?;
    if found.is_empty() {
        return Err(unreadable(path, &"it contains no PEM certificate"));
    }
    Ok(found)
}

fn unreadable(path: &Path, reason: &dyn std::fmt::Display) -> OpenError {
    OpenError::Certificate { path: path.to_owned(), reason: reason.to_string() }
}

/// Accepts a certificate for any host: one signed by the roots, or any certificate if there are
/// none. The TLS handshake still proves that the peer has its private key.
#[derive(Debug)]
struct AnyHost {
    roots: Option<RootCertStore>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl AnyHost {
    fn new(roots: Option<RootCertStore>, provider: &CryptoProvider) -> Self {
        Self { roots, algorithms: provider.signature_verification_algorithms }
    }
}

impl ServerCertVerifier for AnyHost {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        _host: &ServerName<'_>,
        _revocation: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if let Some(roots) = &self.roots {
            let certificate = ParsedCertificate::try_from(certificate)?;
            let algorithms = self.algorithms.all;
            verify_server_cert_signed_by_trust_anchor(
                &certificate,
                roots,
                between,
                now,
                algorithms,
            )?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
