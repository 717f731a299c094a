//! Values with something in every field.

use std::time::Duration;

use abide_core::{
    attempt::ActivityToken,
    event::{
        ActivitySpec, Approval, Blocked, BlockedReason, ChildSpec, Condition, Delivery, Guards,
        Marker, MarkerKind, Origin, ParentClosePolicy, ReusePolicy, RunSpec, SignalReceived,
        Target, TimerSpec, UpdateRequest, WaitDetails, WaitSpec,
    },
    failure::{Failure, FailureKind, TimeoutKind},
    ids::{RunId, StartId, WorkflowKey},
    operation::RunTarget,
    payload::{Extension, Payload, PayloadMap, Payloads},
    report::{QueryToken, TaskToken},
    retry::RetryPolicy,
    time::Timestamp,
};

pub(crate) fn time(seconds: u64) -> Timestamp {
    Timestamp::from_unix_millis(seconds * 1000).saturating_add(Duration::from_nanos(7))
}

pub(crate) fn run(number: u128) -> RunId {
    RunId::from_parts(time(1_800_000_000), number)
}

pub(crate) fn workflow() -> WorkflowKey {
    WorkflowKey { namespace: "default".into(), workflow: "order-17".into() }
}

pub(crate) fn target() -> RunTarget {
    RunTarget { workflow: workflow(), run: Some(run(1)) }
}

pub(crate) fn payloads() -> Payloads {
    let mut typed = Payload::new("{}");
    typed.metadata.insert("encoding".into(), "json/plain".into());
    vec![typed, Payload::new(vec![0, 255])]
}

pub(crate) fn named() -> PayloadMap {
    PayloadMap::from([("name".into(), Payload::new("value"))])
}

pub(crate) fn extension() -> Extension {
    Extension::from([("gateway".into(), "kept".into())])
}

pub(crate) fn failure() -> Failure {
    let cause = Failure {
        message: "inner".into(),
        kind: FailureKind::Timeout(TimeoutKind::Heartbeat),
        ..Failure::default()
    };
    Failure {
        message: "outer".into(),
        error_type: "Broken".into(),
        stack: "here".into(),
        kind: FailureKind::Activity,
        non_retryable: true,
        next_retry_delay: Some(Duration::from_millis(3)),
        details: payloads(),
        causes: cause.into(),
        extension: extension(),
    }
}

pub(crate) fn blocked() -> Blocked {
    Blocked {
        reason: BlockedReason::ConditionDefinition,
        expected: "a timer".into(),
        recorded: vec!["an activity".into()],
        at: 12,
        expected_key: Some("a".into()),
        recorded_key: Some("b".into()),
        expected_fingerprint: Some("c".into()),
        recorded_fingerprint: Some("d".into()),
    }
}

pub(crate) fn run_spec() -> RunSpec {
    RunSpec {
        workflow_type: "Order".into(),
        queue: "orders".into(),
        input: payloads(),
        header: named(),
        execution_timeout: Some(Duration::from_secs(1)),
        run_timeout: Some(Duration::from_secs(2)),
        task_timeout: Some(Duration::from_secs(3)),
        retry: Some(RetryPolicy::default()),
        cron: Some("0 * * * *".into()),
        memo: named(),
        search_attributes: named(),
    }
}

pub(crate) fn activity_spec() -> ActivitySpec {
    ActivitySpec {
        activity: "1".into(),
        activity_type: "charge".into(),
        queue: "orders".into(),
        input: payloads(),
        header: named(),
        schedule_to_close: Some(Duration::from_secs(4)),
        schedule_to_start: Some(Duration::from_secs(5)),
        start_to_close: Some(Duration::from_secs(6)),
        heartbeat: Some(Duration::from_secs(7)),
        retry: Some(RetryPolicy::default()),
        delivery: Delivery::AtMostOnce,
        retry_of: Some("execution".into()),
        attempt: 2,
    }
}

pub(crate) fn wait_details() -> WaitDetails {
    let approval = Approval {
        request: "2".into(),
        update: "decide".into(),
        choices: vec!["approve".into(), "reject".into()],
    };
    WaitDetails {
        subject: "approve".into(),
        actors: vec!["anna".into()],
        data: named(),
        approval: Some(approval),
    }
}

pub(crate) fn timer_spec() -> TimerSpec {
    TimerSpec {
        timer: "t1".into(),
        fire_at: Timestamp::NEVER,
        origin: Some(Origin::ExternalEvent { name: "paid".into() }),
        details: Some(wait_details()),
        guards: Guards { not_after: Some(time(9)), max_extensions: Some(2) },
    }
}

pub(crate) fn wait_spec() -> WaitSpec {
    let condition = Condition { key: Some("key".into()), fingerprint: Some("print".into()) };
    let (timer, details) = (Some("t1".into()), Some(wait_details()));
    WaitSpec { wait: "w1".into(), condition, timer, details }
}

pub(crate) fn child_spec() -> ChildSpec {
    ChildSpec {
        workflow: workflow(),
        spec: run_spec(),
        parent_close: ParentClosePolicy::Abandon,
        reuse: ReusePolicy::Reject,
        retry_of: Some("first".into()),
        attempt: 3,
        recorded_retry: Some(RetryPolicy::default().non_retryable("T")),
    }
}

pub(crate) fn other_workflow() -> Target {
    Target { workflow: workflow(), run: Some(run(2)), child: Some(8) }
}

pub(crate) fn marker() -> Marker {
    Marker {
        kind: MarkerKind::Named("mine".into()),
        id: "1".into(),
        details: [("part".into(), payloads())].into(),
        failure: Some(failure()),
        header: named(),
    }
}

/// As its sender words it: the engine adds the rest.
pub(crate) fn signal() -> SignalReceived {
    SignalReceived {
        name: "paid".into(),
        input: payloads(),
        header: named(),
        identity: "shop".into(),
        key: Some("k".into()),
        ..SignalReceived::default()
    }
}

pub(crate) fn update_request() -> UpdateRequest {
    UpdateRequest {
        name: "amend".into(),
        input: payloads(),
        header: named(),
        identity: "shop".into(),
    }
}

pub(crate) fn task_token() -> TaskToken {
    let start = StartId { incarnation: 3, counter: 4 };
    TaskToken { workflow: workflow(), run: run(3), start }
}

pub(crate) fn query_token() -> QueryToken {
    QueryToken { workflow: workflow(), run: run(4), ticket: 5, attempt: 6 }
}

pub(crate) fn activity_token() -> ActivityToken {
    ActivityToken { workflow: workflow(), run: run(5), scheduled: 7, start: 8 }
}
