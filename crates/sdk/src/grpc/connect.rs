//! Clients of a server, made from its address.

use std::sync::Arc;

use super::{GrpcOptions, GrpcTransport};
use crate::client::{Client, ClientError};

impl Client {
    /// A client of the server at this address, such as `http://127.0.0.1:7233`; `https` means TLS. The
    /// connection is made with the first call, and made again whenever it is lost.
    pub async fn connect(address: impl Into<String>) -> Result<Self, ClientError> {
        Self::connect_with(&GrpcOptions::new(address)).await
    }

    /// The same with certificates and timeouts of your own.
    pub async fn connect_with(options: &GrpcOptions) -> Result<Self, ClientError> {
        // Asynchronous, so that a runtime is there in which the connection can live.
        Ok(Self::new(Arc::new(GrpcTransport::new(options)?)))
    }
}
