//! The stream that all calls of a transport share.

use std::sync::Arc;

use abide_core::operation::CallError;
use abide_proto::{
    error::reason,
    generated::{
        AnswersFrame, CallsFrame, NumberedCall, abide_client::AbideClient, numbered_answer::Answer,
        numbered_call::Call as Asked,
    },
};
use prost::Message;
use tokio::sync::mpsc::{self, UnboundedSender};
use tonic::Status;

use super::{
    answers::{Answers, Claim},
    bound::{self, Bound, BoundAnnouncer, in_frame},
    frames::{Frame, Frames},
    servers::{Connection, Refusals},
};

/// After this many unanswered calls in a row the transport tries the next server. Few, because
/// switching is cheap.
const REFUSALS: u32 = 3;

#[derive(Clone)]
pub(super) struct CallsStream {
    way: Arc<Connection>,
    refusals: Arc<Refusals>,
    queue: UnboundedSender<Option<CallFrame>>,
    answers: Answers<Answer>,
    bound: Bound,
}

/// A message from the client on the stream.
pub(super) enum CallFrame {
    Call(Box<NumberedCall>),
    /// The caller has stopped waiting for the answer of this call.
    Abandon(u64),
}

impl CallsStream {
    /// Opens a stream. Calls wait until it is open.
    pub(super) fn begin(way: Arc<Connection>) -> Self {
        let (queue, said) = mpsc::unbounded_channel();
        let answers = Answers::new();
        let (announcer, bound) = bound::unannounced();
        let frames = Frames::new(said, bound.clone());
        tokio::spawn(run(Arc::clone(&way), frames, answers.clone(), announcer));
        Self { way, refusals: Arc::new(Refusals::new(REFUSALS)), queue, answers, bound }
    }

    /// Whether new calls may use this stream: it is open, and its server is still the current one.
    pub(super) fn usable(&self) -> bool {
        self.answers.open() && !self.way.left()
    }

    /// Counts an answer. After too many refusals new calls go to the next server; calls in flight
    /// stay.
    pub(super) fn answered<T>(&self, answer: &Result<T, CallError>) {
        if self.way.has_others() && self.refusals.too_many(answer) {
            self.way.leave();
        }
    }

    /// Sends a call and waits for its answer.
    pub(super) async fn call(&self, asked: Asked) -> Result<Answer, CallError> {
        self.bound.clone().announced().await;
        // Measured with the longest number, because the call has none yet.
        let mut call = NumberedCall { number: u64::MAX, call: Some(asked) };
        self.bound.check("call", in_frame(call.encoded_len()))?;
        let claim = self.answers.claim()?;
        call.number = claim.number;
        // If the stream has ended, the claim returns the error.
        drop(self.queue.send(Some(CallFrame::Call(Box::new(call)))));
        let mut waiting = WaitingCall { claim, queue: self.queue.clone() };
        waiting.claim.answer().await
    }
}

/// A call in flight. Dropping it abandons the call.
struct WaitingCall {
    claim: Claim<Answer>,
    queue: UnboundedSender<Option<CallFrame>>,
}

impl Drop for WaitingCall {
    fn drop(&mut self) {
        if self.claim.give_up() {
            // If the stream has ended, there is nothing to abandon.
            drop(self.queue.send(Some(CallFrame::Abandon(self.claim.number))));
        }
    }
}

async fn run(
    way: Arc<Connection>,
    frames: Frames<CallsFrame>,
    answers: Answers<Answer>,
    announcer: BoundAnnouncer,
) {
    let ended = match exchange(&way, frames, &answers, &announcer).await {
        Ok(()) => "the server ended the connection".to_owned(),
        Err(status) => reason(&status),
    };
    // Before the callers get the error, so that their retries use another server.
    way.leave();
    answers.end(way.saying(ended));
}

async fn exchange(
    way: &Connection,
    frames: Frames<CallsFrame>,
    answers: &Answers<Answer>,
    announcer: &BoundAnnouncer,
) -> Result<(), Status> {
    let mut client = AbideClient::new(way.channel.clone()).max_decoding_message_size(usize::MAX);
    let connecting = async {
        let mut told = client.calls(frames).await?.into_inner();
        let first = told.message().await?;
        Ok((told, first))
    };
    let (mut told, mut next) = way.first(connecting).await?;
    announcer.announce(next.as_ref().map_or(0, |first| first.message_bytes));
    while let Some(AnswersFrame { answers: frame, .. }) = next {
        answers.settle(frame.into_iter().filter_map(|numbered| {
            let answer = numbered.answer?;
            Some((numbered.number, Ok(answer)))
        }));
        next = told.message().await?;
    }
    Ok(())
}

impl Frame for CallsFrame {
    type Item = CallFrame;

    fn size(item: &CallFrame) -> usize {
        match item {
            CallFrame::Call(call) => in_frame(call.encoded_len()),
            // A call number takes at most ten bytes.
            CallFrame::Abandon(_) => in_frame(10),
        }
    }

    fn put(&mut self, item: CallFrame) {
        match item {
            CallFrame::Call(call) => self.calls.push(*call),
            CallFrame::Abandon(number) => self.abandoned.push(number),
        }
    }
}
