//! The accepting end of a link between nodes. Messages of the other node go to the engine in order;
//! its calls are answered in any order, once it has proven to be a node. The connection polls the
//! link.

use std::{
    collections::HashMap,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
    time::Duration,
};

use abide_core::{
    limits::InvalidField,
    operation::{AnswerSize, CallError},
};
use abide_proto::generated::{
    PeerAnswer, PeerAnswers, PeerCall, PeerFrame, PeerHello, peers_server,
};
use abide_shard::node::NewestLinks;
use futures_util::{
    FutureExt as _, Stream, StreamExt as _, TryFutureExt as _,
    future::{AbortHandle, Abortable, BoxFuture, ready},
    stream::{self, FuturesUnordered},
};
use prost::Message as _;
use tokio::time::{Instant, timeout};
use tonic::{Request, Response, Status, Streaming, async_trait};

use super::{
    Credentials, PROTOCOL_VERSION,
    conversion::{self, Called},
    proof::{self, End, NONCE_BYTES, Terms},
};
use crate::{
    connections::LinkPlace,
    frame::{READ_FRAMES, WRITTEN_BYTES, WRITTEN_ITEMS},
    framing::MessageStream,
    handler::{Handler, status},
    lock::lock,
};

/// The service for other nodes.
#[derive(Clone)]
pub(crate) struct Accept {
    handler: Handler,
    /// Address at which other nodes reach this one.
    own: String,
    credentials: Credentials,
    latest: Arc<Mutex<Latest>>,
}

/// What the links share.
#[derive(Default)]
struct Latest {
    links: NewestLinks,
    /// Time of the last warning about a caller that is not a node.
    warned_at: Option<Instant>,
}

/// Minimum time between two warnings about callers that are not nodes, because anyone can be such a
/// caller.
const WARNINGS: Duration = Duration::from_secs(10);

/// Longest accepted address in bytes. Any host name with a port is shorter.
const ADDRESS_BYTES_MAX: usize = 300;

impl Accept {
    pub(crate) fn new(handler: Handler, own: String, credentials: Credentials) -> Self {
        Self { handler, own, credentials, latest: Arc::default() }
    }

    /// The next frame of a caller that is not authenticated yet.
    async fn next_frame(&self, frames: &mut MessageStream<PeerFrame>) -> Result<PeerFrame, Status> {
        let next = timeout(self.handler.bounds.hello_timeout(), frames.next()).await;
        let next = next.map_err(|_| status(missing()))?.ok_or_else(|| status(missing()))?;
        next.map(|(frame, _)| frame)
    }

    /// The terms that this caller has to sign.
    fn terms(&self, hello: PeerHello) -> Result<Terms, InvalidField> {
        let PeerHello { protocol_version, address, nonce } = hello;
        if protocol_version != PROTOCOL_VERSION {
            let problem =
                format!("is {protocol_version}, but this node supports {PROTOCOL_VERSION}");
            return Err(InvalidField::new("hello.protocol_version", problem));
        }
        if address.len() > ADDRESS_BYTES_MAX {
            let problem = format!("has {} bytes, the limit is {ADDRESS_BYTES_MAX}", address.len());
            return Err(InvalidField::new("hello.address", problem));
        }
        if nonce.len() != NONCE_BYTES {
            let problem = format!("has {} bytes instead of {NONCE_BYTES}", nonce.len());
            return Err(InvalidField::new("hello.nonce", problem));
        }
        let called = self.own.clone();
        let (caller_nonce, called_nonce) = (nonce.to_vec(), proof::nonce());
        Ok(Terms { caller: address, called, caller_nonce, called_nonce })
    }

    /// Begins the link of a caller that proves to be a node. Before that nothing changes, so that
    /// no other caller can replace a node's link.
    async fn begin(
        self,
        terms: Terms,
        mut frames: MessageStream<PeerFrame>,
        mut place: LinkPlace,
    ) -> Result<impl Stream<Item = Result<PeerAnswers, Status>>, Status> {
        let PeerFrame { proof, .. } = self.next_frame(&mut frames).await?;
        if !self.credentials.proven(&terms, End::Caller, &proof) {
            let why = "the secret or the address does not match: all nodes of a cluster need the same secret, \
                       and each its own address";
            return Err(self.stranger(&terms.caller, why));
        }
        place.prove();
        let proof = self.credentials.sign(&terms, End::Called).into();
        let node = terms.caller;
        let number = {
            let mut latest = lock(&self.latest);
            let number = latest.links.begin(&node);
            // The lock is held here, so that the end of an older link cannot be reported after
            // this.
            self.handler.engine.called(&node);
            number
        };
        let listening = Listening {
            handler: self.handler,
            node,
            number,
            latest: self.latest,
            frames,
            saying: true,
            running: FuturesUnordered::new(),
            open: HashMap::new(),
            _place: place,
        };
        Ok(once(PeerAnswers { proof, ..PeerAnswers::default() }).chain(listening))
    }

    /// Refuses a caller that has not proven to be a node.
    fn stranger(&self, address: &str, why: &str) -> Status {
        let mut latest = lock(&self.latest);
        if latest.warned_at.is_none_or(|at| at.elapsed() >= WARNINGS) {
            latest.warned_at = Some(Instant::now());
            tracing::warn!(
                ?address,
                why,
                "a caller claims to be a node and failed to authenticate: if it is a node, give it the \
                 secret of this node, or a certificate with the name that nodes have"
            );
        }
        Status::unauthenticated(why)
    }
}

fn once(answers: PeerAnswers) -> impl Stream<Item = Result<PeerAnswers, Status>> {
    stream::once(ready(Ok(answers)))
}

#[async_trait]
impl peers_server::Peers for Accept {
    type LinkStream = Pin<Box<dyn Stream<Item = Result<PeerAnswers, Status>> + Send>>;

    async fn link(
        &self,
        mut request: Request<Streaming<PeerFrame>>,
    ) -> Result<Response<Self::LinkStream>, Status> {
        let connection = crate::framing::connection(request.extensions())?;
        let place = connection.link()?;
        let certificates = request.peer_certs();
        let mut frames = crate::framing::incoming(&mut request)?;
        let hello = self.next_frame(&mut frames).await?.hello.ok_or_else(|| status(missing()))?;
        if !self.credentials.certified(certificates.as_ref().map(|it| it.as_slice())) {
            let why = "the certificate does not have the name that nodes of this cluster have: \
                       see certificate_name under [node]";
            return Err(self.stranger(&hello.address, why));
        }
        let terms = self.terms(hello).map_err(status)?;
        let challenge = terms.called_nonce.clone().into();
        let begun = self.clone().begin(terms, frames, place).try_flatten_stream();
        let link = once(PeerAnswers { challenge, ..PeerAnswers::default() }).chain(begun);
        Ok(Response::new(Box::pin(link)))
    }
}

/// A link from another node, as this node reads and answers it.
pub(crate) struct Listening {
    handler: Handler,
    node: String,
    /// Number of this link among those of all nodes; the newest has the highest.
    number: u64,
    latest: Arc<Mutex<Latest>>,
    frames: MessageStream<PeerFrame>,
    /// Whether the node may send more.
    saying: bool,
    running: FuturesUnordered<BoxFuture<'static, Option<PeerAnswer>>>,
    /// Handles that cancel the calls which the node may abandon, by call number.
    open: HashMap<u64, AbortHandle>,
    _place: LinkPlace,
}

impl Listening {
    /// Whether the node has begun no newer link.
    fn is_latest(&self) -> bool {
        lock(&self.latest).links.is_newest(&self.node, self.number)
    }

    /// Reads the frames that the node has sent so far.
    fn poll_incoming(&mut self, context: &mut Context<'_>) {
        for _ in 0..READ_FRAMES {
            if !self.saying {
                return;
            }
            match self.frames.poll_next_unpin(context) {
                Poll::Ready(Some(Ok((frame, _)))) if self.is_latest() => self.take(frame),
                Poll::Ready(_) => self.saying = false,
                Poll::Pending => return,
            }
        }
        context.waker().wake_by_ref();
    }

    fn take(&mut self, frame: PeerFrame) {
        for message in frame.messages {
            match conversion::message_from_wire(message) {
                Ok(message) => self.handler.engine.receive(&self.node, message),
                Err(error) => {
                    let node = &self.node;
                    tracing::warn!(node, %error, "another node sent an unknown message");
                }
            }
        }
        for call in frame.calls {
            self.begin(call);
        }
        for number in frame.abandoned {
            if let Some(call) = self.open.remove(&number) {
                call.abort();
            }
        }
    }

    fn begin(&mut self, PeerCall { number, call }: PeerCall) {
        let limit = self.handler.bounds.calls_per_stream;
        let called = if self.running.len() < limit {
            conversion::called(call).map_err(CallError::from)
        } else {
            // This concerns all callers of the other node together, so none of them is at fault.
            Err(CallError::Overloaded)
        };
        let call = perform(self.handler.clone(), number, called);
        let (handle, registration) = AbortHandle::new_pair();
        self.open.insert(number, handle);
        self.running.push(Abortable::new(call, registration).map(Result::ok).boxed());
    }

    fn poll_answers(&mut self, context: &mut Context<'_>) -> Vec<PeerAnswer> {
        let (mut answers, mut bytes) = (Vec::new(), 0);
        while answers.len() < WRITTEN_ITEMS && bytes < WRITTEN_BYTES {
            match self.running.poll_next_unpin(context) {
                Poll::Ready(Some(Some(answer))) => {
                    self.open.remove(&answer.number);
                    bytes += answer.encoded_len();
                    answers.push(answer);
                }
                Poll::Ready(Some(None)) => {}
                Poll::Ready(None) | Poll::Pending => break,
            }
        }
        answers
    }
}

impl Stream for Listening {
    type Item = Result<PeerAnswers, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        this.poll_incoming(context);
        let answers = this.poll_answers(context);
        match (answers.is_empty(), this.saying) {
            (false, _) => Poll::Ready(Some(Ok(PeerAnswers { answers, ..PeerAnswers::default() }))),
            (true, true) => Poll::Pending,
            // A node that has disconnected waits for no answer.
            (true, false) => Poll::Ready(None),
        }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let mut latest = lock(&self.latest);
        if latest.links.end(&self.node, self.number) {
            self.handler.engine.link_closed(&self.node);
        }
    }
}

async fn perform(handler: Handler, number: u64, called: Result<Called, CallError>) -> PeerAnswer {
    let engine = &handler.engine;
    let answer = match called {
        Ok(Called::Operation(operation)) => {
            // The node that asks has no turn while it waits: the answer is built here.
            let built = operation.name().answer_size() == AnswerSize::Built;
            let _building = if built { handler.connections.build_answer().await } else { None };
            conversion::answer_to_wire(engine.ask_here(operation).await)
        }
        Ok(Called::Report(report)) => {
            conversion::acknowledged_to_wire(engine.report_here(*report).await)
        }
        Err(failed) => conversion::answer_to_wire(Err(failed)),
    };
    PeerAnswer { number, answer: Some(answer) }
}

fn missing() -> InvalidField {
    InvalidField::new("hello", "must be in the first frame, and the proof in the second")
}
