//! Where the servers are, and how the connection is made.

use std::{fmt::Display, time::Duration};

use abide_core::{limits::InvalidField, operation::CallError};
use abide_proto::{CONNECTION_WINDOW, STREAM_WINDOW, error::with_causes};
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity};

/// How soon one of several servers is given up for another.
const SOON: Duration = Duration::from_secs(2);

/// Where the servers are, and how the connection is made.
#[derive(Clone, Debug)]
pub struct GrpcOptions {
    /// The addresses of the servers of one cluster, such as `http://127.0.0.1:7233`; `https` means
    /// TLS. One of them is used at a time, the next when that one is lost.
    pub addresses: Vec<String>,
    /// The addresses are used in an order of chance, so that clients spread over the servers; else in
    /// the order in which they stand.
    pub shuffle: bool,
    /// How TLS is spoken; by default with the roots of the operating system.
    pub tls: TlsOptions,
    /// How long a connection may take to be made: by default 5 seconds, 2 if there are several servers.
    pub connect_timeout: Duration,
    /// After how long a silent connection is asked for a sign of life, and after how long without an
    /// answer it is given up: by default 10 seconds, 2 if there are several servers.
    pub keepalive: Duration,
}

/// How TLS is spoken. Certificates and keys are in PEM.
#[derive(Clone, Debug, Default)]
pub struct TlsOptions {
    /// The root of the server's certificate, instead of the roots of the operating system.
    pub ca: Option<Vec<u8>>,
    /// The name in the certificates of all servers, if it is not the host of each address.
    pub domain: Option<String>,
    /// The client's own certificate and its key.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
}

impl GrpcOptions {
    /// The server at this address, or the servers at these addresses, separated by commas.
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

    /// How to connect to one of the addresses.
    pub(super) fn endpoint(&self, address: &str) -> Result<Endpoint, CallError> {
        let invalid = |error: tonic::transport::Error| unusable(address, &with_causes(&error));
        let tls = match address.split_once("://") {
            Some(("http", _)) => false,
            Some(("https", _)) => true,
            _ => return Err(unusable(address, &"it begins neither with http:// nor https://")),
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
            let what = "the root, or the certificate and key of your own, cannot be used";
            InvalidField::new("tls", format!("{what}: {why}")).into()
        })
    }

    /// How long a server may take to say its first word.
    pub(super) fn patience(&self) -> Duration {
        self.connect_timeout + self.keepalive
    }
}

/// There is no server to go to.
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
