//! TLS connections to the database, and how its certificate is checked.
//!
//! | `sslmode` | encrypted | certificate of the database |
//! |---|---|---|
//! | `disable` | no | |
//! | `prefer`, the default | if the database supports it | not checked |
//! | `require` | yes | not checked; with `sslrootcert` as `verify-ca` |
//! | `verify-ca` | yes | is signed by the root in `sslrootcert` |
//! | `verify-full` | yes | is signed by that root, or by one of the system's, and matches the host |
//!
//! An attacker on the network can read and change any connection whose certificate is not checked,
//! so only `verify-full` protects against one.

use std::{convert::Infallible, io, path::PathBuf, pin::Pin, sync::Arc};

use tokio_postgres::{
    Socket,
    config::SslMode,
    tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream},
};
use tokio_rustls::{TlsConnector, rustls::pki_types::ServerName};

use crate::OpenError;

mod binding;
mod certificates;
mod stream;

pub(crate) use stream::Encrypted;

/// Required protection of the connection, in PostgreSQL's terms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mode {
    Disable,
    #[default]
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

impl Mode {
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        Ok(match text {
            "disable" => Self::Disable,
            "prefer" => Self::Prefer,
            "require" => Self::Require,
            "verify-ca" => Self::VerifyCa,
            "verify-full" => Self::VerifyFull,
            other => {
                return Err(format!(
                    "sslmode is disable, prefer, require, verify-ca or verify-full, not {other}"
                ));
            }
        })
    }

    /// The equivalent of the client library, which leaves certificate checks to us.
    pub(crate) const fn negotiation(self) -> SslMode {
        match self {
            Self::Disable => SslMode::Disable,
            Self::Prefer => SslMode::Prefer,
            Self::Require | Self::VerifyCa | Self::VerifyFull => SslMode::Require,
        }
    }
}

/// Which root certificates are trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Roots {
    System,
    File(PathBuf),
}

/// TLS settings of the address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) mode: Mode,
    pub(crate) roots: Option<Roots>,
    /// Client certificate that authenticates us to the database, and its key.
    pub(crate) certificate: Option<PathBuf>,
    pub(crate) key: Option<PathBuf>,
}

impl Settings {
    /// Rejects contradictory settings, and settings that check less than they seem to.
    pub(crate) fn check(&self) -> Result<(), String> {
        let refuse = |reason: &str| Err(reason.to_owned());
        if self.certificate.is_some() != self.key.is_some() {
            return refuse("sslcert and sslkey must be given together");
        }
        match (self.mode, &self.roots) {
            (Mode::Disable, _) if self.certificate.is_some() => {
                refuse("sslcert is given, but sslmode=disable does not use it")
            }
            (Mode::Disable | Mode::Prefer, Some(_)) => refuse(
                "sslrootcert is given, and nothing would be checked: \
                 add sslmode=verify-full, or verify-ca",
            ),
            (Mode::VerifyCa, None) => refuse(
                "sslmode=verify-ca accepts any host that the root has certified: \
                 name the root by sslrootcert, or use verify-full",
            ),
            (Mode::Require | Mode::VerifyCa, Some(Roots::System)) => refuse(
                "the system's roots certify nearly every host, so the host name must be checked: \
                 use sslmode=verify-full",
            ),
            _ => Ok(()),
        }
    }
}

#[derive(Clone)]
pub(crate) struct Tls {
    connector: TlsConnector,
}

impl Tls {
    /// Reads the certificates that the settings name.
    pub(crate) fn new(settings: &Settings) -> Result<Self, OpenError> {
        let config = certificates::client(settings)?;
        Ok(Self { connector: TlsConnector::from(Arc::new(config)) })
    }
}

impl MakeTlsConnect<Socket> for Tls {
    type Stream = Encrypted;
    type TlsConnect = Handshake;
    type Error = Infallible;

    fn make_tls_connect(&mut self, host: &str) -> Result<Handshake, Infallible> {
        Ok(Handshake { connector: self.connector.clone(), host: host.to_owned() })
    }
}

/// Connector for one host.
pub(crate) struct Handshake {
    connector: TlsConnector,
    host: String,
}

impl TlsConnect<Socket> for Handshake {
    type Stream = Encrypted;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Encrypted>> + Send>>;

    fn connect(self, socket: Socket) -> Self::Future {
        Box::pin(async move {
            let name = ServerName::try_from(self.host).map_err(io::Error::other)?;
            Ok(Encrypted::new(self.connector.connect(name, socket).await?))
        })
    }
}

impl TlsStream for Encrypted {
    /// Binds the password exchange to this connection, so that a man in the middle cannot relay it
    /// to another.
    fn channel_binding(&self) -> ChannelBinding {
        match self.certificate().and_then(binding::end_point) {
            Some(digest) => ChannelBinding::tls_server_end_point(digest),
            None => ChannelBinding::none(),
        }
    }
}
