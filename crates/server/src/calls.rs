//! A stream that carries many calls, several per frame, answered in any order. The connection polls
//! the stream. It reads calls only while it can write answers, so a client that stops reading is no
//! longer served. Memory is bounded by the number and bytes of calls in flight, the refusals of one
//! frame, and the bytes of answers.

use std::{
    collections::{HashMap, VecDeque},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use abide_core::{
    limits::InvalidField,
    operation::{AnyAnswer, AnyOperation, CallError, ReadOperation},
};
use abide_proto::{
    generated::{
        AnswersFrame, CallsFrame, NumberedAnswer, NumberedCall, numbered_call::Call as Asked,
    },
    operation::{answer_to_wire, operation_from_wire},
    parts::PartCount,
};
use futures_util::{
    FutureExt, Stream, StreamExt,
    future::{AbortHandle, Abortable, BoxFuture},
    stream::FuturesUnordered,
};
use prost::{
    bytes::{Bytes, BytesMut},
    encoding::message,
};
use tonic::Status;

use crate::{
    connections::{BUILDING_OF_ONE, Charge, Connection, StreamPlace, decoded},
    frame::{READ_FRAMES, WRITTEN_BYTES, WRITTEN_ITEMS, check_items},
    framing::{MessageParts, MessageStream, Piece, Sending},
    handler::{Handler, is_built, may_be_large, over, status},
    history::await_events,
    own_task::in_own_task,
};

/// An answer to a call that was run.
struct FinishedCall {
    number: u64,
    /// The call waited in line, and the next one may follow.
    in_line: bool,
    answer: EncodedAnswer,
}

/// An answer, encoded at once: as a message it may take several times as much memory, and the client
/// may not read it for long.
struct EncodedAnswer {
    /// An entry of `AnswersFrame.answers`.
    entry: Bytes,
    /// The charge for its bytes if it is large.
    charge: Option<Charge>,
}

impl EncodedAnswer {
    fn small(number: u64, answer: Result<AnyAnswer, CallError>) -> Self {
        Self { entry: entry(number, answer), charge: None }
    }
}

/// The tag of `AnswersFrame.answers`.
const ANSWERS: u32 = 1;

/// A call whose answer takes much memory and time to build. It waits in line as it came, because the
/// future that performs it takes far more memory.
struct InLine {
    number: u64,
    operation: AnyOperation,
    held: Charge,
}

/// The tag of `CallsFrame.calls`.
const CALLS: u32 = 1;

/// A call that waits takes so many times the memory of its future: its task, which has a copy, and its
/// entries in the engine and the shard.
const WAITING_TIMES: usize = 4;

pub(crate) struct Calls {
    asked: MessageStream<CallsFrame>,
    connection: Arc<Connection>,
    asking: bool,
    welcomed: bool,
    handler: Handler,
    running: FuturesUnordered<BoxFuture<'static, Option<FinishedCall>>>,
    /// Calls that wait until few enough are being built.
    line: VecDeque<InLine>,
    /// Calls from the line that are being built.
    building: usize,
    /// Answers to calls that were refused without running. While there are any, the stream reads no
    /// frame.
    refused: VecDeque<Bytes>,
    /// Handles that cancel the calls a client may abandon, by call number.
    waiting: HashMap<u64, AbortHandle>,
    /// Resolves when the server stops.
    stopping: BoxFuture<'static, ()>,
    place: Arc<StreamPlace>,
}

impl Calls {
    /// Builds the stream that answers the calls read from `asked`.
    pub(crate) fn new(
        handler: Handler,
        connection: Arc<Connection>,
        asked: MessageStream<CallsFrame>,
        place: Arc<StreamPlace>,
    ) -> Self {
        let mut stopping = handler.stopping.clone();
        let stopping = async move {
            // An error means that the server was dropped, which is a stop too.
            let _ = stopping.wait_for(|stopping| *stopping).await;
        };
        Self {
            asked,
            connection,
            asking: true,
            welcomed: false,
            handler,
            running: FuturesUnordered::new(),
            line: VecDeque::new(),
            building: 0,
            refused: VecDeque::new(),
            waiting: HashMap::new(),
            stopping: stopping.boxed(),
            place,
        }
    }

    fn take(&mut self, (frame, parts): (CallsFrame, PartCount)) -> Result<(), InvalidField> {
        let CallsFrame { calls, abandoned } = frame;
        check_items(calls.len() + abandoned.len(), self.handler.bounds.items_per_frame)?;
        for number in abandoned {
            if let Some(call) = self.waiting.remove(&number) {
                call.abort();
            }
        }
        for (NumberedCall { number, call }, parts) in calls.into_iter().zip(parts.of_field(CALLS)) {
            if let Err(failed) = self.start(number, call, parts) {
                self.refused.push_back(entry(number, Err(failed)));
            }
        }
        Ok(())
    }

    fn start(&mut self, number: u64, call: Option<Asked>, parts: usize) -> Result<(), CallError> {
        let limit = self.handler.bounds.calls_per_stream;
        if self.running.len() + self.line.len() >= limit {
            return Err(over("calls of the stream", limit));
        }
        let call = call.ok_or_else(|| InvalidField::new("call", "has no known case set"))?;
        let bytes = decoded(call.encoded_len(), parts);
        let operation = self.handler.counted(operation_from_wire(call))?;
        let abandonable = operation.waits();
        if is_built(&operation) && !abandonable {
            let held = self.charge_pending(bytes + size_of::<InLine>())?;
            self.line.push_back(InLine { number, operation, held });
            return Ok(());
        }
        let handler = self.handler.clone();
        if may_be_large(&operation) {
            let call = large(handler, Arc::clone(&self.connection), number, operation);
            self.run((number, abandonable, bytes), call)
        } else {
            self.run((number, abandonable, bytes), async move {
                EncodedAnswer::small(number, handler.perform(operation).await)
            })
        }
    }

    /// Runs a call of so many bytes. Many calls can be in flight at once, so the size of their
    /// futures counts too, and of what waits for their answers elsewhere.
    fn run(
        &mut self,
        (number, abandonable, bytes): (u64, bool, usize),
        call: impl Future<Output = EncodedAnswer> + Send + 'static,
    ) -> Result<(), CallError> {
        let times = if abandonable { WAITING_TIMES } else { 1 };
        let held = self.charge_pending(bytes + size_of_val(&call) * times)?;
        let call = call.map(move |answer| {
            drop(held);
            FinishedCall { number, in_line: false, answer }
        });
        if abandonable {
            let (handle, registration) = AbortHandle::new_pair();
            self.waiting.insert(number, handle);
            self.running.push(Abortable::new(call, registration).map(Result::ok).boxed());
        } else {
            self.running.push(call.map(Some).boxed());
        }
        Ok(())
    }

    /// Accounts for a call that waits for its answer.
    fn charge_pending(&self, bytes: usize) -> Result<Charge, CallError> {
        let held = self.connection.charge_pending(bytes);
        held.ok_or_else(|| {
            over("bytes of the connection's calls in flight", self.connection.share())
        })
    }

    /// Runs the next calls of the line.
    fn advance_line(&mut self) {
        while self.building < BUILDING_OF_ONE
            && let Some(InLine { number, operation, held }) = self.line.pop_front()
        {
            self.building += 1;
            let call = large(self.handler.clone(), Arc::clone(&self.connection), number, operation);
            let call = call.map(move |answer| {
                drop(held);
                Some(FinishedCall { number, in_line: true, answer })
            });
            self.running.push(call.boxed());
        }
    }

    /// Reads no more calls, and fails the long-polling calls: the caller retries at another server,
    /// or at this one.
    fn stop(&mut self) {
        self.asking = false;
        for (number, call) in self.waiting.drain() {
            call.abort();
            let stops = CallError::Unavailable("the server is shutting down".into());
            self.refused.push_back(entry(number, Err(stops)));
        }
    }

    /// Reads the frames that the client has sent so far.
    fn poll_asked(&mut self, context: &mut Context<'_>) -> Result<(), Status> {
        for _ in 0..READ_FRAMES {
            if !self.asking || !self.refused.is_empty() {
                return Ok(());
            }
            match self.asked.poll_next_unpin(context) {
                Poll::Ready(Some(frame)) => {
                    self.take(frame?).map_err(status)?;
                }
                Poll::Ready(None) => self.asking = false,
                Poll::Pending => return Ok(()),
            }
        }
        context.waker().wake_by_ref();
        Ok(())
    }

    /// The next frame, if there are answers.
    fn poll_answers(&mut self, context: &mut Context<'_>) -> Option<Piece> {
        let (mut answers, mut charges) = (Vec::new(), Vec::new());
        let mut bytes = 0;
        while answers.len() < WRITTEN_ITEMS && bytes < WRITTEN_BYTES {
            if let Some(refused) = self.refused.pop_front() {
                bytes += refused.len();
                answers.push(refused);
                continue;
            }
            self.advance_line();
            let answered = match self.running.poll_next_unpin(context) {
                Poll::Ready(Some(Some(answered))) => answered,
                Poll::Ready(Some(None)) => continue,
                Poll::Ready(None) | Poll::Pending => break,
            };
            self.waiting.remove(&answered.number);
            self.building -= usize::from(answered.in_line);
            let EncodedAnswer { entry, charge } = answered.answer;
            bytes += entry.len();
            answers.push(entry);
            charges.extend(charge);
        }
        let frame = AnswersFrame::default();
        let parts = || MessageParts::framed(&frame, &answers);
        (!answers.is_empty()).then(|| Piece { parts: parts(), charges })
    }
}

/// Performs an operation whose answer may be large, in its own task.
async fn large(
    handler: Handler,
    connection: Arc<Connection>,
    number: u64,
    operation: AnyOperation,
) -> EncodedAnswer {
    let built = in_own_task(build(handler, connection, number, operation)).await;
    built.unwrap_or_else(|failed| {
        EncodedAnswer::small(number, Err(CallError::Unavailable(failed.to_string())))
    })
}

async fn build(
    handler: Handler,
    connection: Arc<Connection>,
    number: u64,
    mut operation: AnyOperation,
) -> EncodedAnswer {
    if let AnyOperation::Read(read) = &mut operation
        && let ReadOperation::History(asked) = &mut **read
        && let Err(failed) = await_events(&handler, asked).await
    {
        let failed = Err(failed);
        handler.calls.count(&failed);
        return EncodedAnswer::small(number, failed);
    }
    let (answer, _building) = handler.perform_in_turn(&connection, operation).await;
    let entry = entry(number, answer);
    let charge = connection.answered(entry.len());
    EncodedAnswer { entry, charge }
}

/// Encodes an answer as an entry of `AnswersFrame.answers`.
fn entry(number: u64, answer: Result<AnyAnswer, CallError>) -> Bytes {
    let answer = NumberedAnswer { number, answer: Some(answer_to_wire(answer)) };
    let mut entry = BytesMut::with_capacity(message::encoded_len(ANSWERS, &answer));
    message::encode(ANSWERS, &answer, &mut entry);
    entry.freeze()
}

impl Stream for Calls {
    type Item = Result<Piece, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if !this.welcomed {
            this.welcomed = true;
            let message_bytes = this.handler.message_bytes();
            let message = AnswersFrame { answers: Vec::new(), message_bytes };
            return Poll::Ready(Some(Ok(Sending { message, charges: Vec::new() }.into())));
        }
        if this.asking && this.stopping.poll_unpin(context).is_ready() {
            this.stop();
        }
        if let Err(status) = this.poll_asked(context) {
            return Poll::Ready(Some(Err(status)));
        }
        this.place.set_idle(false);
        if let Some(piece) = this.poll_answers(context) {
            return Poll::Ready(Some(Ok(piece)));
        }
        // The line is empty if nothing runs.
        this.place.set_idle(this.running.is_empty());
        let over = !this.asking && this.running.is_empty();
        if over { Poll::Ready(None) } else { Poll::Pending }
    }
}
