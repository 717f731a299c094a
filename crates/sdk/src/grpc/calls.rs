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
    bound::{self, Bound, Telling, in_frame},
    frames::{Frame, Frames},
    servers::{Refusals, Way},
};

/// Calls in a row that a server may leave unanswered. Few, because going to another costs little.
const REFUSALS: u32 = 3;

/// A stream of calls.
#[derive(Clone)]
pub(super) struct CallsStream {
    way: Arc<Way>,
    refusals: Arc<Refusals>,
    queue: UnboundedSender<Option<Said>>,
    answers: Answers<Answer>,
    bound: Bound,
}

/// What a client says on the stream.
pub(super) enum Said {
    Call(Box<NumberedCall>),
    /// Nobody waits for the answer of this call any more.
    Abandon(u64),
}

impl CallsStream {
    /// Begins a stream. Calls wait until it is there.
    pub(super) fn begin(way: Arc<Way>) -> Self {
        let (queue, said) = mpsc::unbounded_channel();
        let answers = Answers::new();
        let (telling, bound) = bound::untold();
        let frames = Frames::new(said, bound.clone());
        tokio::spawn(run(Arc::clone(&way), frames, answers.clone(), telling));
        Self { way, refusals: Arc::new(Refusals::new(REFUSALS)), queue, answers, bound }
    }

    /// New calls may go this way: the stream has not ended, and its server is still the one to ask.
    pub(super) fn usable(&self) -> bool {
        self.answers.open() && !self.way.left()
    }

    /// A call was answered. A server that cannot answer is left to those who wait there already.
    pub(super) fn answered<T>(&self, answer: &Result<T, CallError>) {
        if self.way.has_others() && self.refusals.too_many(answer) {
            self.way.leave();
        }
    }

    /// Makes a call and waits for its answer.
    pub(super) async fn call(&self, asked: Asked) -> Result<Answer, CallError> {
        self.bound.clone().told().await;
        // With the longest number, because it has none yet.
        let mut call = NumberedCall { number: u64::MAX, call: Some(asked) };
        self.bound.check("call", in_frame(call.encoded_len()))?;
        let claim = self.answers.claim()?;
        call.number = claim.number;
        // If the stream ends meanwhile, the claim is told so.
        drop(self.queue.send(Some(Said::Call(Box::new(call)))));
        let mut waiting = WaitingCall { claim, queue: self.queue.clone() };
        waiting.claim.answer().await
    }
}

/// A call on its way. To drop it is to abandon it.
struct WaitingCall {
    claim: Claim<Answer>,
    queue: UnboundedSender<Option<Said>>,
}

impl Drop for WaitingCall {
    fn drop(&mut self) {
        if self.claim.give_up() {
            // If the stream has ended, there is nothing to abandon.
            drop(self.queue.send(Some(Said::Abandon(self.claim.number))));
        }
    }
}

async fn run(
    way: Arc<Way>,
    frames: Frames<CallsFrame>,
    answers: Answers<Answer>,
    telling: Telling,
) {
    let ended = match exchange(&way, frames, &answers, &telling).await {
        Ok(()) => "the server ended the connection".to_owned(),
        Err(status) => reason(&status),
    };
    // Before anybody hears of it and asks again.
    way.leave();
    answers.end(way.saying(ended));
}

async fn exchange(
    way: &Way,
    frames: Frames<CallsFrame>,
    answers: &Answers<Answer>,
    telling: &Telling,
) -> Result<(), Status> {
    let mut client = AbideClient::new(way.channel.clone()).max_decoding_message_size(usize::MAX);
    let connecting = async {
        let mut told = client.calls(frames).await?.into_inner();
        let first = told.message().await?;
        Ok((told, first))
    };
    let (mut told, mut next) = way.first(connecting).await?;
    telling.tell(next.as_ref().map_or(0, |first| first.message_bytes));
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
    type Item = Said;

    fn size(item: &Said) -> usize {
        match item {
            Said::Call(call) => in_frame(call.encoded_len()),
            // A number takes at most ten.
            Said::Abandon(_) => in_frame(10),
        }
    }

    fn put(&mut self, item: Said) {
        match item {
            Said::Call(call) => self.calls.push(*call),
            Said::Abandon(number) => self.abandoned.push(number),
        }
    }
}
