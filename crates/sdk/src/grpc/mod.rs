//! The way to servers over the network. All calls of a transport share one stream, and a writer
//! puts what waits together into one frame, so that many callers cost few frames. Connections are
//! made when they are needed and made again after they were lost, to the next server if there are
//! several; what was lost meanwhile is told as [`CallError::Unavailable`].

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

/// A server, or the servers of a cluster, reached over gRPC.
pub struct GrpcTransport {
    servers: Servers,
    /// The stream of calls, once there is one; replaced when it has ended, or its server was left.
    calls: Mutex<Option<CallsStream>>,
}

impl GrpcTransport {
    /// A transport to these servers. The connection is made with the first call. Must be called within
    /// a tokio runtime.
    pub fn new(options: &GrpcOptions) -> Result<Self, CallError> {
        Ok(Self { servers: Servers::new(options)?, calls: Mutex::new(None) })
    }

    /// A transport to these servers, once a connection to one of them is made.
    pub async fn connect(options: &GrpcOptions) -> Result<Self, CallError> {
        Ok(Self { servers: Servers::connected(options).await?, calls: Mutex::new(None) })
    }

    /// The stream of calls, opened anew if the last one is of no use any more.
    fn stream(&self) -> CallsStream {
        let mut current = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        match &*current {
            Some(stream) if stream.usable() => stream.clone(),
            _ => current.insert(CallsStream::begin(self.servers.way())).clone(),
        }
    }
}

impl Client {
    /// A client of the server at this address, such as `http://127.0.0.1:7233`, or of the servers of
    /// one cluster at several, separated by commas. The connection is made with the first call, and
    /// made again whenever it was lost, so the server need not be there yet. Must be called within a
    /// tokio runtime.
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
