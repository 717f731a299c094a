//! One round of one stranger: single calls, a stream of calls, or a worker that answers its tasks badly.

use std::time::Duration;

use abide_core::call::CallError;
use abide_core::codec::generated::{RunSpec, WorkflowKey};
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
    parts::{Part, Value, encode},
    raw,
    schema::{Method, Schema},
};

/// A call that should be answered at once hangs after this.
const DEADLINE: Duration = Duration::from_secs(20);

/// How long an answer is waited for that may rightly be long in coming.
const PATIENCE: Duration = Duration::from_millis(30);

/// Messages of a round.
const MESSAGES: usize = 40;

/// A stranger in its round.
pub(super) struct Stranger<'a> {
    schema: &'a Schema,
    channel: Channel,
    rng: Rng,
    seen: Seen,
    tally: Tally,
}

impl<'a> Stranger<'a> {
    pub(super) fn new(schema: &'a Schema, channel: Channel, seed: u64) -> Self {
        let (rng, seen, tally) = (Rng::with_seed(seed), Seen::default(), Tally::default());
        Self { schema, channel, rng, seen, tally }
    }

    /// Plays the round.
    pub(super) async fn play(mut self) -> Result<Tally, Finding> {
        for _ in 0..3 {
            let start = self.start();
            self.call(self.schema.method("/StartRun")?, start, DEADLINE).await?;
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
            let patience = if method.waits { PATIENCE } else { DEADLINE };
            self.call(method, message, patience).await?;
        }
        Ok(())
    }

    async fn call(
        &mut self,
        method: &Method,
        message: Bytes,
        patience: Duration,
    ) -> Result<(), Finding> {
        self.tally.sent(message.len());
        let asked = async {
            let mut told = raw::stream(&self.channel, &method.path, iter([message])).await?;
            told.next().await.transpose()
        };
        match timeout(patience, asked).await {
            Ok(Ok(Some(answer))) => self.answered(method, &answer),
            Ok(Ok(None)) => {}
            Ok(Err(status)) => self.refused(&method.path, &status)?,
            Err(_) if patience < DEADLINE => {}
            Err(_) => return Err(Finding::new(format!("{} hangs", method.path))),
        }
        Ok(())
    }

    async fn call_on_a_stream(&mut self) -> Result<(), Finding> {
        let schema = self.schema;
        let method = schema.method("/Calls")?;
        let (say, mut told) = match self.open(method, Vec::new()).await? {
            Some(open) => open,
            None => return Ok(()),
        };
        for _ in 0..MESSAGES {
            let message = self.generator().message(method.input);
            let message = self.perhaps_mutated(message);
            if !self.say(&say, message).await || !self.hear(method, &mut told).await? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// A worker that may come again under the name of another.
    async fn work(&mut self) -> Result<(), Finding> {
        let schema = self.schema;
        let method = schema.method("/Connect")?;
        let hello = self.frame_with("hello");
        let Some((say, mut told)) = self.open(method, encode(&hello)).await? else {
            return Ok(());
        };
        let credits = self.frame_with("credits");
        if !self.say(&say, encode(&credits).into()).await {
            return Ok(());
        }
        for _ in 0..MESSAGES {
            let message = match timeout(PATIENCE, told.next()).await {
                Ok(Some(Ok(frame))) => {
                    self.answered(method, &frame);
                    self.answers(&frame)
                }
                Ok(Some(Err(status))) => return self.refused(&method.path, &status),
                Ok(None) => return Ok(()),
                Err(_) => self.generator().message(method.input),
            };
            let message = self.perhaps_mutated(message);
            if !self.say(&say, message).await {
                return Ok(());
            }
        }
        Ok(())
    }

    /// The start of a run whose tasks come to the strangers.
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

    /// A worker's frame with one field that is good, and nothing else.
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

    /// Answers to the tasks of a frame, each of a kind that fits, with the right token.
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

    async fn open(
        &mut self,
        method: &Method,
        first: Vec<u8>,
    ) -> Result<Option<(mpsc::Sender<Bytes>, Streaming<Bytes>)>, Finding> {
        let (say, said) = mpsc::channel(4);
        self.say(&say, first.into()).await;
        let opened = raw::stream(&self.channel, &method.path, ReceiverStream::new(said));
        match timeout(DEADLINE, opened).await {
            Ok(Ok(told)) => Ok(Some((say, told))),
            Ok(Err(status)) => self.refused(&method.path, &status).map(|()| None),
            Err(_) => Err(Finding::new(format!("{} does not begin", method.path))),
        }
    }

    /// Sends a message on a stream; no if the stream is over.
    async fn say(&mut self, say: &mpsc::Sender<Bytes>, message: Bytes) -> bool {
        self.tally.sent(message.len());
        matches!(timeout(DEADLINE, say.send(message)).await, Ok(Ok(())))
    }

    /// Hears what has been answered; no if the stream is over.
    async fn hear(
        &mut self,
        method: &Method,
        told: &mut Streaming<Bytes>,
    ) -> Result<bool, Finding> {
        match timeout(PATIENCE, told.next()).await {
            Ok(Some(Ok(answer))) => {
                self.answered(method, &answer);
                Ok(true)
            }
            Ok(Some(Err(status))) => self.refused(&method.path, &status).map(|()| false),
            Ok(None) => Ok(false),
            Err(_) => Ok(true),
        }
    }

    fn answered(&mut self, method: &Method, answer: &[u8]) {
        self.seen.take(self.schema, method.output, answer);
        self.tally.answered(&method.path);
    }

    /// Refusals are as it should be, unless they tell of a mistake inside.
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
