//! Where workers connect: a worker sends its hello, and its stream begins.

use std::sync::Arc;

use abide_core::{dispatch::Worker, limits::InvalidField, operation::CallError};
use abide_engine::Charge;
use abide_proto::{
    PROTOCOL_VERSION,
    generated::{Credit, Hello, ServerFrame, WorkerFrame, workers_server},
    parts::PartCount,
};
use futures_util::{StreamExt as _, stream::Empty};
use tokio::time::timeout;
use tonic::{Request, Response, Status, Streaming, async_trait};

use crate::{
    connections::ChargeKind,
    framing,
    handler::{Handler, status},
    session::{WorkerStream, too_many_queues},
};

/// Answer to a worker that would get no work here. It reconnects later, or to another server.
const ELSEWHERE: &str =
    "the server has no lease: it is starting, shutting down, or disconnected from its database";

pub(crate) struct Workers(pub(crate) Handler);

#[async_trait]
impl workers_server::Workers for Workers {
    type ConnectStream = Empty<Result<ServerFrame, Status>>;

    async fn connect(
        &self,
        mut request: Request<Streaming<WorkerFrame>>,
    ) -> Result<Response<Self::ConnectStream>, Status> {
        let connection = framing::connection(request.extensions())?;
        let place = Arc::new(connection.stream()?);
        let mut frames = framing::incoming(&mut request)?;
        let bounds = &self.0.bounds;
        let first: Option<Result<(WorkerFrame, PartCount), Status>> =
            timeout(bounds.hello_timeout(), frames.next()).await.map_err(|_| {
                let problem = format!("did not arrive within {} ms", bounds.hello_timeout_ms);
                status(InvalidField::new("hello", problem))
            })?;
        let (mut first, parts) = first.ok_or_else(|| status(missing()))??;
        let hello = first.hello.take().ok_or_else(|| status(missing()))?;
        let worker = self.greet(hello).map_err(status)?;
        if !self.0.engine.joined() || self.0.engine.stopping() {
            return Err(status(CallError::Unavailable(ELSEWHERE.into())));
        }
        let holder = Arc::clone(&connection);
        let account = move |bytes| Box::new(holder.take(bytes, ChargeKind::Waiting)) as Charge;
        let session = self.0.engine.connect(worker, Some(Box::new(account)));
        let mut stream = WorkerStream::new(self.0.clone(), session, (frames, connection));
        stream.receive((first, parts)).map_err(status)?;
        Ok(framing::outgoing(place.hold(stream)))
    }
}

impl Workers {
    fn greet(&self, hello: Hello) -> Result<Worker, CallError> {
        let Hello { protocol_version, session, identity, build, takes } = hello;
        if protocol_version != PROTOCOL_VERSION {
            let problem = format!(
                "is {protocol_version}, but this server supports {PROTOCOL_VERSION}; use a worker and a \
                 server of the same version"
            );
            return Err(InvalidField::new("hello.protocol_version", problem).into());
        }
        let limits = self.0.engine.limits();
        limits.check_name("hello.session", &session)?;
        limits.check_name("hello.identity", &identity)?;
        if let Some(build) = &build {
            limits.check_name("hello.build", build)?;
        }
        self.check_takes(takes)?;
        Ok(Worker { session: session.into(), identity, build: build.map(Into::into) })
    }

    /// Checks that the queues which the worker wants to serve are valid.
    fn check_takes(&self, takes: Vec<Credit>) -> Result<(), CallError> {
        let mut total: usize = 0;
        let queues = self.0.bounds.queues_per_session;
        if takes.len() > queues {
            return Err(too_many_queues(queues).into());
        }
        for credit in takes {
            total = total.saturating_add(self.0.credit(credit)?.1);
        }
        let limit = self.0.bounds.credits_per_session;
        if usize::try_from(limit).is_ok_and(|limit| total > limit) {
            let problem = format!(
                "requests {total} concurrent tasks, the limit per worker is {limit}; lower the \
                 concurrency of the worker, or raise the server's credits_per_session"
            );
            return Err(InvalidField::new("hello.takes", problem).into());
        }
        Ok(())
    }
}

fn missing() -> InvalidField {
    InvalidField::new("hello", "must be in the first frame")
}
