//! A worker that speaks the protocol itself, so that it can say what no SDK would.

use std::collections::VecDeque;

use abide_proto::{
    PROTOCOL_VERSION,
    generated::{
        self as wire, Command, Completion, Credit, Hello, ServerFrame, TaskToken, WorkKind,
        WorkerFrame, completion::Completion as Completed, task::Task,
        workers_client::WorkersClient,
    },
};
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::{Streaming, transport::Channel};

use crate::Finding;

/// A worker of one queue of the default namespace.
pub(crate) struct Worker {
    say: mpsc::UnboundedSender<WorkerFrame>,
    given: Streaming<ServerFrame>,
    tasks: VecDeque<Option<TaskToken>>,
    completed: u64,
}

impl Worker {
    pub(crate) async fn connect(channel: Channel, queue: &str) -> Result<Self, Finding> {
        let (say, said) = mpsc::unbounded_channel();
        let hello = Hello {
            protocol_version: PROTOCOL_VERSION,
            session: format!("worker of {queue}"),
            identity: "hostile".into(),
            ..Hello::default()
        };
        say.send(WorkerFrame { hello: Some(hello), ..WorkerFrame::default() })?;
        let mut workers = WorkersClient::new(channel);
        let given = workers.connect(UnboundedReceiverStream::new(said)).await?.into_inner();
        let credit = Credit {
            namespace: "default".into(),
            queue: queue.into(),
            kind: WorkKind::Workflow.into(),
            credits: 100,
        };
        say.send(WorkerFrame { credits: vec![credit], ..WorkerFrame::default() })?;
        Ok(Self { say, given, tasks: VecDeque::new(), completed: 0 })
    }

    /// Reads a frame; returns whether it acknowledges something.
    async fn read(&mut self) -> Result<bool, Finding> {
        let frame = self.given.message().await?;
        let frame = frame.ok_or_else(|| Finding::new("the worker's stream has ended"))?;
        for task in frame.tasks {
            if let Some(Task::Workflow(task)) = task.task {
                self.tasks.push_back(task.token);
            }
        }
        Ok(!frame.acknowledgements.is_empty())
    }

    /// The next workflow task.
    pub(crate) async fn task(&mut self) -> Result<Option<TaskToken>, Finding> {
        loop {
            match self.tasks.pop_front() {
                Some(token) => return Ok(token),
                None => self.read().await.map(drop)?,
            }
        }
    }

    /// Completes a task, and waits for the acknowledgement.
    pub(crate) async fn complete(
        &mut self,
        token: Option<TaskToken>,
        commands: Vec<Command>,
    ) -> Result<(), Finding> {
        self.completed += 1;
        let completion = wire::CompleteTask { token, commands, ..wire::CompleteTask::default() };
        let completion = Some(Completed::CompleteTask(completion));
        let completions = vec![Completion { number: self.completed, completion }];
        self.say.send(WorkerFrame { completions, ..WorkerFrame::default() })?;
        while !self.read().await? {}
        Ok(())
    }
}
