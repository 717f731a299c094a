//! The addresses of the servers, and the options of the connection.

use std::{fmt::Display, time::Duration};

use abide_core::{limits::InvalidField, operation::CallError};
use abide_proto::{CONNECTION_WINDOW, STREAM_WINDOW, error::with_causes};
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity};

/// The default timeouts if there are several servers: another one can be tried soon.
const SOON: Duration = Duration::from_secs(2);

/// The addresses of the servers, and the options of the connection.
#[derive(Clone, Debug)]
pub struct GrpcOptions {
    /// The addresses of the servers of one cluster, such as `http://127.0.0.1:7233`; `https` means
    /// TLS. One of them is used at a time; the next one when that one is lost.
    pub addresses: Vec<String>,
    /// Use the addresses in random order, so that clients spread over the servers; otherwise in the
    /// given order.
    pub shuffle: bool,
    /// The TLS options; by default the roots of the operating system are trusted.
    pub tls: TlsOptions,
    /// How long connecting may take: by default 5 seconds, 2 if there are several servers.
    pub connect_timeout: Duration,
    /// How long a connection may be idle before a keepalive ping is sent, and how long the ping may
    /// stay unanswered before the connection is dropped: by default 10 seconds, 2 if there are
    /// several servers.
    pub keepalive: Duration,
}

/// TLS options. Certificates and keys are in PEM.
#[derive(Clone, Debug, Default)]
pub struct TlsOptions {
    /// The root certificate of the servers, instead of the roots of the operating system.
    pub ca: Option<Vec<u8>>,
    /// The name in the certificates of all servers, if it is not the host of each address.
    pub domain: Option<String>,
    /// The client's own certificate and private key, for mutual TLS.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
}

impl GrpcOptions {
    /// Options for the server at this address, or for several addresses, separated by commas.
    pub fn new(addresses: impl Into<String>) -> Self {
        let addresses: Vec<_> =
            addresses.into().split(',').map(|address| address.trim().to_owned()).collect();
        let (connect_timeout, keepalive) = match addresses.len() {
            1 => (Duration::from_secs(5), Duration::from_secs(10)),
            _ => (SOON, SOON),
        };
        let tls = TlsOptions::default();
        Self { addresses, shuffle: true, tls, connect_timeout, keepalive }
    }

    /// The endpoint of one of the addresses.
    pub(super) fn endpoint(&self, address: &str) -> Result<Endpoint, CallError> {
        let invalid = |error: tonic::transport::Error| unusable(address, &with_causes(&error));
        let tls = match address.split_once("://") {
            Some(("http", _)) => false,
            Some(("https", _)) => true,
            _ => return Err(unusable(address, &"it must begin with http:// or https://")),
        };
        let endpoint = Endpoint::from_shared(address.to_owned())
            .map_err(invalid)?
            .connect_timeout(self.connect_timeout)
            .tcp_nodelay(true)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .http2_keep_alive_interval(self.keepalive)
            .keep_alive_timeout(self.keepalive)
            .keep_alive_while_idle(true);
        if !tls {
            return Ok(endpoint);
        }
        endpoint.tls_config(self.tls.config()).map_err(|error| {
            let why = with_causes(&error);
            let what = "the CA certificate, or the client certificate and key, cannot be used";
            InvalidField::new("tls", format!("{what}: {why}")).into()
        })
    }

    /// How long a server may take to send its first message.
    pub(super) fn patience(&self) -> Duration {
        self.connect_timeout + self.keepalive
    }
}

/// The error of options without an address.
pub(super) fn no_address() -> CallError {
    InvalidField::new("addresses", "are none").into()
}

fn unusable(address: &str, why: &dyn Display) -> CallError {
    InvalidField::new("address", format!("{address:?} cannot be used: {why}")).into()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_address_among_others_is_named() {
        let options = GrpcOptions::new("http://one:7233,two:7233,ftp://three,,http://a b");
        let wrong: Vec<_> = options
            .addresses
            .iter()
            .filter_map(|address| options.endpoint(address).err())
            .map(|error| error.to_string())
            .collect();
        for (error, address) in wrong.iter().zip(["\"two:7233\"", "\"ftp://three\"", "\"\""]) {
            assert!(error.contains(address) && error.contains("https://"), "{error}");
        }
        assert!(wrong[3].contains("\"http://a b\""), "{wrong:?}");
    }

    #[test]
    fn what_is_wrong_with_a_certificate_is_told() {
        let wrong = |tls| {
            let options = GrpcOptions { tls, ..GrpcOptions::new("https://one:7233") };
            options.endpoint("https://one:7233").expect_err("it is no certificate").to_string()
        };
        let nonsense = b"nonsense".to_vec();
        let identity = Some((nonsense.clone(), nonsense));
        let told = wrong(TlsOptions { identity, ..TlsOptions::default() });
        assert!(
            told.contains("certificate and key") && told.contains("transport error: "),
            "{told}"
        );
    }

    #[test]
    fn one_of_several_servers_is_given_up_sooner() {
        let alone = GrpcOptions::new("http://one:7233");
        let several = GrpcOptions::new("http://one:7233,http://two:7233");
        assert!(several.patience() < alone.patience());
    }
}
