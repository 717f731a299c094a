//! A worker in miniature whose workflows wait for people: `desk` for one decision, any other for two. Only
//! Anna may decide. It speaks the core's words, so that these tests need no SDK.

use std::{sync::Arc, time::Duration};

use abide_core::{
    call::{Call, Dispatch, QueueKey, TaskCompletion, WorkKind, Worker},
    command::{Ask, Command},
    event::{
        Approval, Condition, Guards, Origin, Outcome, TimerSpec, UpdateRequest, WaitDetails,
        WaitSpec,
    },
    failure::Failure,
    ids::UpdateId,
    payload::{Payload, PayloadMap},
    time::Timestamp,
};
use abide_sdk::{
    grpc::{GrpcOptions, GrpcTransport},
    transport::{Given, SessionSender, Transport},
};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

/// The queue of these workflows.
pub(crate) const QUEUE: &str = "people";

/// A running worker. It ends when it is dropped.
pub(crate) struct People(Runtime);

impl People {
    /// Takes the work of the engine at this address.
    pub(crate) fn ask(address: &str) -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let options = GrpcOptions::new(address);
        runtime.spawn(async move {
            let transport = GrpcTransport::connect(&options).await.expect("the engine is there");
            serve(&transport).await;
        });
        Self(runtime)
    }

    /// Ends it.
    pub(crate) fn leave(self) {
        self.0.shutdown_background();
    }
}

async fn serve(transport: &GrpcTransport) {
    let worker = Worker { session: "people".into(), identity: "people".into(), build: None };
    let kind = WorkKind::Workflow;
    let queue = QueueKey { namespace: "default".into(), queue: QUEUE.into(), kind };
    let mut session = transport.connect(worker, Vec::new()).await.expect("it connects");
    let sender = session.sender();
    sender.credit(queue, 100);
    while let Some(given) = session.next().await {
        if let Given::Work(Dispatch::Workflow { token, given, .. }) = given {
            let several = token.workflow.workflow.as_str() != "desk";
            let mut asks = Vec::new();
            if given.previous == 0 {
                asks.extend(request("1", "a new desk"));
                asks.extend(several.then(|| request("2", "a new chair")).into_iter().flatten());
            }
            asks.extend(given.updates.into_iter().flat_map(|(id, update)| answer(id, update)));
            let commands = asks.into_iter().map(Command::from).collect();
            let completion = TaskCompletion { commands, ..TaskCompletion::default() };
            complete(&sender, Call::CompleteTask(token, Box::new(completion))).await;
        }
    }
}

async fn complete(sender: &Arc<dyn SessionSender>, call: Call) {
    sender.call(call).await.expect("it is taken");
}

/// Asks for a decision within a day, which can be moved once, up to the year 9000.
fn request(id: &str, subject: &str) -> [Ask; 2] {
    let condition = Condition { key: Some(format!("decided.{id}")), fingerprint: None };
    let origin = Origin::Condition {
        key: condition.key.clone(),
        fingerprint: condition.fingerprint.clone(),
    };
    let approval = Approval {
        request: id.into(),
        update: "decide".into(),
        choices: vec!["approve".into(), "reject".into()],
    };
    let details = WaitDetails {
        subject: subject.into(),
        actors: vec!["anna".into(), "managers".into()],
        data: PayloadMap::from([("price".into(), Payload::new("300"))]),
        approval: Some(approval),
    };
    let timer = format!("timer-{id}");
    let wait = WaitSpec {
        wait: format!("wait-{id}").into(),
        condition,
        timer: Some(timer.as_str().into()),
        details: Some(details),
    };
    let year_9000 = Timestamp::new(221_845_392_000, 0).expect("a moment");
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let due = Timestamp::EPOCH.saturating_add(now.expect("a clock") + Duration::from_secs(86_400));
    let timer = TimerSpec {
        timer: timer.as_str().into(),
        fire_at: due,
        origin: Some(origin),
        details: None,
        guards: Guards { not_after: Some(year_9000), max_extensions: Some(1) },
    };
    [Ask::OpenWait(wait), Ask::StartTimer(timer)]
}

/// Takes a decision of Anna's, and ends with it.
fn answer(update: UpdateId, request: UpdateRequest) -> Vec<Ask> {
    let decision: Value = serde_json::from_slice(&request.input[0].data).expect("JSON");
    if decision["approver"] != "anna" {
        let message = format!("{} may not decide this", decision["approver"]);
        let failure = Failure { message, ..Failure::default() };
        return vec![Ask::RejectUpdate { update, failure }];
    }
    let result = vec![Payload::new(json!({ "taken": decision }).to_string())];
    let id = decision["request"].as_str().expect("a request");
    vec![
        Ask::AcceptUpdate { update: update.clone(), request },
        Ask::CancelTimer(format!("timer-{id}").into()),
        Ask::SatisfyWait(format!("wait-{id}").into()),
        Ask::CompleteUpdate { update, outcome: Outcome::Completed(result.clone()) },
        Ask::CompleteRun(result),
    ]
}
