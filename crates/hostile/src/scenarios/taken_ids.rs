//! Starts that name another client's run: none may succeed, and no other client may notice.

use abide_core::codec::generated::{RunSpec, WorkflowKey};
use abide_proto::generated::{
    self as wire, RunStatus, RunTarget, StartRunRequest, abide_client::AbideClient,
};
use tonic::Code;

use crate::{Arena, Finding, Report};

/// Several for each of the 64 shards.
const STARTS: usize = 400;

pub(super) async fn play(arena: &Arena) -> Result<Report, Finding> {
    let victim = arena.start().await?;
    let mut client = AbideClient::new(victim.channel().await?);
    let watch = victim.honest().await?.watch();
    let taken = client.start_run(start("victim")).await?.into_inner().run;
    for number in 0..STARTS {
        let run = Some(taken.clone());
        let request = StartRunRequest { run, ..start(&format!("intruder-{number}")) };
        let refused = client.start_run(request).await.map_err(|status| status.code());
        let what = || format!("a start with the id of another run was answered by {refused:?}");
        Finding::unless(matches!(refused, Err(Code::InvalidArgument)), what)?;
    }
    let target = Some(RunTarget { workflow: Some(workflow("victim")), run: Some(taken) });
    let shown = client.describe_run(wire::DescribeRunRequest { target: target.clone() }).await?;
    let shown = shown.into_inner();
    let as_it_was = shown.status() == RunStatus::Running && shown.last_event == 2;
    Finding::unless(as_it_was, || format!("the run has changed: {shown:?}"))?;
    let signal = Some(wire::Signal { name: "go".into(), ..wire::Signal::default() });
    let request = wire::SignalRunRequest { target, signal, ..wire::SignalRunRequest::default() };
    client.signal_run(request).await?;
    let latency = watch.end().await?;
    victim.end().await?;
    Ok(Report::default().with("starts", STARTS).with("slowest", latency))
}

fn workflow(id: &str) -> WorkflowKey {
    WorkflowKey { namespace: "default".into(), workflow: id.into() }
}

fn start(id: &str) -> StartRunRequest {
    StartRunRequest {
        workflow: Some(workflow(id)),
        spec: Some(RunSpec {
            workflow_type: "hello".into(),
            queue: "hello".into(),
            ..RunSpec::default()
        }),
        ..StartRunRequest::default()
    }
}
