//! A worker of one namespace, whose run tries everything that a run can do to another: start a
//! child, signal, cancel, terminate. Nothing of it may reach a namespace that does not accept it.

use std::collections::VecDeque;

use abide_core::codec::generated::{
    CancelMode, ChildSpec, ParentClosePolicy, ReusePolicy, RunSpec, Target, WorkflowKey, body::Fact,
};
use abide_proto::{
    PROTOCOL_VERSION,
    generated::{
        self as wire, Command, Completion, Credit, Hello, RunStatus, RunTarget, ServerFrame,
        StartRunRequest, TaskToken, WorkKind, WorkerFrame, abide_client::AbideClient, command::Ask,
        completion::Completion as Completed, task::Task, workers_client::WorkersClient,
    },
};
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::{Code, Streaming, transport::Channel};

use crate::{Arena, Finding, Report};

const HOME: &str = "default";
const FOREIGN: &str = "foreign";
const QUEUE: &str = "hostile";

pub(super) async fn play(arena: &Arena) -> Result<Report, Finding> {
    let namespaces = [HOME, FOREIGN].map(ToOwned::to_owned).into();
    let victim = arena.start_with(|config| config.namespaces = namespaces).await?;
    let mut client = AbideClient::new(victim.channel().await?);
    client.start_run(start(FOREIGN, "victim")).await?;
    client.start_run(start(HOME, "attacker")).await?;
    let mut worker = Worker::connect(victim.channel().await?).await?;
    let mut commands = attacks();
    let count = commands.len();
    // Every command is answered in the end; answers that come together share a task.
    while answers(&mut client).await? < count {
        let token = worker.task().await?;
        worker.complete(token, std::mem::take(&mut commands)).await?;
    }
    let shown = describe(&mut client, "victim").await?;
    let untouched = shown.status() == RunStatus::Running && shown.last_event == 2;
    Finding::unless(untouched, || format!("a foreign run was reached: {shown:?}"))?;
    match describe(&mut client, "child").await {
        Err(status) if status.code() == Code::NotFound => {}
        other => return Err(Finding::new(format!("a foreign child was started: {other:?}"))),
    }
    victim.end().await?;
    Ok(Report::default().with("commands", count))
}

fn workflow(namespace: &str, id: &str) -> WorkflowKey {
    WorkflowKey { namespace: namespace.into(), workflow: id.into() }
}

fn spec() -> RunSpec {
    RunSpec { workflow_type: "hello".into(), queue: QUEUE.into(), ..RunSpec::default() }
}

fn start(namespace: &str, id: &str) -> StartRunRequest {
    let (workflow, spec) = (Some(workflow(namespace, id)), Some(spec()));
    StartRunRequest { workflow, spec, ..StartRunRequest::default() }
}

async fn describe(
    client: &mut AbideClient<Channel>,
    id: &str,
) -> Result<wire::RunDescription, tonic::Status> {
    let target = Some(RunTarget { workflow: Some(workflow(FOREIGN, id)), run: None });
    Ok(client.describe_run(wire::DescribeRunRequest { target }).await?.into_inner())
}

/// Everything that a run can do to a workflow, also while pretending that the target is its child.
fn attacks() -> Vec<Command> {
    let child = ChildSpec {
        workflow: Some(workflow(FOREIGN, "child")),
        spec: Some(spec()),
        parent_close: ParentClosePolicy::Abandon.into(),
        reuse: ReusePolicy::Allow.into(),
        ..ChildSpec::default()
    };
    let mut asks = vec![Ask::StartChild(child)];
    for pretended in [None, Some(5)] {
        let workflow = Some(workflow(FOREIGN, "victim"));
        let target = Some(Target { workflow, child: pretended, ..Target::default() });
        asks.push(Ask::SignalExternal(wire::SignalExternal {
            target: target.clone(),
            name: "forged".into(),
            ..wire::SignalExternal::default()
        }));
        for mode in [CancelMode::Request, CancelMode::Terminate] {
            let (target, mode) = (target.clone(), mode.into());
            asks.push(Ask::CancelExternal(wire::CancelExternal {
                target,
                mode,
                reason: String::new(),
            }));
        }
    }
    asks.into_iter().map(|ask| Command { ask: Some(ask), ..Command::default() }).collect()
}

/// Number of commands whose outcome the attacker knows.
async fn answers(client: &mut AbideClient<Channel>) -> Result<usize, Finding> {
    let target = Some(RunTarget { workflow: Some(workflow(HOME, "attacker")), run: None });
    let request = wire::GetHistoryRequest { target, ..wire::GetHistoryRequest::default() };
    let history = client.get_history(request).await?.into_inner().history.unwrap_or_default();
    let facts = history.events.into_iter().filter_map(|event| event.body?.fact);
    Ok(facts.filter(ends_a_command).count())
}

fn ends_a_command(fact: &Fact) -> bool {
    matches!(
        fact,
        Fact::ChildStarted(_)
            | Fact::ChildStartFailed(_)
            | Fact::ExternalSignalDelivered(_)
            | Fact::ExternalSignalFailed(_)
            | Fact::ExternalCancelDelivered(_)
            | Fact::ExternalCancelFailed(_)
    )
}

/// A worker of the attacker's namespace.
struct Worker {
    say: mpsc::UnboundedSender<WorkerFrame>,
    given: Streaming<ServerFrame>,
    tasks: VecDeque<Option<TaskToken>>,
    completed: u64,
}

impl Worker {
    async fn connect(channel: Channel) -> Result<Self, Finding> {
        let (say, said) = mpsc::unbounded_channel();
        let hello = Hello {
            protocol_version: PROTOCOL_VERSION,
            session: "foreign-namespace".into(),
            identity: "hostile".into(),
            ..Hello::default()
        };
        say.send(WorkerFrame { hello: Some(hello), ..WorkerFrame::default() })?;
        let mut workers = WorkersClient::new(channel);
        let given = workers.connect(UnboundedReceiverStream::new(said)).await?.into_inner();
        let credit = Credit {
            namespace: HOME.into(),
            queue: QUEUE.into(),
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
    async fn task(&mut self) -> Result<Option<TaskToken>, Finding> {
        loop {
            match self.tasks.pop_front() {
                Some(token) => return Ok(token),
                None => self.read().await.map(drop)?,
            }
        }
    }

    /// Completes a task, and waits for the acknowledgement.
    async fn complete(
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
