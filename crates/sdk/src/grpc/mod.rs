//! The transport over the network. All calls of a transport share one stream, and a writer batches
//! waiting calls into one frame, so that many callers cost few frames. Connections are made on
//! demand and made again after they are lost, to the next server if there are several; calls that
//! were in flight fail with [`CallError::Unavailable`].

mod answers;
mod bound;
mod builder;
mod calls;
mod frames;
mod options;
mod servers;
mod session;

use std::sync::Mutex;

use abide_core::{
    dispatch::{QueueKey, Worker},
    operation::{AnyAnswer, AnyOperation, CallError},
};
use abide_proto::operation::{answer_from_wire, operation_to_wire};

pub use self::{
    builder::ClientBuilder,
    options::{GrpcOptions, TlsOptions},
};
use self::{calls::CallsStream, servers::Servers, session::GrpcSession};
use crate::{
    lock::lock,
    transport::{AnswerFuture, Session, Transport},
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
        let mut current = lock(&self.calls);
        match &*current {
            Some(stream) if stream.usable() => stream.clone(),
            _ => current.insert(CallsStream::begin(self.servers.way())).clone(),
        }
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
