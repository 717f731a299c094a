//! Many calls on one stream, several per frame, answered in any order. The stream is one machine that
//! is polled by the connection: it reads calls only while answers can be written, so a client that
//! reads nothing is not served either, and holds no more than its bound of calls.

use std::{
    collections::HashMap,
    pin::Pin,
    task::{Context, Poll},
};

use abide_core::call::CallError;
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
use tokio::sync::OwnedSemaphorePermit;
use tonic::{Status, Streaming};

use crate::handler::{Handler, may_wait, over};

/// Answers that one frame holds at most, so that none grows without bound.
const FRAME_ANSWERS: usize = 512;

/// Frames that are read before answers are looked at again.
const READ_FRAMES: usize = 16;

/// A stream of calls.
pub(crate) struct Calls {
    asked: Streaming<CallsFrame>,
    asking: bool,
    welcomed: bool,
    handler: Handler,
    running: FuturesUnordered<BoxFuture<'static, Option<NumberedAnswer>>>,
    /// Calls that may be abandoned.
    waiting: HashMap<u64, AbortHandle>,
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
            waiting: HashMap::new(),
            stopping: stopping.boxed(),
            _place: place,
        })
    }

    fn take(&mut self, frame: CallsFrame) {
        for number in frame.abandoned {
            if let Some(call) = self.waiting.remove(&number) {
                call.abort();
            }
        }
        for NumberedCall { number, call } in frame.calls {
            self.start(number, call);
        }
    }

    fn start(&mut self, number: u64, call: Option<Asked>) {
        let limit = self.handler.bounds.calls_per_stream;
        let missing = || abide_core::limits::InvalidField::new("call", "has no known case set");
        let operation = match call.ok_or_else(missing).and_then(Operation::try_from) {
            _ if self.running.len() >= limit => Err(over("calls of the stream", limit)),
            read => read.map_err(CallError::from),
        };
        match operation {
            Err(failed) => {
                let answer = Some(numbered(number, Err(failed)));
                self.running.push(std::future::ready(answer).boxed());
            }
            Ok(operation) if may_wait(&operation) => {
                let (handle, registration) = AbortHandle::new_pair();
                self.waiting.insert(number, handle);
                let call = perform(self.handler.clone(), number, operation);
                self.running.push(Abortable::new(call, registration).map(Result::ok).boxed());
            }
            Ok(operation) => {
                let call = perform(self.handler.clone(), number, operation);
                self.running.push(call.map(Some).boxed());
            }
        }
    }
}

async fn perform(handler: Handler, number: u64, operation: Operation) -> NumberedAnswer {
    numbered(number, handler.perform(operation).await.map(Answer::from))
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
            this.asking = false;
        }
        let mut frames = 0;
        while this.asking && frames < READ_FRAMES {
            match this.asked.poll_next_unpin(context) {
                Poll::Ready(Some(Ok(frame))) => this.take(frame),
                Poll::Ready(Some(Err(status))) => return Poll::Ready(Some(Err(status))),
                Poll::Ready(None) => this.asking = false,
                Poll::Pending => break,
            }
            frames += 1;
        }
        if frames == READ_FRAMES {
            context.waker().wake_by_ref();
        }
        let mut answers = Vec::new();
        while answers.len() < FRAME_ANSWERS {
            match this.running.poll_next_unpin(context) {
                Poll::Ready(Some(Some(answer))) => {
                    this.waiting.remove(&answer.number);
                    answers.push(answer);
                }
                Poll::Ready(Some(None)) => {}
                Poll::Ready(None) if !this.asking && answers.is_empty() => {
                    return Poll::Ready(None);
                }
                Poll::Ready(None) | Poll::Pending => break,
            }
        }
        if answers.is_empty() {
            return Poll::Pending;
        }
        Poll::Ready(Some(Ok(AnswersFrame { answers, message_bytes: 0 })))
    }
}
