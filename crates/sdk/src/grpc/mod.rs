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
    operation::{AnyAnswer, AnyOperation, CallError},
};
use abide_proto::operation::{answer_from_wire, operation_to_wire};

pub use self::options::{GrpcOptions, TlsOptions};
use self::{calls::CallsStream, servers::Servers, session::GrpcSession};
use crate::{
    client::{Client, ClientError},
    transport::{Answer, Session, Transport},
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
    /// A client of the server at this address, such as `http://127.0.0.1:7233`, or of the servers
    /// of one cluster at several addresses, separated by commas. It connects at the first call and
    /// reconnects whenever the connection is lost, so the server need not be running yet. Must be
    /// called within a tokio runtime.
    pub fn connect(addresses: impl Into<String>) -> Result<Self, ClientError> {
        let transport = GrpcTransport::new(&GrpcOptions::new(addresses))?;
        Ok(Self::new(Arc::new(transport)))
    }
}

impl Transport for GrpcTransport {
    fn ask(&self, operation: AnyOperation) -> Answer<'_, AnyAnswer> {
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
    ) -> Answer<'_, Box<dyn Session>> {
        Box::pin(async move {
            let session = GrpcSession::connect(self.servers.way(), worker, takes).await?;
            Ok(Box::new(session) as Box<dyn Session>)
        })
    }
}
