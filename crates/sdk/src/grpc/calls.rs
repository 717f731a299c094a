//! The stream that all calls of a transport share.

use abide_core::call::CallError;
use abide_proto::{
    error::reason,
    generated::{
        AnswersFrame, CallsFrame, NumberedCall, abide_client::AbideClient, numbered_answer::Answer,
        numbered_call::Call as Asked,
    },
};
use prost::Message;
use tokio::sync::mpsc::{self, UnboundedSender};
use tonic::{Status, transport::Channel};

use super::{
    answers::{Answers, Claim},
    bound::{self, Bound, Telling, in_frame},
    frames::{Frame, Frames},
};

/// A stream of calls.
#[derive(Clone)]
pub(super) struct CallsStream {
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
    pub(super) fn begin(channel: Channel) -> Self {
        let (queue, said) = mpsc::unbounded_channel();
        let answers = Answers::new();
        let (telling, bound) = bound::untold();
        let frames = Frames::new(said, bound.clone());
        tokio::spawn(run(channel, frames, answers.clone(), telling));
        Self { queue, answers, bound }
    }

    /// The stream has not ended.
    pub(super) fn open(&self) -> bool {
        self.answers.open()
    }

    /// Makes a call and waits for its answer.
    pub(super) async fn call(mut self, asked: Asked) -> Result<Answer, CallError> {
        self.bound.told().await;
        // With the longest number, because it has none yet.
        let mut call = NumberedCall { number: u64::MAX, call: Some(asked) };
        self.bound.check("call", in_frame(call.encoded_len()))?;
        let claim = self.answers.claim()?;
        call.number = claim.number;
        // If the stream ends meanwhile, the claim is told so.
        drop(self.queue.send(Some(Said::Call(Box::new(call)))));
        let mut waiting = WaitingCall { claim, queue: self.queue };
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
    channel: Channel,
    frames: Frames<CallsFrame>,
    answers: Answers<Answer>,
    telling: Telling,
) {
    let ended = match exchange(channel, frames, &answers, &telling).await {
        Ok(()) => "the server ended the connection".to_owned(),
        Err(status) => reason(&status),
    };
    answers.end(ended);
}

async fn exchange(
    channel: Channel,
    frames: Frames<CallsFrame>,
    answers: &Answers<Answer>,
    telling: &Telling,
) -> Result<(), Status> {
    let mut client = AbideClient::new(channel).max_decoding_message_size(usize::MAX);
    let mut told = client.calls(frames).await?.into_inner();
    let mut first = true;
    while let Some(AnswersFrame { answers: frame, message_bytes }) = told.message().await? {
        if std::mem::take(&mut first) {
            telling.tell(message_bytes);
        }
        answers.settle(frame.into_iter().filter_map(|numbered| {
            let answer = numbered.answer?;
            Some((numbered.number, Ok(answer)))
        }));
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
