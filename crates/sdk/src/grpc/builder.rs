//! A client's connection with options: TLS, timeouts and the order of servers.

use std::{sync::Arc, time::Duration};

use abide_core::operation::{CallError, ListNodes};

use super::{GrpcOptions, GrpcTransport};
use crate::{
    client::{Client, ClientError},
    transport,
    worker::ReplayFolder,
};

/// A connection that is not made yet, by [`Client::builder`]. Set options on it, then call
/// [`connect`](ClientBuilder::connect) or [`connect_lazy`](ClientBuilder::connect_lazy).
#[derive(Clone, Debug)]
#[must_use = "nothing is connected until `connect` is called"]
pub struct ClientBuilder(GrpcOptions);

impl Client {
    /// A connection with options to the server at this address, or to the servers of one cluster at
    /// several addresses, separated by commas: `Client::builder("https://abide.example:7233")`.
    /// Addresses with `https` mean TLS.
    pub fn builder(addresses: impl Into<String>) -> ClientBuilder {
        ClientBuilder(GrpcOptions::new(addresses))
    }

    /// Connects to the server at this address, such as `http://127.0.0.1:7233`, or to the servers of
    /// one cluster at several addresses, separated by commas. Returns when a server has answered, and
    /// fails with the reason if none does; it does not retry. A connection that is lost later is made
    /// again by itself.
    ///
    /// A program that may start before its server, such as a worker, uses [`Client::connect_lazy`].
    /// Under `abide replay`, which needs no server, this one does not connect either.
    pub async fn connect(addresses: impl Into<String>) -> Result<Self, ClientError> {
        Self::builder(addresses).connect().await
    }

    /// A client of the same servers as [`Client::connect`] would have, which connects at the first
    /// call. So the servers need not be running yet; only the addresses must be well-formed. Must be
    /// called within a tokio runtime.
    pub fn connect_lazy(addresses: impl Into<String>) -> Result<Self, ClientError> {
        Self::builder(addresses).connect_lazy()
    }
}

impl ClientBuilder {
    /// Trusts servers whose certificates this root certificate signs, in PEM, instead of the roots of
    /// the operating system.
    pub fn ca(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.0.tls.ca = Some(pem.into());
        self
    }

    /// Proves the client's identity by this certificate and private key, both in PEM, to servers that
    /// ask for one: mutual TLS.
    pub fn identity(mut self, certificate: impl Into<Vec<u8>>, key: impl Into<Vec<u8>>) -> Self {
        self.0.tls.identity = Some((certificate.into(), key.into()));
        self
    }

    /// Expects this name in the certificates of all servers, instead of the host of each address.
    pub fn domain(mut self, name: impl Into<String>) -> Self {
        self.0.tls.domain = Some(name.into());
        self
    }

    /// How long connecting to a server may take; by default 5 seconds, or 2 if there are several
    /// servers.
    pub const fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.0.connect_timeout = timeout;
        self
    }

    /// How long a connection may be idle before it is probed, and how long the probe may stay
    /// unanswered before the connection is dropped; by default 10 seconds, or 2 if there are several
    /// servers.
    pub const fn keepalive(mut self, interval: Duration) -> Self {
        self.0.keepalive = interval;
        self
    }

    /// Tries several servers in the given order. By default the order is random, so that clients
    /// spread over the servers.
    pub const fn in_order(mut self) -> Self {
        self.0.shuffle = false;
        self
    }

    /// Connects, as [`Client::connect`] does.
    pub async fn connect(self) -> Result<Client, ClientError> {
        if ReplayFolder::of_program().is_some() {
            return self.connect_lazy();
        }
        let transport = GrpcTransport::connect(&self.0).await?;
        // Something may accept connections that does not speak the protocol. Any other error is an
        // answer of a server.
        match transport::ask(&transport, ListNodes).await {
            Err(error @ CallError::Unavailable(_)) => Err(error.into()),
            _ => Ok(Client::new(Arc::new(transport))),
        }
    }

    /// Connects at the first call, as [`Client::connect_lazy`] does. Must be called within a tokio
    /// runtime.
    pub fn connect_lazy(self) -> Result<Client, ClientError> {
        Ok(Client::new(Arc::new(GrpcTransport::new(&self.0)?)))
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::Write as _,
        net::{SocketAddr, TcpListener},
    };

    use super::*;

    async fn refusal(address: SocketAddr) -> String {
        let connected = Client::connect(format!("http://{address}")).await;
        let Err(error @ ClientError::Unavailable(_)) = connected.map(drop) else {
            panic!("it connects to {address}");
        };
        error.to_string()
    }

    #[tokio::test]
    async fn connecting_fails_at_once_where_nobody_listens_unless_it_is_lazy() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        drop(listener);
        let told = refusal(address).await;
        assert!(told.contains("refused") && told.contains(&address.to_string()), "{told}");
        assert!(Client::connect_lazy(format!("http://{address}")).is_ok());
    }

    #[tokio::test]
    async fn connecting_fails_where_another_protocol_is_spoken() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        std::thread::spawn(move || {
            while let Ok((mut stream, _)) = listener.accept() {
                drop(stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n"));
            }
        });
        let told = refusal(address).await;
        assert!(told.starts_with("the engine is unreachable: "), "{told}");
    }
}
