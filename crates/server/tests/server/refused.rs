//! Workers that the server does not serve are told so, and lose nothing that is under way.

use std::{future::pending, time::Duration};

use abide::{Client, ClientError, Context, Worker, WorkerError};
use abide_core::{
    dispatch::{Dispatch, QueueKey, WorkKind},
    operation::CallError,
    report::Report,
};
use abide_sdk::workflow;

use crate::support::{config, queue, server, transport};
use crate::workers::with_attempt;

#[derive(Default)]
struct Nothing;

#[workflow]
impl Nothing {
    #[run]
    async fn run(_: &Context<Self>) -> abide::Result<()> {
        Ok(())
    }
}

/// Why the worker was refused. A worker that goes on trying would never say.
async fn refusal(client: &Client, tasks: usize) -> String {
    let worker = Worker::new(client).build_id("test").workflow::<Nothing>();
    let life = worker.max_concurrent_tasks(tasks).run_until(pending::<()>());
    match tokio::time::timeout(Duration::from_secs(10), life).await {
        Ok(Err(WorkerError::Refused(refused @ ClientError::Invalid { .. }))) => refused.to_string(),
        other => panic!("not refused: {other:?}"),
    }
}

#[tokio::test]
async fn a_worker_that_cannot_be_served_is_refused() {
    let server = server(config()).await;
    let client = Client::new(transport(&server));
    let too_many = refusal(&client, 10_001).await;
    assert!(too_many.contains("10001") && too_many.contains("10000"), "{too_many}");
    let unknown = refusal(&client.with_namespace("elsewhere"), 1).await;
    assert!(unknown.contains("known namespaces: default"), "{unknown}");
}

#[tokio::test]
async fn a_refused_credit_is_no_verdict_on_other_answers() {
    let server = server(config()).await;
    let transport = transport(&server);
    let (session, attempt) = with_attempt(&*transport).await;
    let Dispatch::Activity { token, .. } = attempt else { panic!("an activity comes next") };
    let elsewhere = QueueKey { namespace: "elsewhere".into(), ..queue(WorkKind::Activity) };
    session.sender().credit(elsewhere, 1);
    let lost = session.sender().report(Report::Heartbeat(token.clone(), Vec::new())).await;
    assert!(matches!(lost, Err(CallError::Unavailable(_))), "{lost:?}");
    let after = session.sender().report(Report::Heartbeat(token, Vec::new())).await;
    assert!(matches!(after, Err(CallError::Unavailable(_))), "{after:?}");
}
