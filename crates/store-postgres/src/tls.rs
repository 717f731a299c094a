//! TLS to the database, and what is checked of its certificate.
//!
//! | `sslmode` | encrypted | certificate of the database |
//! |---|---|---|
//! | `disable` | no | |
//! | `prefer`, the default | if the database can | not checked |
//! | `require` | yes | not checked; with `sslrootcert` as `verify-ca` |
//! | `verify-ca` | yes | comes from the root in `sslrootcert` |
//! | `verify-full` | yes | comes from that root, or from one of the system's, and is for the host |
//!
//! Whoever stands between the two can read and change what is not checked, so only the last protects
//! against one who does.

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

/// How much is asked of the connection, in PostgreSQL's words.
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

    /// As the client library knows it, which checks no certificates.
    pub(crate) const fn negotiation(self) -> SslMode {
        match self {
            Self::Disable => SslMode::Disable,
            Self::Prefer => SslMode::Prefer,
            Self::Require | Self::VerifyCa | Self::VerifyFull => SslMode::Require,
        }
    }
}

/// Who vouches for the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Roots {
    /// Those that the operating system trusts.
    System,
    /// The certificates in this file.
    File(PathBuf),
}

/// What the address says about TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) mode: Mode,
    pub(crate) roots: Option<Roots>,
    /// The certificate by which the database knows us, and its key.
    pub(crate) certificate: Option<PathBuf>,
    pub(crate) key: Option<PathBuf>,
}

impl Settings {
    /// Finds what cannot be meant, or would check less than it seems to.
    pub(crate) fn check(&self) -> Result<(), String> {
        let refuse = |reason: &str| Err(reason.to_owned());
        if self.certificate.is_some() != self.key.is_some() {
            return refuse("sslcert and sslkey go together");
        }
        match (self.mode, &self.roots) {
            (Mode::Disable, _) if self.certificate.is_some() => {
                refuse("sslcert is given, and sslmode=disable would not use it")
            }
            (Mode::Disable | Mode::Prefer, Some(_)) => refuse(
                "sslrootcert is given, and nothing would be checked: \
                 add sslmode=verify-full, or verify-ca",
            ),
            (Mode::VerifyCa, None) => refuse(
                "sslmode=verify-ca takes any host that the root vouches for: \
                 name the root by sslrootcert, or use verify-full",
            ),
            (Mode::Require | Mode::VerifyCa, Some(Roots::System)) => refuse(
                "the system's roots vouch for nearly every host, so its name must be checked: \
                 use sslmode=verify-full",
            ),
            _ => Ok(()),
        }
    }
}

/// Makes connections safe.
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

/// The way to one host.
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
    /// Ties a password to this very connection, so that nobody can pass it on to another.
    fn channel_binding(&self) -> ChannelBinding {
        match self.certificate().and_then(binding::end_point) {
            Some(digest) => ChannelBinding::tls_server_end_point(digest),
            None => ChannelBinding::none(),
        }
    }
}
