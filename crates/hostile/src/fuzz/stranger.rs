//! One round of one stranger: single calls, a stream of calls, or a worker that answers its tasks
//! badly.

use std::{pin::pin, time::Duration};

use abide_core::codec::generated::{RunSpec, WorkflowKey};
use abide_core::operation::CallError;
use abide_proto::{
    error::from_status,
    generated::{ServerFrame, StartRunRequest, task::Task},
};
use bytes::Bytes;
use fastrand::Rng;
use prost::Message as _;
use tokio::{sync::mpsc, time::timeout};
use tokio_stream::{StreamExt as _, iter, wrappers::ReceiverStream};
use tonic::{Code, Status, Streaming, transport::Channel};

use super::{mutate::mutated, tally::Tally};
use crate::{
    Finding,
    generate::{Generator, Seen},
    owed::{Owed, may_wait},
    parts::{Part, Value, encode},
    raw,
    schema::{Method, Schema},
};

/// A call that should be answered at once counts as hanging after this, however busy the machine
/// is.
const DEADLINE: Duration = Duration::from_secs(60);

/// How long to wait for an answer that may legitimately take long.
const PATIENCE: Duration = Duration::from_millis(30);

/// Number of messages in a round.
const MESSAGES: usize = 40;

/// A stranger in its round.
pub(super) struct Stranger<'a> {
    schema: &'a Schema,
    channel: Channel,
    rng: Rng,
    seen: Seen,
    tally: Tally,
}

struct Open<'m> {
    method: &'m Method,
    say: mpsc::Sender<Bytes>,
    told: Streaming<Bytes>,
    owed: Owed,
}

/// What a stream delivered.
enum Heard {
    Frame(Bytes),
    Nothing,
    End,
}

impl<'a> Stranger<'a> {
    pub(super) fn new(schema: &'a Schema, channel: Channel, seed: u64) -> Self {
        let (rng, seen, tally) = (Rng::with_seed(seed), Seen::default(), Tally::default());
        Self { schema, channel, rng, seen, tally }
    }

    /// Plays one round and returns its tally.
    pub(super) async fn play(mut self) -> Result<Tally, Finding> {
        for _ in 0..3 {
            let start = self.start();
            self.call(self.schema.method("/StartRun")?, start).await?;
        }
        match self.rng.u8(..4) {
            0 => self.call_on_a_stream().await?,
            1 | 2 => self.work().await?,
            _ => self.call_one_by_one().await?,
        }
        Ok(self.tally)
    }

    async fn call_one_by_one(&mut self) -> Result<(), Finding> {
        let schema = self.schema;
        let single: Vec<_> = schema.methods.iter().filter(|method| !method.streams).collect();
        for _ in 0..MESSAGES {
            let method = single[self.rng.usize(..single.len())];
            let message = self.generator().message(method.input);
            let message = self.perhaps_mutated(message);
            self.call(method, message).await?;
        }
        Ok(())
    }

    async fn call(&mut self, method: &Method, message: Bytes) -> Result<(), Finding> {
        self.tally.sent(message.len());
        let waits = may_wait(self.schema, method, &message);
        let asked = async {
            let mut told = raw::stream(&self.channel, &method.path, iter([message])).await?;
            told.next().await.transpose()
        };
        match timeout(if waits { PATIENCE } else { DEADLINE }, asked).await {
            Ok(Ok(Some(answer))) => self.answered(method, &answer),
            Ok(Ok(None)) => {}
            Ok(Err(status)) => self.refused(&method.path, &status)?,
            Err(_) if waits => {}
            Err(_) => return Err(Finding::new(format!("{} hangs", method.path))),
        }
        Ok(())
    }

    async fn call_on_a_stream(&mut self) -> Result<(), Finding> {
        let schema = self.schema;
        let method = schema.method("/Calls")?;
        let Some(mut open) = self.open(method, Vec::new(), Owed::to_caller()).await? else {
            return Ok(());
        };
        for _ in 0..MESSAGES {
            let message = self.generator().message(open.method.input);
            let message = self.perhaps_mutated(message);
            if !self.say(&mut open, message).await? {
                return Ok(());
            }
            if let Heard::End = self.hear(&mut open, PATIENCE).await? {
                return Ok(());
            }
        }
        self.settle(open).await
    }

    /// A worker that may reconnect under the name of another.
    async fn work(&mut self) -> Result<(), Finding> {
        let schema = self.schema;
        let hello = encode(&self.frame_with("hello"));
        let method = schema.method("/Connect")?;
        let Some(mut open) = self.open(method, hello, Owed::to_worker()).await? else {
            return Ok(());
        };
        let mut message = encode(&self.frame_with("credits")).into();
        for _ in 0..MESSAGES {
            if !self.say(&mut open, message).await? {
                return Ok(());
            }
            let next = match self.hear(&mut open, PATIENCE).await? {
                Heard::Frame(frame) => self.answers(&frame),
                Heard::Nothing => self.generator().message(open.method.input),
                Heard::End => return Ok(()),
            };
            message = self.perhaps_mutated(next);
        }
        self.settle(open).await
    }

    /// The start of a run whose tasks go to the strangers.
    fn start(&mut self) -> Bytes {
        let workflow = format!("fuzz-{}", self.rng.u16(..));
        self.seen.workflow(&workflow);
        let spec =
            RunSpec { workflow_type: "fuzz".into(), queue: "fuzz".into(), ..RunSpec::default() };
        let start = StartRunRequest {
            workflow: Some(WorkflowKey { namespace: "default".into(), workflow }),
            spec: Some(spec),
            ..StartRunRequest::default()
        };
        start.encode_to_vec().into()
    }

    /// A worker's frame with one valid field, and nothing else.
    fn frame_with(&mut self, name: &str) -> Vec<Part> {
        let schema = self.schema;
        let frame = schema.messages.iter().find(|message| message.name == "WorkerFrame");
        let fields = frame.map(|frame| frame.fields.as_slice()).unwrap_or_default();
        let field = fields.iter().find(|field| field.name == name);
        let mut generator = self.generator();
        generator.full = true;
        field
            .map(|field| Part { tag: field.tag, value: generator.value(field) })
            .into_iter()
            .collect()
    }

    /// Answers to the tasks of a frame, each of a fitting kind, with the right token.
    fn answers(&mut self, frame: &[u8]) -> Vec<Part> {
        let schema = self.schema;
        let tasks = ServerFrame::decode(frame).map(|frame| frame.tasks).unwrap_or_default();
        let index = |name: &str| schema.messages.iter().position(|message| message.name == name);
        let (Some(frame), Some(completion)) = (index("WorkerFrame"), index("Completion")) else {
            return Vec::new();
        };
        let mut answers = Vec::new();
        for task in tasks.into_iter().filter_map(|task| task.task) {
            self.tally.task();
            let (cases, token): (&[_], _) = match task {
                Task::Workflow(task) => (
                    &[
                        ("complete_task", "CompleteTask"),
                        ("complete_task", "CompleteTask"),
                        ("fail_task", "FailTask"),
                    ],
                    task.token.unwrap_or_default().encode_to_vec(),
                ),
                Task::Activity(task) => (
                    &[("resolve_activity", "ResolveActivity"), ("heartbeat", "HeartbeatActivity")],
                    task.token.unwrap_or_default().encode_to_vec(),
                ),
                Task::Query(task) => (
                    &[("answer_query", "AnswerQuery")],
                    task.token.unwrap_or_default().encode_to_vec(),
                ),
            };
            let (case, name) = cases[self.rng.usize(..cases.len())];
            let Some(inner) = index(name) else { continue };
            let mut generator = self.generator();
            let answer = generator.message_with(inner, "token", Value::Bytes(token));
            let answer = Value::Message(answer);
            answers.push(Value::Message(generator.message_with(completion, case, answer)));
        }
        let tag = |name: &str| {
            let field = schema.messages[frame].fields.iter().find(|field| field.name == name);
            field.map_or(1, |field| field.tag)
        };
        let completions = tag("completions");
        let mut parts: Vec<_> =
            answers.into_iter().map(|value| Part { tag: completions, value }).collect();
        parts.extend(self.frame_with("credits"));
        parts
    }

    async fn open<'m>(
        &mut self,
        method: &'m Method,
        first: Vec<u8>,
        owed: Owed,
    ) -> Result<Option<Open<'m>>, Finding> {
        let (say, said) = mpsc::channel(4);
        self.tally.sent(first.len());
        // The channel is empty and its receiver is alive, so this cannot fail.
        drop(say.try_send(first.into()));
        let opened = raw::stream(&self.channel, &method.path, ReceiverStream::new(said));
        match timeout(DEADLINE, opened).await {
            Ok(Ok(told)) => Ok(Some(Open { method, say, told, owed })),
            Ok(Err(status)) => self.refused(&method.path, &status).map(|()| None),
            Err(_) => Err(Finding::new(format!("{} does not begin", method.path))),
        }
    }

    /// Sends a message on a stream, and reads meanwhile: the server stops reading from a peer that
    /// does not read. `false` if the stream has ended.
    async fn say(&mut self, open: &mut Open<'_>, message: Bytes) -> Result<bool, Finding> {
        self.tally.sent(message.len());
        open.owed.sent(&message);
        let say = open.say.clone();
        let mut place = pin!(say.reserve());
        loop {
            let heard = tokio::select! {
                place = &mut place => {
                    return Ok(place.map(|place| place.send(message)).is_ok());
                }
                heard = self.hear(open, DEADLINE) => heard?,
            };
            match heard {
                Heard::Frame(_) => {}
                Heard::End => return Ok(false),
                Heard::Nothing => {
                    let method = &open.method.path;
                    return Err(Finding::new(format!("{method} reads and says nothing")));
                }
            }
        }
    }

    /// Reads the next frame.
    async fn hear(&mut self, open: &mut Open<'_>, patience: Duration) -> Result<Heard, Finding> {
        match timeout(patience, open.told.next()).await {
            Ok(Some(Ok(frame))) => {
                self.answered(open.method, &frame);
                open.owed.heard(&frame);
                Ok(Heard::Frame(frame))
            }
            Ok(Some(Err(status))) => self.refused(&open.method.path, &status).map(|()| Heard::End),
            Ok(None) => Ok(Heard::End),
            Err(_) => Ok(Heard::Nothing),
        }
    }

    /// Reads until the stream owes no more answers.
    async fn settle(&mut self, mut open: Open<'_>) -> Result<(), Finding> {
        while open.owed.end || open.owed.count() > 0 {
            match self.hear(&mut open, DEADLINE).await? {
                Heard::Frame(_) => {}
                Heard::End => break,
                Heard::Nothing => {
                    let (method, count) = (&open.method.path, open.owed.count());
                    let silent = format!("{method} is silent and owes {count} answers");
                    return Err(Finding::new(silent));
                }
            }
        }
        Ok(())
    }

    fn answered(&mut self, method: &Method, answer: &[u8]) {
        self.seen.take(self.schema, method.output, answer);
        self.tally.answered(&method.path);
    }

    /// A refusal is expected, unless its status reveals an internal error.
    fn refused(&mut self, method: &str, status: &Status) -> Result<(), Finding> {
        self.tally.refused(status.code());
        let inside = match status.code() {
            Code::Internal | Code::Unknown | Code::DataLoss | Code::Unimplemented => true,
            _ => matches!(
                from_status(status),
                CallError::Reset | CallError::SetAside(_) | CallError::Unreadable { .. }
            ),
        };
        Finding::unless(!inside, || format!("{method} answered {status}"))
    }

    fn perhaps_mutated(&mut self, message: Vec<Part>) -> Bytes {
        if self.rng.u8(..3) == 0 {
            return encode(&message).into();
        }
        mutated(&mut self.rng, message).into()
    }

    fn generator(&mut self) -> Generator<'_> {
        Generator { schema: self.schema, seen: &self.seen, rng: &mut self.rng, full: false }
    }
}
