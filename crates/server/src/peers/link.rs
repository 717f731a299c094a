//! The link to one other node. It is kept up while that node belongs to the cluster: when it
//! breaks, waiting calls fail, messages are lost, and the link reconnects.

use std::{
    collections::{HashMap, VecDeque},
    pin::Pin,
    sync::{
        Arc, Mutex, Weak,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use abide_core::operation::CallError;
use abide_engine::{Engine, peers::PeerMessage};
use abide_proto::generated::{
    PeerAnswers, PeerCall, PeerFrame, PeerHello, peer_answer, peer_call::Call,
    peers_client::PeersClient,
};
use futures_util::Stream;
use prost::Message as _;
use tokio::{
    sync::{Notify, mpsc, oneshot, watch},
    time::timeout,
};
use tonic::{
    Code, Status, Streaming,
    transport::{Channel, Endpoint},
};

use super::{
    Credentials, PROTOCOL_VERSION, conversion,
    proof::{self, End, Terms},
    wary::Wary,
};
use crate::{
    frame::{WRITTEN_BYTES, WRITTEN_ITEMS},
    lock::lock,
};

/// Pauses before a broken link reconnects, each twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// Time limit of the handshake. A live node is much faster.
const GREETING: Duration = Duration::from_secs(5);

/// Bound on messages that wait to be written. A node that falls this far behind counts as
/// unreachable.
const WAITING_MAX: usize = 100_000;

/// The addresses of both ends.
pub(super) struct Ends {
    /// Address at which other nodes reach this one.
    pub(super) own: String,
    /// Address of the other node.
    pub(super) node: String,
    pub(super) credentials: Credentials,
}

pub(super) struct Link {
    line: Arc<Mutex<Line>>,
    task: tokio::task::AbortHandle,
}

/// State of the connection. Nothing is sent before the handshake is complete.
#[derive(Default)]
struct Line {
    sender: Option<mpsc::UnboundedSender<LinkFrame>>,
    /// Number of messages that are queued and not yet written.
    waiting: Arc<AtomicUsize>,
    /// Wakes the link when too many messages are queued.
    full: Arc<Notify>,
    numbered: u64,
    callers: HashMap<u64, oneshot::Sender<Result<peer_answer::Answer, CallError>>>,
}

/// A message to the other node.
enum LinkFrame {
    Proof(Vec<u8>),
    Call(Box<PeerCall>),
    Abandon(u64),
    Message(Box<PeerMessage>),
}

impl Link {
    /// Starts a link, and reconnects it whenever it breaks.
    pub(super) fn keep(
        ends: Ends,
        place: Endpoint,
        mut engine: watch::Receiver<Weak<Engine>>,
    ) -> Self {
        let line = Arc::<Mutex<Line>>::default();
        let kept = Arc::clone(&line);
        let task = tokio::spawn(async move {
            let started = engine.wait_for(|engine| engine.strong_count() > 0).await;
            let Some(engine) = started.ok().map(|engine| engine.clone()) else { return };
            let mut pause = FIRST_PAUSE;
            let mut warned = false;
            loop {
                let ended = exchange(&ends, place.clone(), &engine, &kept).await;
                let node = &ends.node;
                let strange = ended.code() == Code::Unauthenticated;
                if strange && !warned {
                    let reason = ended.message();
                    tracing::error!(node, reason, "another node refused to authenticate this node");
                }
                warned = strange;
                if end(&kept) {
                    pause = FIRST_PAUSE;
                    tracing::warn!(node, reason = %ended, "the link to another node is broken");
                    if let Some(engine) = engine.upgrade() {
                        engine.unlinked(node);
                    }
                }
                tokio::time::sleep(pause).await;
                pause = (2 * pause).min(LONGEST_PAUSE);
            }
        });
        Self { line, task: task.abort_handle() }
    }

    /// Sends a message if the node is connected; drops it otherwise.
    pub(super) fn send(&self, message: PeerMessage) {
        lock(&self.line).send(LinkFrame::Message(Box::new(message)));
    }

    /// Makes a call and waits for the answer.
    pub(super) fn call(
        &self,
        call: Call,
    ) -> impl Future<Output = Result<peer_answer::Answer, CallError>> + Send + use<> {
        let asked = self.ask(call);
        async move {
            let mut waiting = asked?;
            let answer = (&mut waiting.answer).await;
            waiting.answered = true;
            answer.unwrap_or_else(|_| Err(unreachable()))
        }
    }

    fn ask(&self, call: Call) -> Result<PendingPeerCall, CallError> {
        let mut line = lock(&self.line);
        line.numbered += 1;
        let number = line.numbered;
        // A call that was not sent has not happened, so the caller can retry it.
        if !line.send(LinkFrame::Call(Box::new(PeerCall { number, call: Some(call) }))) {
            return Err(CallError::NotServed);
        }
        let (sender, answer) = oneshot::channel();
        line.callers.insert(number, sender);
        Ok(PendingPeerCall { line: Arc::clone(&self.line), number, answer, answered: false })
    }
}

impl Line {
    /// Queues a message. `false` if the link is down or too far behind.
    fn send(&self, frame: LinkFrame) -> bool {
        let Some(sender) = &self.sender else { return false };
        if self.waiting.load(Ordering::Relaxed) >= WAITING_MAX {
            self.full.notify_one();
            return false;
        }
        self.waiting.fetch_add(1, Ordering::Relaxed);
        sender.send(frame).is_ok()
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.task.abort();
        end(&self.line);
    }
}

/// A call in flight. Dropping it abandons the call.
struct PendingPeerCall {
    line: Arc<Mutex<Line>>,
    number: u64,
    answer: oneshot::Receiver<Result<peer_answer::Answer, CallError>>,
    answered: bool,
}

impl Drop for PendingPeerCall {
    fn drop(&mut self) {
        let mut line = lock(&self.line);
        if !self.answered && line.callers.remove(&self.number).is_some() {
            // If the link has ended, there is nothing to abandon.
            line.send(LinkFrame::Abandon(self.number));
        }
    }
}

/// Exchanges frames with the other node until the link breaks, and returns the reason.
async fn exchange(
    ends: &Ends,
    place: Endpoint,
    engine: &Weak<Engine>,
    line: &Mutex<Line>,
) -> Status {
    let full = Arc::<Notify>::default();
    let connected = async {
        let channel =
            place.connect().await.map_err(|error| Status::unavailable(error.to_string()))?;
        let (sender, queue) = mpsc::unbounded_channel();
        let count = Arc::<AtomicUsize>::default();
        let written = Arc::clone(&count);
        let begun = timeout(GREETING, begin(ends, channel, (&sender, queue), count)).await;
        let mut answers =
            begun.map_err(|_| Status::unavailable("the other node does not respond"))??;
        {
            let mut line = lock(line);
            line.sender = Some(sender);
            line.waiting = written;
            line.full = Arc::clone(&full);
        }
        if let Some(engine) = engine.upgrade() {
            engine.linked(&ends.node);
        }
        while let Some(PeerAnswers { answers, .. }) = answers.message().await? {
            let callers: Vec<_> = {
                let mut line = lock(line);
                let numbers = answers.iter().map(|answer| answer.number);
                numbers.map(|number| line.callers.remove(&number)).collect()
            };
            for (caller, answer) in callers.into_iter().zip(answers) {
                if let Some(caller) = caller {
                    // If the caller has left meanwhile, the answer is dropped.
                    drop(caller.send(answer.answer.ok_or_else(conversion::unknown)));
                }
            }
        }
        Err::<(), _>(Status::unavailable("the other node ended the link"))
    };
    tokio::select! {
        ended = connected => ended.err().unwrap_or_else(|| Status::ok("it ended")),
        () = full.notified() => Status::resource_exhausted("the other node does not read"),
    }
}

/// Opens the link: each node proves to the other that it is a node, before anything else is sent.
/// TLS has already checked the name in the other's certificate.
async fn begin(
    Ends { own, node, credentials }: &Ends,
    channel: Channel,
    (sender, queue): (&mpsc::UnboundedSender<LinkFrame>, mpsc::UnboundedReceiver<LinkFrame>),
    count: Arc<AtomicUsize>,
) -> Result<Streaming<PeerAnswers>, Status> {
    let caller_nonce = proof::nonce();
    let hello = PeerHello {
        protocol_version: PROTOCOL_VERSION,
        address: own.clone(),
        nonce: caller_nonce.clone().into(),
    };
    let frames = LinkFrames { hello: Some(hello), queue, taken: VecDeque::new(), count };
    let (channel, proven) = Wary::new(channel);
    // Nodes bound what they send each other themselves.
    let mut client = PeersClient::new(channel).max_decoding_message_size(usize::MAX);
    let mut answers = client.link(frames).await?.into_inner();
    let gone = || Status::unavailable("the other node ended the link");
    let PeerAnswers { challenge, .. } = answers.message().await?.ok_or_else(gone)?;
    let (caller, called) = (own.clone(), node.clone());
    let called_nonce = challenge.to_vec();
    let terms = Terms { caller, called, caller_nonce, called_nonce };
    // If the link has ended, the code below reports it.
    drop(sender.send(LinkFrame::Proof(credentials.sign(&terms, End::Caller))));
    let PeerAnswers { proof, .. } = answers.message().await?.ok_or_else(gone)?;
    if !credentials.proven(&terms, End::Called, &proof) {
        return Err(Status::unauthenticated(
            "the other node does not know the secret of this node",
        ));
    }
    proven.store(true, Ordering::Relaxed);
    Ok(answers)
}

/// The link is broken: all waiting calls fail. Returns whether the handshake had been completed.
fn end(line: &Mutex<Line>) -> bool {
    let (sender, callers) = {
        let mut line = lock(line);
        (line.sender.take(), std::mem::take(&mut line.callers))
    };
    for caller in callers.into_values() {
        drop(caller.send(Err(unreachable())));
    }
    sender.is_some()
}

fn unreachable() -> CallError {
    CallError::Unavailable("the node that owns the run is unreachable".into())
}

/// The frames to the other node, the first with the hello. They end with the link.
struct LinkFrames {
    /// The hello, until it is sent.
    hello: Option<PeerHello>,
    queue: mpsc::UnboundedReceiver<LinkFrame>,
    /// Messages taken from the channel and not written yet.
    taken: VecDeque<LinkFrame>,
    /// Number of all messages that are queued and not yet written.
    count: Arc<AtomicUsize>,
}

impl Stream for LinkFrames {
    type Item = PeerFrame;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<PeerFrame>> {
        if let Some(hello) = self.hello.take() {
            return Poll::Ready(Some(PeerFrame { hello: Some(hello), ..PeerFrame::default() }));
        }
        if self.taken.is_empty() {
            let mut taken = Vec::new();
            let count = ready!(self.queue.poll_recv_many(context, &mut taken, WRITTEN_ITEMS));
            if count == 0 {
                return Poll::Ready(None);
            }
            self.taken.extend(taken);
        }
        let mut frame = PeerFrame::default();
        let mut bytes = 0;
        while bytes < WRITTEN_BYTES
            && let Some(next) = self.taken.pop_front()
        {
            // The proof was not counted: it goes before all queued messages.
            if let LinkFrame::Proof(proof) = next {
                frame.proof = proof.into();
                break;
            }
            self.count.fetch_sub(1, Ordering::Relaxed);
            match next {
                LinkFrame::Proof(_) => {}
                LinkFrame::Call(call) => {
                    bytes += call.encoded_len();
                    frame.calls.push(*call);
                }
                LinkFrame::Abandon(number) => frame.abandoned.push(number),
                LinkFrame::Message(message) => {
                    let message = conversion::message_to_wire(*message);
                    bytes += message.encoded_len();
                    frame.messages.push(message);
                }
            }
        }
        Poll::Ready(Some(frame))
    }
}
