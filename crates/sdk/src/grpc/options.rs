//! Where a server is, and how the connection is made.

use std::time::Duration;

use abide_core::{call::CallError, limits::InvalidField};
use abide_proto::{CONNECTION_WINDOW, STREAM_WINDOW};
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity};

/// Where a server is, and how the connection is made.
#[derive(Clone, Debug)]
pub struct GrpcOptions {
    /// The server's address, such as `http://127.0.0.1:7233`; `https` means TLS.
    pub address: String,
    /// How TLS is spoken; by default with the roots of the operating system.
    pub tls: TlsOptions,
    /// How long a connection may take to be made.
    pub connect_timeout: Duration,
    /// After how long a silent connection is asked for a sign of life, and after how long without an
    /// answer it is given up.
    pub keepalive: Duration,
}

/// How TLS is spoken. Certificates and keys are in PEM.
#[derive(Clone, Debug, Default)]
pub struct TlsOptions {
    /// The root of the server's certificate, instead of the roots of the operating system.
    pub ca: Option<Vec<u8>>,
    /// The name in the server's certificate, if it is not the host of the address.
    pub domain: Option<String>,
    /// The client's own certificate and its key.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
}

impl GrpcOptions {
    /// The server at this address.
    pub fn new(address: impl Into<String>) -> Self {
        Self {
            address: address.into(),
            tls: TlsOptions::default(),
            connect_timeout: Duration::from_secs(5),
            keepalive: Duration::from_secs(10),
        }
    }

    pub(super) fn endpoint(&self) -> Result<Endpoint, CallError> {
        let invalid = |error: tonic::transport::Error| {
            InvalidField::new("address", format!("{:?} cannot be used: {error}", self.address))
        };
        let endpoint = Endpoint::from_shared(self.address.clone())
            .map_err(invalid)?
            .connect_timeout(self.connect_timeout)
            .tcp_nodelay(true)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .http2_keep_alive_interval(self.keepalive)
            .keep_alive_timeout(self.keepalive)
            .keep_alive_while_idle(true);
        if !self.address.starts_with("https:") {
            return Ok(endpoint);
        }
        Ok(endpoint.tls_config(self.tls.config()).map_err(invalid)?)
    }
}

impl TlsOptions {
    fn config(&self) -> ClientTlsConfig {
        let mut config = match &self.ca {
            Some(ca) => ClientTlsConfig::new().ca_certificate(Certificate::from_pem(ca)),
            None => ClientTlsConfig::new().with_native_roots(),
        };
        if let Some(domain) = &self.domain {
            config = config.domain_name(domain);
        }
        if let Some((certificate, key)) = &self.identity {
            config = config.identity(Identity::from_pem(certificate, key));
        }
        config
    }
}
