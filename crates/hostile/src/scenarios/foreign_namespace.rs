//! A worker of one namespace, whose run tries everything that a run can do to another: start a
//! child, signal, cancel, terminate. Nothing of it may reach a namespace that does not accept it.

use abide_core::codec::generated::{
    CancelMode, ChildSpec, ParentClosePolicy, ReusePolicy, RunSpec, Target, WorkflowKey, body::Fact,
};
use abide_proto::generated::{
    self as wire, Command, RunStatus, RunTarget, StartRunRequest, abide_client::AbideClient,
    command::Ask,
};
use tonic::{Code, transport::Channel};

use crate::{Arena, Finding, Report, worker::Worker};

const HOME: &str = "default";
const FOREIGN: &str = "foreign";
const QUEUE: &str = "hostile";

pub(super) async fn play(arena: &Arena) -> Result<Report, Finding> {
    let namespaces = [HOME, FOREIGN].map(ToOwned::to_owned).into();
    let victim = arena.start_with(|config| config.namespaces = namespaces).await?;
    let mut client = AbideClient::new(victim.channel().await?);
    client.start_run(start(FOREIGN, "victim")).await?;
    client.start_run(start(HOME, "attacker")).await?;
    let mut worker = Worker::connect(victim.channel().await?, QUEUE).await?;
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
