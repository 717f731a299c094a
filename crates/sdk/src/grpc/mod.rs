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
    call::{Call, CallError, CallReply, HistoryPage, HistoryRequest, QueueKey, RunTarget, Worker},
    list::{RunFilter, RunRow, WaitFilter, WaitRow},
    node::NodeListing,
    run::Description,
};
use abide_proto::operation::{Operation, Page, Reply, answer_from_wire, operation_to_wire};

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

    async fn ask(&self, operation: Operation) -> Result<Reply, CallError> {
        let asked = operation_to_wire(operation)?;
        let stream = self.stream();
        let answer = answer_from_wire(stream.call(asked).await?);
        stream.answered(&answer);
        answer
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

/// The server answered another question.
fn unexpected() -> CallError {
    CallError::Unavailable("its answer is not one to this call".into())
}

impl Transport for GrpcTransport {
    fn call(&self, call: Call) -> Answer<'_, CallReply> {
        Box::pin(async move {
            match self.ask(Operation::Call(call)).await? {
                Reply::Call(reply) => Ok(reply),
                _ => Err(unexpected()),
            }
        })
    }

    fn describe(&self, target: RunTarget) -> Answer<'_, Description> {
        Box::pin(async move {
            match self.call(Call::Describe(target)).await? {
                CallReply::Description(shown) => Ok(*shown),
                _ => Err(unexpected()),
            }
        })
    }

    fn history(&self, request: HistoryRequest) -> Answer<'_, HistoryPage> {
        Box::pin(async move {
            match self.ask(Operation::History(request)).await? {
                Reply::History(page) => Ok(page),
                _ => Err(unexpected()),
            }
        })
    }

    fn runs(&self, filter: RunFilter, limit: usize) -> Answer<'_, Vec<RunRow>> {
        Box::pin(async move {
            let page = Page { filter, limit: Some(limit) };
            match self.ask(Operation::Runs(page)).await? {
                Reply::Runs(rows, _) => Ok(rows),
                _ => Err(unexpected()),
            }
        })
    }

    fn count_runs(&self, filter: RunFilter) -> Answer<'_, u64> {
        Box::pin(async move {
            match self.ask(Operation::CountRuns(filter)).await? {
                Reply::Count(count) => Ok(count),
                _ => Err(unexpected()),
            }
        })
    }

    fn waits(&self, filter: WaitFilter, limit: usize) -> Answer<'_, Vec<WaitRow>> {
        Box::pin(async move {
            let page = Page { filter, limit: Some(limit) };
            match self.ask(Operation::Waits(page)).await? {
                Reply::Waits(rows, _) => Ok(rows),
                _ => Err(unexpected()),
            }
        })
    }

    fn nodes(&self) -> Answer<'_, Vec<NodeListing>> {
        Box::pin(async move {
            match self.ask(Operation::Nodes).await? {
                Reply::Nodes(nodes) => Ok(nodes),
                _ => Err(unexpected()),
            }
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
