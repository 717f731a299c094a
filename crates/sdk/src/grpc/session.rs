//! A worker's connection to a server.

use std::sync::Arc;

use abide_core::{
    dispatch::{Dispatch, QueueKey, Worker},
    operation::CallError,
    report::{Report, ReportAnswer},
    visible::visible,
};
use abide_proto::{
    PROTOCOL_VERSION,
    error::{from_status, reason},
    generated::{
        Completion, Credit, Hello, ServerFrame, WorkerFrame,
        acknowledgement::Acknowledgement as Acknowledged, workers_client::WorkersClient,
    },
    worker::{acknowledgement_from_wire, credit_to_wire, report_to_wire, shard_from_wire},
};
use prost::Message;
use tokio::{
    sync::mpsc::{self, UnboundedReceiver, UnboundedSender},
    task::AbortHandle,
};
use tonic::{Status, Streaming};

use super::{
    answers::{Answers, Claim},
    bound::{self, Bound, in_frame},
    frames::{Frame, Frames},
    servers::{Connection, Refusals},
};
use crate::transport::{AnswerFuture, BoxFuture, Given, Session, SessionSender};

/// After this many unacknowledged completions in a row the worker switches servers. That allows
/// several seconds of retries, because switching loses the tasks in flight.
const REFUSALS: u32 = 12;

pub(super) struct GrpcSession {
    sender: Arc<Sender>,
    given: UnboundedReceiver<Given>,
    reader: AbortHandle,
}

/// The sending half of the stream.
struct Sender {
    way: Arc<Connection>,
    refusals: Arc<Refusals>,
    queue: UnboundedSender<Option<FrameItem>>,
    answers: Answers<Acknowledged>,
    bound: Bound,
}

/// A message from the worker on the stream.
pub(super) enum FrameItem {
    Hello(Hello),
    Credit(Credit),
    Completion(Box<Completion>),
    Withdraw,
}

impl GrpcSession {
    /// Connects a worker and waits for the server's welcome.
    pub(super) async fn connect(
        way: Arc<Connection>,
        worker: Worker,
        takes: Vec<(QueueKey, usize)>,
    ) -> Result<Self, CallError> {
        let connected = Self::connect_to(&way, worker, takes).await;
        connected.inspect_err(|_| way.leave()).map_err(|failed| match failed {
            CallError::Unavailable(why) => CallError::Unavailable(way.saying(why)),
            other => other,
        })
    }

    async fn connect_to(
        way: &Arc<Connection>,
        worker: Worker,
        takes: Vec<(QueueKey, usize)>,
    ) -> Result<Self, CallError> {
        let (queue, said) = mpsc::unbounded_channel();
        // The receiver is alive, so this cannot fail.
        drop(queue.send(Some(FrameItem::Hello(Hello {
            protocol_version: PROTOCOL_VERSION,
            session: worker.session.as_str().to_owned(),
            identity: worker.identity,
            build: worker.build.map(|build| build.as_str().to_owned()),
            takes: takes.into_iter().map(|(queue, most)| credit_to_wire(queue, most)).collect(),
        }))));
        let mut client =
            WorkersClient::new(way.channel.clone()).max_decoding_message_size(usize::MAX);
        let (announcer, bound) = bound::unannounced();
        let frames = Frames::<WorkerFrame>::new(said, bound.clone());
        let connecting = async {
            let mut told = client.connect(frames).await?.into_inner();
            let first = told.message().await?;
            Ok((told, first))
        };
        let connected = way.first(connecting).await;
        let (told, first) = connected.map_err(|status| from_status(&status))?;
        let no_welcome = || CallError::Unavailable("the server ended the connection".into());
        let welcome = first.and_then(|frame| frame.welcome).ok_or_else(no_welcome)?;
        announcer.announce(welcome.message_bytes);
        let answers = Answers::new();
        let (giver, given) = mpsc::unbounded_channel();
        let reader = tokio::spawn(read(Arc::clone(way), told, giver, answers.clone()));
        let refusals = Arc::new(Refusals::new(REFUSALS));
        let sender = Arc::new(Sender { way: Arc::clone(way), refusals, queue, answers, bound });
        Ok(Self { sender, given, reader: reader.abort_handle() })
    }
}

impl Session for GrpcSession {
    fn sender(&self) -> Arc<dyn SessionSender> {
        Arc::clone(&self.sender) as Arc<dyn SessionSender>
    }

    fn next(&mut self) -> BoxFuture<'_, Option<Given>> {
        Box::pin(self.given.recv())
    }
}

impl Drop for GrpcSession {
    fn drop(&mut self) {
        self.reader.abort();
        // Ends the stream although clones of the sender may be alive.
        drop(self.sender.queue.send(None));
        self.sender.answers.end("the session was ended");
    }
}

impl SessionSender for Sender {
    fn credit(&self, queue: QueueKey, credits: usize) {
        // Credit ends with the stream, so a failed send loses nothing.
        drop(self.queue.send(Some(FrameItem::Credit(credit_to_wire(queue, credits)))));
    }

    fn withdraw(&self) {
        // The end of the stream withdraws the credit as well.
        drop(self.queue.send(Some(FrameItem::Withdraw)));
    }

    fn report(&self, report: Report) -> AnswerFuture<'static, ReportAnswer> {
        let claim = self.say(report);
        let (way, refusals) = (Arc::clone(&self.way), Arc::clone(&self.refusals));
        let queue = self.queue.clone();
        Box::pin(async move {
            let acknowledged = acknowledgement_from_wire(claim?.answer().await?);
            if way.has_others() && refusals.too_many(&acknowledged) {
                // Ends the stream; the worker connects to the next server.
                way.leave();
                drop(queue.send(None));
            }
            acknowledged
        })
    }
}

impl Sender {
    /// Sends a report and returns the claim to its acknowledgement.
    fn say(&self, report: Report) -> Result<Claim<Acknowledged>, CallError> {
        let completion = Some(report_to_wire(report));
        // Measured with the longest number, because the completion has none yet.
        let mut completion = Completion { number: u64::MAX, completion };
        self.bound.check("completion", in_frame(completion.encoded_len()))?;
        let claim = self.answers.claim()?;
        completion.number = claim.number;
        // If the stream has ended, the claim returns the error.
        drop(self.queue.send(Some(FrameItem::Completion(Box::new(completion)))));
        Ok(claim)
    }
}

async fn read(
    way: Arc<Connection>,
    mut told: Streaming<ServerFrame>,
    giver: UnboundedSender<Given>,
    answers: Answers<Acknowledged>,
) {
    let ended = loop {
        match told.message().await {
            Ok(Some(frame)) => take(frame, &giver, &answers),
            Ok(None) => break "the server ended the stream".to_owned(),
            Err(status) => break lost(&way, &status),
        }
    };
    // Before the worker sees the end and reconnects.
    way.leave();
    answers.end(ended);
}

fn lost(way: &Connection, status: &Status) -> String {
    let reason = way.saying(reason(status));
    tracing::warn!(reason = %visible(&reason), "the worker's stream ended");
    reason
}

fn take(frame: ServerFrame, giver: &UnboundedSender<Given>, answers: &Answers<Acknowledged>) {
    answers.settle(frame.acknowledgements.into_iter().filter_map(|acknowledgement| {
        let answer = acknowledgement.acknowledgement?;
        Some((acknowledgement.number, Ok(answer)))
    }));
    let tasks = frame.tasks.into_iter().map(|task| Dispatch::try_from(task).map(Given::Work));
    let shards = frame.present_attempts.into_iter();
    let shards = shards.map(|shard| shard_from_wire(shard).map(Given::PresentAttempts));
    for given in tasks.chain(shards) {
        match given {
            // The send fails only if the session was dropped; then the server requeues the task.
            Ok(given) => drop(giver.send(given)),
            Err(error) => {
                tracing::error!(%error, "cannot decode a task; the server will deliver it again")
            }
        }
    }
}

impl Frame for WorkerFrame {
    type Item = FrameItem;

    fn size(item: &FrameItem) -> usize {
        match item {
            FrameItem::Hello(hello) => in_frame(hello.encoded_len()),
            FrameItem::Credit(credit) => in_frame(credit.encoded_len()),
            FrameItem::Completion(completion) => in_frame(completion.encoded_len()),
            FrameItem::Withdraw => in_frame(0),
        }
    }

    fn put(&mut self, item: FrameItem) {
        match item {
            FrameItem::Hello(hello) => self.hello = Some(hello),
            FrameItem::Credit(credit) => self.credits.push(credit),
            FrameItem::Completion(completion) => self.completions.push(*completion),
            FrameItem::Withdraw => self.withdraw = true,
        }
    }
}
