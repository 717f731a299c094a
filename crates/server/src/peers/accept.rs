//! The end of a link at the node that was called: what the other says goes to the engine, in order;
//! its calls are answered in any order.

use std::{collections::HashMap, pin::Pin, sync::Arc};

use abide_core::{call::CallError, limits::InvalidField};
use abide_engine::Engine;
use abide_proto::{
    generated::{PeerAnswer, PeerAnswers, PeerCall, PeerFrame, peers_server},
    operation::{Operation, Reply},
};
use futures_util::{Stream, StreamExt as _, stream};
use tokio::{
    sync::mpsc,
    task::{AbortHandle, JoinSet},
    time::timeout,
};
use tonic::{Request, Response, Status, Streaming, async_trait};

use super::{
    PROTOCOL_VERSION,
    wire::{self, Called},
};
use crate::{
    frame::WRITTEN_ITEMS,
    handler::{Handler, over, status},
};

/// The service of other nodes.
pub(crate) struct Accept(pub(crate) Handler);

#[async_trait]
impl peers_server::Peers for Accept {
    type LinkStream = Pin<Box<dyn Stream<Item = Result<PeerAnswers, Status>> + Send>>;

    async fn link(
        &self,
        request: Request<Streaming<PeerFrame>>,
    ) -> Result<Response<Self::LinkStream>, Status> {
        let place = self.0.stream()?;
        let mut said = request.into_inner();
        let first = timeout(self.0.bounds.hello_timeout(), said.message()).await;
        let first = first.map_err(|_| status(missing()))??;
        let hello = first.and_then(|frame| frame.hello).ok_or_else(|| status(missing()))?;
        if hello.protocol_version != PROTOCOL_VERSION {
            let problem =
                format!("is {}, and this node speaks {PROTOCOL_VERSION}", hello.protocol_version);
            return Err(status(InvalidField::new("hello.protocol_version", problem)));
        }
        self.0.engine.called(&hello.address);
        let (answer, answers) = mpsc::unbounded_channel();
        let calls =
            Calls { handler: self.0.clone(), answer, tasks: JoinSet::new(), open: HashMap::new() };
        // The frame that says that the link is there.
        let welcome = stream::iter([Ok(PeerAnswers::default())]);
        let listening = tokio::spawn(listen(calls, hello.address, said));
        let listening = Listening(listening.abort_handle());
        let answers = stream::unfold((answers, listening, place), |mut state| async move {
            let mut answers = Vec::new();
            let count = state.0.recv_many(&mut answers, WRITTEN_ITEMS).await;
            (count > 0).then_some((Ok(PeerAnswers { answers }), state))
        });
        Ok(Response::new(welcome.chain(answers).boxed()))
    }
}

/// Ends with the stream of answers.
struct Listening(AbortHandle);

impl Drop for Listening {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The calls of another node.
struct Calls {
    handler: Handler,
    answer: mpsc::UnboundedSender<PeerAnswer>,
    tasks: JoinSet<()>,
    /// Calls that may be abandoned.
    open: HashMap<u64, AbortHandle>,
}

/// Takes what the other node says, until it says no more.
async fn listen(mut calls: Calls, node: String, mut said: Streaming<PeerFrame>) {
    while let Ok(Some(frame)) = said.message().await {
        for message in frame.messages {
            match wire::message_from_wire(message) {
                Ok(message) => calls.handler.engine.hear(&node, message),
                Err(error) => tracing::warn!(node, %error, "another node says what nobody knows"),
            }
        }
        for number in frame.abandoned {
            if let Some(call) = calls.open.remove(&number) {
                call.abort();
            }
        }
        for call in frame.calls {
            calls.begin(call);
        }
        while calls.tasks.try_join_next().is_some() {}
        calls.open.retain(|_, call| !call.is_finished());
    }
}

impl Calls {
    fn begin(&mut self, PeerCall { number, call }: PeerCall) {
        let limit = self.handler.bounds.calls_per_stream;
        let called = if self.tasks.len() < limit {
            let engine = &self.handler.engine;
            wire::called(call, || engine.new_run_id()).map_err(CallError::from)
        } else {
            Err(over("calls of the link", limit))
        };
        let (engine, answer) = (Arc::clone(&self.handler.engine), self.answer.clone());
        let task = self.tasks.spawn(async move {
            let told = match called {
                Ok(Called::Client(operation)) => {
                    wire::reply_to_wire(perform(&engine, operation).await)
                }
                Ok(Called::Worker(call)) => wire::acknowledged(engine.call_here(call).await),
                Err(failed) => wire::reply_to_wire(Err(failed)),
            };
            // If the link has ended, nobody waits.
            drop(answer.send(PeerAnswer { number, answer: Some(told) }));
        });
        self.open.insert(number, task);
    }
}

/// Performs what is about a run that is served here.
async fn perform(engine: &Engine, operation: Operation) -> Result<Reply, CallError> {
    match operation {
        Operation::Call(call) => engine.call_here(call).await.map(Reply::Call),
        Operation::Describe(target) => {
            engine.describe_here(target).await.map(|shown| Reply::Description(Box::new(shown)))
        }
        // Whatever else there is, every node reads from the store by itself.
        Operation::History(_)
        | Operation::Runs(_)
        | Operation::CountRuns(_)
        | Operation::Waits(_)
        | Operation::Nodes => {
            Err(InvalidField::new("call", "is nothing that nodes ask each other").into())
        }
    }
}

fn missing() -> InvalidField {
    InvalidField::new("hello", "must be in the first frame")
}
