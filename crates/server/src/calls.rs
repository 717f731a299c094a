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
};
use futures_util::{
    FutureExt, Stream, StreamExt,
    future::{AbortHandle, Abortable, BoxFuture},
    stream::FuturesUnordered,
};
use prost::Message;
use tokio::sync::OwnedSemaphorePermit;
use tonic::Status;

use crate::{
    frame::{READ_FRAMES, WRITTEN_BYTES, WRITTEN_ITEMS, check_items},
    guests::{Charge, Guest},
    handler::{self, Handler, may_be_large, over, status},
    history::await_events,
    own_task::in_own_task,
    wire::{MessageStream, Sending},
};

/// An answer, and the charge for its bytes if it is large.
type Answered = (NumberedAnswer, Option<Charge>);

pub(crate) struct Calls {
    asked: MessageStream<CallsFrame>,
    guest: Arc<Guest>,
    asking: bool,
    welcomed: bool,
    handler: Handler,
    running: FuturesUnordered<BoxFuture<'static, Option<Answered>>>,
    /// Answers to calls that were refused without running. While there are any, the stream reads no
    /// frame.
    refused: VecDeque<NumberedAnswer>,
    /// Handles that cancel the calls a client may abandon, by call number.
    waiting: HashMap<u64, AbortHandle>,
    /// Resolves when the server stops.
    stopping: BoxFuture<'static, ()>,
    _place: OwnedSemaphorePermit,
}

impl Calls {
    /// Builds the stream that answers the calls read from `asked`.
    pub(crate) fn new(
        handler: Handler,
        guest: Arc<Guest>,
        asked: MessageStream<CallsFrame>,
    ) -> Result<Self, Status> {
        let place = handler.stream()?;
        let mut stopping = handler.stopping.clone();
        let stopping = async move {
            // An error means that the server was dropped, which is a stop too.
            let _ = stopping.wait_for(|stopping| *stopping).await;
        };
        Ok(Self {
            asked,
            guest,
            asking: true,
            welcomed: false,
            handler,
            running: FuturesUnordered::new(),
            refused: VecDeque::new(),
            waiting: HashMap::new(),
            stopping: stopping.boxed(),
            _place: place,
        })
    }

    fn take(&mut self, frame: CallsFrame) -> Result<(), InvalidField> {
        let CallsFrame { calls, abandoned } = frame;
        check_items(calls.len() + abandoned.len(), self.handler.bounds.items_per_frame)?;
        for number in abandoned {
            if let Some(call) = self.waiting.remove(&number) {
                call.abort();
            }
        }
        for NumberedCall { number, call } in calls {
            if let Err(failed) = self.start(number, call) {
                self.refused.push_back(numbered(number, Err(failed)));
            }
        }
        Ok(())
    }

    fn start(&mut self, number: u64, call: Option<Asked>) -> Result<(), CallError> {
        let limit = self.handler.bounds.calls_per_stream;
        if self.running.len() >= limit {
            return Err(over("calls of the stream", limit));
        }
        let call = call.ok_or_else(|| InvalidField::new("call", "has no known case set"))?;
        let bytes = call.encoded_len();
        let operation = self.handler.counted(operation_from_wire(call))?;
        let named = (number, operation.waits(), bytes);
        let (handler, guest) = (self.handler.clone(), Arc::clone(&self.guest));
        if may_be_large(&operation) {
            self.run(named, async move {
                let answered = in_own_task(answer(handler, guest, number, operation)).await;
                answered.unwrap_or_else(|failed| {
                    (numbered(number, Err(CallError::Unavailable(failed.to_string()))), None)
                })
            })
        } else {
            self.run(
                named,
                async move { (numbered(number, handler.perform(operation).await), None) },
            )
        }
    }

    /// Runs a call of so many bytes. Many calls can be in flight at once, so the size of their
    /// futures counts too.
    fn run(
        &mut self,
        (number, abandonable, bytes): (u64, bool, usize),
        call: impl Future<Output = Answered> + Send + 'static,
    ) -> Result<(), CallError> {
        let held = self
            .guest
            .stand(bytes + size_of_val(&call))
            .ok_or_else(|| over("bytes of the connection's calls in flight", self.guest.share()))?;
        let call = call.inspect(move |_| drop(held));
        if abandonable {
            let (handle, registration) = AbortHandle::new_pair();
            self.waiting.insert(number, handle);
            self.running.push(Abortable::new(call, registration).map(Result::ok).boxed());
        } else {
            self.running.push(call.map(Some).boxed());
        }
        Ok(())
    }

    /// Reads no more calls, and fails the long-polling calls: the caller retries at another server,
    /// or at this one.
    fn stop(&mut self) {
        self.asking = false;
        for (number, call) in self.waiting.drain() {
            call.abort();
            let stops = CallError::Unavailable("the server is shutting down".into());
            self.refused.push_back(numbered(number, Err(stops)));
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

    fn poll_answers(&mut self, context: &mut Context<'_>) -> Sending<Vec<NumberedAnswer>> {
        let (mut answers, mut charges) = (Vec::new(), Vec::new());
        let mut bytes = 0;
        while answers.len() < WRITTEN_ITEMS && bytes < WRITTEN_BYTES {
            let answer = match self.refused.pop_front() {
                Some(refused) => refused,
                None => match self.running.poll_next_unpin(context) {
                    Poll::Ready(Some(Some((answer, charge)))) => {
                        self.waiting.remove(&answer.number);
                        charges.extend(charge);
                        answer
                    }
                    Poll::Ready(Some(None)) => continue,
                    Poll::Ready(None) | Poll::Pending => break,
                },
            };
            bytes += answer.encoded_len();
            answers.push(answer);
        }
        Sending { message: answers, charges }
    }
}

/// Performs an operation whose answer may be large.
async fn answer(
    handler: Handler,
    guest: Arc<Guest>,
    number: u64,
    mut operation: AnyOperation,
) -> Answered {
    if let AnyOperation::Read(read) = &mut operation
        && let ReadOperation::History(asked) = &mut **read
        && let Err(failed) = await_events(&handler, asked).await
    {
        let failed = Err(failed);
        handler.calls.count(&failed);
        return (numbered(number, failed), None);
    }
    let _building = handler::turn(&guest, &operation).await;
    let answer = numbered(number, handler.perform(operation).await);
    let charge = guest.answered(answer.encoded_len());
    (answer, charge)
}

fn numbered(number: u64, answer: Result<AnyAnswer, CallError>) -> NumberedAnswer {
    NumberedAnswer { number, answer: Some(answer_to_wire(answer)) }
}

impl Stream for Calls {
    type Item = Result<Sending<AnswersFrame>, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if !this.welcomed {
            this.welcomed = true;
            let message_bytes = this.handler.message_bytes();
            let message = AnswersFrame { answers: Vec::new(), message_bytes };
            return Poll::Ready(Some(Ok(Sending { message, charges: Vec::new() })));
        }
        if this.asking && this.stopping.poll_unpin(context).is_ready() {
            this.stop();
        }
        if let Err(status) = this.poll_asked(context) {
            return Poll::Ready(Some(Err(status)));
        }
        let Sending { message: answers, charges } = this.poll_answers(context);
        if !answers.is_empty() {
            let message = AnswersFrame { answers, message_bytes: 0 };
            return Poll::Ready(Some(Ok(Sending { message, charges })));
        }
        let over = !this.asking && this.running.is_empty();
        if over { Poll::Ready(None) } else { Poll::Pending }
    }
}
