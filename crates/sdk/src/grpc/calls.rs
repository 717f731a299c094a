//! The stream that all calls of a transport share.

use abide_core::call::CallError;
use abide_proto::{
    error::from_status,
    generated::{
        AnswersFrame, CallsFrame, NumberedCall, abide_client::AbideClient, numbered_answer::Answer,
        numbered_call::Call as Asked,
    },
};
use prost::Message;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tonic::{Status, transport::Channel};

use super::{
    answers::{Answers, Claim},
    frames::{Frame, Frames},
};

/// A stream of calls.
#[derive(Clone)]
pub(super) struct CallsStream {
    queue: UnboundedSender<Option<Said>>,
    answers: Answers<Answer>,
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
        tokio::spawn(run(channel, said, answers.clone()));
        Self { queue, answers }
    }

    /// The stream has not ended.
    pub(super) fn open(&self) -> bool {
        self.answers.open()
    }

    /// Makes a call and waits for its answer.
    pub(super) async fn call(self, asked: Asked) -> Result<Answer, CallError> {
        let claim = self.answers.claim()?;
        let call = NumberedCall { number: claim.number, call: Some(asked) };
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

async fn run(channel: Channel, said: UnboundedReceiver<Option<Said>>, answers: Answers<Answer>) {
    let ended = match exchange(channel, said, &answers).await {
        Ok(()) => CallError::Unavailable("the server ended the connection".into()),
        Err(status) => from_status(&status),
    };
    answers.end(ended);
}

async fn exchange(
    channel: Channel,
    said: UnboundedReceiver<Option<Said>>,
    answers: &Answers<Answer>,
) -> Result<(), Status> {
    let mut client = AbideClient::new(channel).max_decoding_message_size(usize::MAX);
    let mut told = client.calls(Frames::<CallsFrame>::new(said)).await?.into_inner();
    while let Some(AnswersFrame { answers: frame }) = told.message().await? {
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
            Said::Call(call) => call.encoded_len(),
            Said::Abandon(_) => size_of::<u64>(),
        }
    }

    fn put(&mut self, item: Said) {
        match item {
            Said::Call(call) => self.calls.push(*call),
            Said::Abandon(number) => self.abandoned.push(number),
        }
    }
}
