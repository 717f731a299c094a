//! TLS of the server: its certificate, and the certificates that it requires of clients.

use std::{fmt, fs, path::Path, sync::Arc};

use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        self, RootCertStore, ServerConfig,
        client::verify_server_name,
        crypto::ring,
        pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem, pem::PemObject as _},
        server::{ParsedCertificate, WebPkiClientVerifier},
    },
};

use crate::{ServerError, Tls};

/// The protocol offered to clients by ALPN.
const PROTOCOL: &[u8] = b"h2";

/// A file of the TLS configuration, with the option that names it.
pub(crate) struct PemFile<'a> {
    option: &'static str,
    path: &'a Path,
}

impl Tls {
    pub(crate) fn certificate_file(&self) -> PemFile<'_> {
        PemFile { option: "--tls-certificate, [tls] certificate", path: &self.certificate }
    }

    pub(crate) fn key_file(&self) -> PemFile<'_> {
        PemFile { option: "--tls-key, [tls] key", path: &self.key }
    }

    pub(crate) fn client_ca_file(&self) -> Option<PemFile<'_>> {
        let path = self.client_ca.as_deref()?;
        Some(PemFile { option: "--tls-client-ca, [tls] client_ca", path })
    }
}

impl PemFile<'_> {
    pub(crate) fn read(&self) -> Result<Vec<u8>, ServerError> {
        let Self { option, path } = *self;
        fs::read(path).map_err(|error| ServerError::TlsFile { option, path: path.into(), error })
    }

    /// The certificates in the file, at least one.
    pub(crate) fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, ServerError> {
        let pem = self.read()?;
        let certificates = CertificateDer::pem_slice_iter(&pem).collect::<Result<Vec<_>, _>>();
        let certificates =
            certificates.map_err(|error| self.wrong(format!("is not valid PEM: {error}")))?;
        if certificates.is_empty() {
            return Err(self.wrong("holds no certificate in PEM"));
        }
        Ok(certificates)
    }

    fn private_key(&self) -> Result<PrivateKeyDer<'static>, ServerError> {
        PrivateKeyDer::from_pem_slice(&self.read()?).map_err(|error| match error {
            pem::Error::NoItemsFound => self.wrong("holds no private key in PEM"),
            error => self.wrong(format!("is not valid PEM: {error}")),
        })
    }

    fn roots(&self) -> Result<RootCertStore, ServerError> {
        let mut roots = RootCertStore::empty();
        let (added, _) = roots.add_parsable_certificates(self.certificates()?);
        if added == 0 {
            return Err(self.wrong("holds no valid CA certificate"));
        }
        Ok(roots)
    }

    fn wrong(&self, problem: impl Into<String>) -> ServerError {
        let Self { option, path } = *self;
        ServerError::TlsContent { option, path: path.into(), problem: problem.into() }
    }
}

/// Builds the acceptor of TLS connections.
pub(crate) fn acceptor(tls: &Tls) -> Result<TlsAcceptor, ServerError> {
    let (certificate, key) = (tls.certificate_file(), tls.key_file());
    let chain = certificate.certificates()?;
    let provider = Arc::new(ring::default_provider());
    let unusable = |file: &PemFile<'_>, error: &dyn fmt::Display| {
        file.wrong(format!("cannot be used: {error}"))
    };
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(&certificate, &error))?;
    let builder = match tls.client_ca_file() {
        None => builder.with_no_client_auth(),
        Some(ca) => {
            let roots = Arc::new(ca.roots()?);
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider).build();
            builder.with_client_cert_verifier(verifier.map_err(|error| unusable(&ca, &error))?)
        }
    };
    let single = builder.with_single_cert(chain, key.private_key()?);
    let mut config = single.map_err(|error| match error {
        rustls::Error::InconsistentKeys(_) => certificate
            .wrong(format!("does not belong to the private key in {}", key.path.display())),
        // The provider cannot read the key.
        rustls::Error::General(reason) => unusable(&key, &reason),
        error => unusable(&certificate, &error),
    })?;
    config.alpn_protocols.push(PROTOCOL.to_vec());
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Whether a certificate is valid for this name.
pub(crate) fn has_name(certificate: &CertificateDer<'_>, name: &ServerName<'_>) -> bool {
    let certificate = ParsedCertificate::try_from(certificate);
    certificate.is_ok_and(|certificate| verify_server_name(&certificate, name).is_ok())
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair};

    use super::*;

    #[test]
    fn a_file_of_the_wrong_kind_is_named_with_its_option() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, content: &str| {
            fs::write(folder.path().join(name), content).expect("the folder is writable");
        };
        for name in ["one", "two"] {
            let key = KeyPair::generate().expect("a key");
            let params = CertificateParams::new(vec!["server".to_owned()]).expect("a name");
            write(&format!("{name}.pem"), &params.self_signed(&key).expect("a certificate").pem());
            write(&format!("{name}.key"), &key.serialize_pem());
        }
        write("nonsense", "nonsense");
        let no_root = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        write("damaged", no_root);
        let check = |[certificate, key, client_ca]: [&str; 3], told: &[&str]| {
            let path = |name: &str| folder.path().join(name);
            let client_ca = Some(client_ca).filter(|name| !name.is_empty()).map(path);
            let tls = Tls { certificate: path(certificate), key: path(key), client_ca };
            let refused = acceptor(&tls).err().map(|error| error.to_string());
            assert_eq!(refused.is_some(), !told.is_empty(), "{refused:?}");
            let refused = refused.unwrap_or_default();
            assert!(told.iter().all(|told| refused.contains(told)), "{refused}");
        };
        check(["one.pem", "one.key", "one.pem"], &[]);
        let certificate = "--tls-certificate";
        check(["one.key", "one.key", ""], &[certificate, "one.key holds no certificate"]);
        check(["nonsense", "one.key", ""], &[certificate, "nonsense holds no certificate"]);
        check(["one.pem", "one.pem", ""], &["--tls-key", "one.pem holds no private key"]);
        check(
            ["one.pem", "two.key", ""],
            &[certificate, "one.pem does not belong to the private key in ", "two.key"],
        );
        let client_ca = "--tls-client-ca";
        check(["one.pem", "one.key", "one.key"], &[client_ca, "one.key holds no certificate"]);
        check(["one.pem", "one.key", "damaged"], &[client_ca, "damaged holds no valid CA"]);
        check(["one.pem", "one.key", "nowhere"], &[client_ca, "nowhere cannot be read"]);
    }
}
