//! Many calls on one stream, several per frame, answered in any order. The stream is one machine that
//! is polled by the connection: it reads calls only while answers can be written, so a client that
//! reads nothing is not served either. It holds no more than its bound of calls, the refusals of one
//! frame, and a few pages.

use std::{
    collections::{HashMap, VecDeque},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use abide_core::{
    call::{Call, CallError, CallReply, HistoryRequest},
    limits::InvalidField,
};
use abide_proto::{
    error,
    generated::{
        AnswersFrame, CallsFrame, NumberedAnswer, NumberedCall, numbered_answer::Answer,
        numbered_call::Call as Asked,
    },
    operation::Operation,
};
use futures_util::{
    FutureExt, Stream, StreamExt,
    future::{AbortHandle, Abortable, BoxFuture},
    stream::FuturesUnordered,
};
use prost::Message;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::{Status, Streaming};

use crate::{
    frame::{READ_FRAMES, WRITTEN_BYTES, WRITTEN_ITEMS, check_items},
    handler::{Handler, may_wait, over, status},
    size::reword,
};

/// Pages that a stream reads at one time. They stay in memory until the client reads its answers.
const PAGES: usize = 16;

/// A stream of calls.
pub(crate) struct Calls {
    asked: Streaming<CallsFrame>,
    asking: bool,
    welcomed: bool,
    handler: Handler,
    running: FuturesUnordered<BoxFuture<'static, Option<NumberedAnswer>>>,
    /// Answers to calls that never ran. While there are any, no frame is read.
    refused: VecDeque<NumberedAnswer>,
    /// Calls that may be abandoned.
    waiting: HashMap<u64, AbortHandle>,
    /// Places for pages.
    pages: Arc<Semaphore>,
    /// Ends when the server stops.
    stopping: BoxFuture<'static, ()>,
    _place: OwnedSemaphorePermit,
}

impl Calls {
    /// The stream that answers `asked`.
    pub(crate) fn new(handler: Handler, asked: Streaming<CallsFrame>) -> Result<Self, Status> {
        let place = handler.stream()?;
        let mut stopping = handler.stopping.clone();
        let stopping = async move {
            // An error means that the server is gone, which is a stop too.
            let _ = stopping.wait_for(|stopping| *stopping).await;
        };
        Ok(Self {
            asked,
            asking: true,
            welcomed: false,
            handler,
            running: FuturesUnordered::new(),
            refused: VecDeque::new(),
            waiting: HashMap::new(),
            pages: Arc::new(Semaphore::new(PAGES)),
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
            match self.admit(call) {
                Ok(operation) => self.start(number, operation),
                Err(failed) => self.refused.push_back(numbered(number, Err(failed))),
            }
        }
        Ok(())
    }

    fn admit(&self, call: Option<Asked>) -> Result<Operation, CallError> {
        let limit = self.handler.bounds.calls_per_stream;
        if self.running.len() >= limit {
            return Err(over("calls of the stream", limit));
        }
        let call = call.ok_or_else(|| InvalidField::new("call", "has no known case set"))?;
        self.handler.operation(call)
    }

    fn start(&mut self, number: u64, operation: Operation) {
        let abandonable = may_wait(&operation);
        let call = perform(self.handler.clone(), Arc::clone(&self.pages), number, operation);
        if abandonable {
            let (handle, registration) = AbortHandle::new_pair();
            self.waiting.insert(number, handle);
            self.running.push(Abortable::new(call, registration).map(Result::ok).boxed());
        } else {
            self.running.push(call.map(Some).boxed());
        }
    }

    /// Takes no more calls, and lets those go that may be long in coming: the caller asks another
    /// server, or this one again.
    fn stop(&mut self) {
        self.asking = false;
        for (number, call) in self.waiting.drain() {
            call.abort();
            let stops = CallError::Unavailable("the server stops".into());
            self.refused.push_back(numbered(number, Err(stops)));
        }
    }

    /// Reads what the client has asked, if it has.
    fn poll_asked(&mut self, context: &mut Context<'_>) -> Result<(), Status> {
        for _ in 0..READ_FRAMES {
            if !self.asking || !self.refused.is_empty() {
                return Ok(());
            }
            match self.asked.poll_next_unpin(context) {
                Poll::Ready(Some(frame)) => {
                    self.take(frame.map_err(reword)?).map_err(status)?;
                }
                Poll::Ready(None) => self.asking = false,
                Poll::Pending => return Ok(()),
            }
        }
        context.waker().wake_by_ref();
        Ok(())
    }

    fn poll_answers(&mut self, context: &mut Context<'_>) -> Vec<NumberedAnswer> {
        let mut answers = Vec::new();
        let mut bytes = 0;
        while answers.len() < WRITTEN_ITEMS && bytes < WRITTEN_BYTES {
            let answer = match self.refused.pop_front() {
                Some(refused) => refused,
                None => match self.running.poll_next_unpin(context) {
                    Poll::Ready(Some(Some(answer))) => {
                        self.waiting.remove(&answer.number);
                        answer
                    }
                    Poll::Ready(Some(None)) => continue,
                    Poll::Ready(None) | Poll::Pending => break,
                },
            };
            bytes += answer.encoded_len();
            answers.push(answer);
        }
        answers
    }
}

async fn perform(
    handler: Handler,
    pages: Arc<Semaphore>,
    number: u64,
    operation: Operation,
) -> NumberedAnswer {
    numbered(number, answer(&handler, &pages, operation).await)
}

async fn answer(
    handler: &Handler,
    pages: &Semaphore,
    mut operation: Operation,
) -> Result<Answer, CallError> {
    if let Operation::History(request) = &mut operation {
        let awaited = await_events(handler, request).await;
        if awaited.is_err() {
            handler.calls.count(&awaited);
        }
        awaited?;
    }
    // The semaphore is never closed.
    let _place = if is_page(&operation) { pages.acquire().await.ok() } else { None };
    Ok(handler.perform(operation).await?.into())
}

/// Waits before a place for a page is taken, since the events may be long in coming.
async fn await_events(handler: &Handler, request: &mut HistoryRequest) -> Result<(), CallError> {
    if let Some(follow) = request.follow.take() {
        let call = Call::AwaitEvents(request.target.clone(), follow);
        if let CallReply::History { run, .. } = handler.engine.call(call).await? {
            request.target.run = Some(run);
        }
    }
    Ok(())
}

/// Whether the answer may have many rows.
fn is_page(operation: &Operation) -> bool {
    matches!(operation, Operation::History(_) | Operation::Runs(_) | Operation::Waits(_))
}

fn numbered(number: u64, answer: Result<Answer, CallError>) -> NumberedAnswer {
    let answer = answer.unwrap_or_else(|failed| Answer::Error(error::to_detail(failed)));
    NumberedAnswer { number, answer: Some(answer) }
}

impl Stream for Calls {
    type Item = Result<AnswersFrame, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if !this.welcomed {
            this.welcomed = true;
            let message_bytes = this.handler.message_bytes();
            return Poll::Ready(Some(Ok(AnswersFrame { answers: Vec::new(), message_bytes })));
        }
        if this.asking && this.stopping.poll_unpin(context).is_ready() {
            this.stop();
        }
        if let Err(status) = this.poll_asked(context) {
            return Poll::Ready(Some(Err(status)));
        }
        let answers = this.poll_answers(context);
        if !answers.is_empty() {
            return Poll::Ready(Some(Ok(AnswersFrame { answers, message_bytes: 0 })));
        }
        let over = !this.asking && this.running.is_empty();
        if over { Poll::Ready(None) } else { Poll::Pending }
    }
}
