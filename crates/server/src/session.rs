//! The stream of one worker session. The connection polls it. It reads credits and completions and
//! hands out tasks only while it can write frames, so a worker that stops reading gets no more than
//! its credit.

use std::{
    collections::BTreeMap,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use abide_core::{
    dispatch::QueueKey,
    ids::SessionId,
    limits::InvalidField,
    operation::CallError,
    report::{Report, ReportAnswer},
};
use abide_engine::Given;
use abide_proto::{
    PROTOCOL_VERSION,
    generated::{Acknowledgement, Completion, Credit, ServerFrame, Task, Welcome, WorkerFrame},
    parts::PartCount,
    worker,
};
use futures_util::{FutureExt, Stream, StreamExt, future::BoxFuture, stream::FuturesUnordered};
use prost::Message;
use tonic::Status;

use crate::{
    connections::{Charge, ChargeKind, Connection, decoded},
    frame::{READ_FRAMES, WRITTEN_BYTES, WRITTEN_ITEMS, check_items},
    framing::{MessageStream, Sending},
    handler::{Handler, status},
    held::{HeldTask, Permitted, SessionWork},
};

/// The tag of `WorkerFrame.completions`.
const COMPLETIONS: u32 = 3;

/// Memory of a queue that has workers, beside its name.
const QUEUE_BYTES: usize = 2_000;

/// Where the name of a queue is kept while it has workers: here, in the queue machine, and in messages
/// to the shards.
const QUEUE_COPIES: usize = 8;

/// The error for a worker that names too many queues.
pub(crate) fn too_many_queues(limit: usize) -> InvalidField {
    let problem = format!(
        "names more than {limit} queues on this stream; use several workers, or raise the server's \
         queues_per_session"
    );
    InvalidField::new("credits", problem)
}

pub(crate) struct WorkerStream {
    frames: MessageStream<WorkerFrame>,
    connection: Arc<Connection>,
    /// Whether the worker may send more.
    saying: bool,
    session: abide_engine::Session,
    /// Whether the engine may hand out more.
    giving: bool,
    handler: Handler,
    held: SessionWork,
    /// The queues that the worker has named, each with the charge for it.
    queues: BTreeMap<QueueKey, Charge>,
    running: FuturesUnordered<BoxFuture<'static, Settled>>,
    welcomed: bool,
}

/// A completion with its answer.
struct Settled {
    number: u64,
    /// The task, and whether the completion ends it. `None` if the completion never reached the
    /// engine.
    task: Option<(HeldTask, bool)>,
    result: Result<ReportAnswer, CallError>,
    _held: Charge,
}

impl WorkerStream {
    /// The stream of a worker that has sent its hello, in a frame that may hold more.
    pub(crate) fn new(
        handler: Handler,
        session: abide_engine::Session,
        (frames, connection): (MessageStream<WorkerFrame>, Arc<Connection>),
    ) -> Self {
        let limit = usize::try_from(handler.bounds.credits_per_session).unwrap_or(usize::MAX);
        Self {
            frames,
            connection,
            saying: true,
            session,
            giving: true,
            handler,
            held: SessionWork::new(limit),
            queues: BTreeMap::new(),
            running: FuturesUnordered::new(),
            welcomed: false,
        }
    }

    /// Handles a frame of the worker. An error ends the stream.
    pub(crate) fn receive(
        &mut self,
        (frame, parts): (WorkerFrame, PartCount),
    ) -> Result<(), CallError> {
        let items = frame.credits.len() + frame.completions.len();
        check_items(items, self.handler.bounds.items_per_frame)?;
        if frame.hello.is_some() {
            return Err(InvalidField::new("hello", "was already sent").into());
        }
        // Completions first: they make room for the credits in the same frame.
        for (completion, parts) in frame.completions.into_iter().zip(parts.of_field(COMPLETIONS)) {
            self.complete(completion, parts);
        }
        for credit in frame.credits {
            self.credit(credit)?;
        }
        if frame.withdraw {
            self.held.withdraw();
            self.session.credits().withdraw();
        }
        Ok(())
    }

    fn credit(&mut self, credit: Credit) -> Result<(), CallError> {
        let (queue, credits) = self.handler.credit(credit)?;
        if credits == 0 {
            // Otherwise a worker could name any number of queues, each of which is remembered.
            return Err(InvalidField::new("credits", "is 0; omit queues without credit").into());
        }
        self.held.credit(credits)?;
        self.name_queue(&queue)?;
        self.session.credit(queue, credits);
        Ok(())
    }

    /// Charges for a queue that the worker has not named before.
    fn name_queue(&mut self, queue: &QueueKey) -> Result<(), CallError> {
        if self.queues.contains_key(queue) {
            return Ok(());
        }
        let limit = self.handler.bounds.queues_per_session;
        if self.queues.len() >= limit {
            return Err(too_many_queues(limit).into());
        }
        let bytes =
            QUEUE_BYTES + QUEUE_COPIES * (queue.namespace.as_str().len() + queue.queue.len());
        let charge = self.connection.take(bytes, ChargeKind::Pending);
        self.queues.insert(queue.clone(), charge);
        Ok(())
    }

    fn complete(&mut self, completion: Completion, parts: usize) {
        let bytes = decoded(completion.encoded_len(), parts);
        let held = self.connection.take(bytes, ChargeKind::Pending);
        let Completion { number, completion } = completion;
        let session = &self.session.worker().session;
        let permitted = completion
            .ok_or_else(|| InvalidField::new("completion", "has no known case set"))
            .and_then(|completion| worker::report_from_wire(completion, session))
            .map_err(CallError::from)
            .and_then(|report| Ok((self.held.permit(&report)?, report)));
        let running = match permitted {
            Ok((permitted, report)) => {
                perform(self.handler.clone(), session.clone(), permitted, report).boxed()
            }
            Err(failed) => std::future::ready((None, Err(failed))).boxed(),
        };
        let settled =
            running.map(move |(task, result)| Settled { number, task, result, _held: held });
        self.running.push(settled.boxed());
    }

    /// Reads the frames that the worker has sent so far. It stops reading while as many completions
    /// are in flight as the session may hold tasks, or while they are large; their answers come
    /// soon.
    fn poll_incoming(&mut self, context: &mut Context<'_>) -> Result<(), Status> {
        for _ in 0..READ_FRAMES {
            let busy = !self.running.is_empty() && self.connection.pending_full();
            if !self.saying || busy || self.running.len() >= self.held.limit() {
                return Ok(());
            }
            match self.frames.poll_next_unpin(context) {
                Poll::Ready(Some(frame)) => {
                    self.receive(frame?).map_err(status)?;
                }
                Poll::Ready(None) => self.saying = false,
                Poll::Pending => return Ok(()),
            }
        }
        context.waker().wake_by_ref();
        Ok(())
    }

    fn poll_answers(&mut self, context: &mut Context<'_>, frame: &mut ServerFrame) {
        while frame.acknowledgements.len() < WRITTEN_ITEMS {
            let Poll::Ready(Some(settled)) = self.running.poll_next_unpin(context) else {
                return;
            };
            let Settled { number, task, result, .. } = settled;
            if let Some((task, answers)) = task {
                self.held.settle(task, answers, &result);
            }
            let acknowledgement = Some(worker::acknowledgement_to_wire(result));
            frame.acknowledgements.push(Acknowledgement { number, acknowledgement });
        }
    }

    fn poll_given(&mut self, context: &mut Context<'_>, frame: &mut ServerFrame) {
        let mut bytes = 0;
        while self.giving && frame.tasks.len() < WRITTEN_ITEMS && bytes < WRITTEN_BYTES {
            match self.session.poll_next(context) {
                Poll::Ready(Some(Given::Work(dispatch))) => {
                    self.held.give(&dispatch);
                    let task = Task::from(dispatch);
                    bytes += task.encoded_len();
                    frame.tasks.push(task);
                }
                Poll::Ready(Some(Given::PresentAttempts(shard))) => {
                    frame.present_attempts.push(shard.number().into());
                }
                Poll::Ready(None) => self.giving = false,
                Poll::Pending => return,
            }
        }
    }
}

async fn perform(
    handler: Handler,
    session: SessionId,
    permitted: Permitted,
    report: Report,
) -> (Option<(HeldTask, bool)>, Result<ReportAnswer, CallError>) {
    let Permitted { task, present, answers } = permitted;
    let presented = match present {
        Some(token) => {
            handler.engine.report(Report::PresentAttempt(token, session)).await.map(drop)
        }
        None => Ok(()),
    };
    let result = match presented {
        Ok(()) => handler.engine.report(report).await,
        Err(failed) => Err(failed),
    };
    handler.completions.count(&result);
    (Some((task, answers)), result)
}

impl Stream for WorkerStream {
    type Item = Result<Sending<ServerFrame>, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        let mut frame = ServerFrame::default();
        if !this.welcomed {
            this.welcomed = true;
            frame.welcome = Some(Welcome {
                protocol_version: PROTOCOL_VERSION,
                credits_max: this.handler.bounds.credits_per_session,
                message_bytes: this.handler.message_bytes(),
            });
            return Poll::Ready(Some(Ok(Sending { message: frame, charges: Vec::new() })));
        }
        if let Err(status) = this.poll_incoming(context) {
            return Poll::Ready(Some(Err(status)));
        }
        this.poll_answers(context, &mut frame);
        this.poll_given(context, &mut frame);
        if frame != ServerFrame::default() {
            return Poll::Ready(Some(Ok(Sending { message: frame, charges: Vec::new() })));
        }
        // Completions that were received are answered before the stream ends.
        let over = !this.saying || !this.giving;
        if over && this.running.is_empty() { Poll::Ready(None) } else { Poll::Pending }
    }
}
