//! The transport over the network. All calls of a transport share one stream, and a writer batches
//! waiting calls into one frame, so that many callers cost few frames. Connections are made on
//! demand and made again after they are lost, to the next server if there are several; calls that
//! were in flight fail with [`CallError::Unavailable`].

mod answers;
mod bound;
mod calls;
mod frames;
mod options;
mod servers;
mod session;

use std::sync::{Arc, Mutex, PoisonError};

use abide_core::{
    dispatch::{QueueKey, Worker},
    operation::{AnyAnswer, AnyOperation, CallError, ListNodes},
};
use abide_proto::operation::{answer_from_wire, operation_to_wire};

pub use self::options::{GrpcOptions, TlsOptions};
use self::{calls::CallsStream, servers::Servers, session::GrpcSession};
use crate::{
    client::{Client, ClientError},
    transport::{self, AnswerFuture, Session, Transport},
    worker::ReplayFolder,
};

/// A transport to one server, or to the servers of a cluster, over gRPC.
pub struct GrpcTransport {
    servers: Servers,
    /// The current stream of calls; replaced when it has ended or its server was left.
    calls: Mutex<Option<CallsStream>>,
}

impl GrpcTransport {
    /// A transport to these servers. It connects at the first call. Must be called within a tokio
    /// runtime.
    pub fn new(options: &GrpcOptions) -> Result<Self, CallError> {
        Ok(Self { servers: Servers::new(options)?, calls: Mutex::new(None) })
    }

    /// A transport to these servers; returns after it has connected to one of them.
    pub async fn connect(options: &GrpcOptions) -> Result<Self, CallError> {
        Ok(Self { servers: Servers::connected(options).await?, calls: Mutex::new(None) })
    }

    /// The stream of calls; a new one if the last has ended or its server was left.
    fn stream(&self) -> CallsStream {
        let mut current = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        match &*current {
            Some(stream) if stream.usable() => stream.clone(),
            _ => current.insert(CallsStream::begin(self.servers.way())).clone(),
        }
    }
}

impl Client {
    /// Connects to the server at this address, such as `http://127.0.0.1:7233`, or to the servers of
    /// one cluster at several addresses, separated by commas. Returns when a server has answered, and
    /// fails with the reason if none does; it does not retry. A connection that is lost later is made
    /// again by itself.
    ///
    /// A program that may start before its server, such as a worker, uses [`Client::connect_lazy`].
    /// Under `abide replay`, which needs no server, this one does not connect either.
    pub async fn connect(addresses: impl Into<String>) -> Result<Self, ClientError> {
        let options = GrpcOptions::new(addresses);
        if ReplayFolder::of_program().is_some() {
            return Ok(Self::new(Arc::new(GrpcTransport::new(&options)?)));
        }
        let transport = GrpcTransport::connect(&options).await?;
        // Something may accept connections that does not speak the protocol. Any other error is an
        // answer of a server.
        match transport::ask(&transport, ListNodes).await {
            Err(error @ CallError::Unavailable(_)) => Err(error.into()),
            _ => Ok(Self::new(Arc::new(transport))),
        }
    }

    /// A client of the same servers as [`Client::connect`] would have, which connects at the first
    /// call. So the servers need not be running yet; only the addresses must be well-formed. Must be
    /// called within a tokio runtime.
    pub fn connect_lazy(addresses: impl Into<String>) -> Result<Self, ClientError> {
        let transport = GrpcTransport::new(&GrpcOptions::new(addresses))?;
        Ok(Self::new(Arc::new(transport)))
    }
}

impl Transport for GrpcTransport {
    fn ask(&self, operation: AnyOperation) -> AnswerFuture<'_, AnyAnswer> {
        Box::pin(async move {
            let asked = operation_to_wire(operation)?;
            let stream = self.stream();
            let answer = answer_from_wire(stream.call(asked).await?);
            stream.answered(&answer);
            answer
        })
    }

    fn connect(
        &self,
        worker: Worker,
        takes: Vec<(QueueKey, usize)>,
    ) -> AnswerFuture<'_, Box<dyn Session>> {
        Box::pin(async move {
            let session = GrpcSession::connect(self.servers.way(), worker, takes).await?;
            Ok(Box::new(session) as Box<dyn Session>)
        })
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
