//! What workers and servers say to each other.

use std::{collections::BTreeSet, time::Duration};

use abide_core::{
    call::{Call, CallReply, Dispatch, Query, QueueKey, StartCall, TaskCompletion, WorkKind},
    command::{Ask, Command, ContinueAsNew},
    event::{Body, CancelMode, Event, Fact, Flag, Outcome, RunCancelled, TaskFailureCause},
    run::{ActivityGiven, GivenTask, Resolution},
};
use abide_proto::{
    generated::{Acknowledgement, Completion, Task},
    worker::{
        acknowledgement_from_wire, acknowledgement_to_wire, completion_from_wire,
        completion_to_wire, credit_from_wire, credit_to_wire,
    },
};

use crate::{
    over_the_wire,
    values::{
        activity_spec, activity_token, blocked, child_spec, extension, failure, marker, named,
        other_workflow, payloads, query_token, run, run_spec, target, task_token, time, timer_spec,
        update_request, wait_details, wait_spec,
    },
};

fn every_ask() -> Vec<Ask> {
    let next = ContinueAsNew { spec: run_spec(), signals: vec![3, 4], updates: vec!["u".into()] };
    vec![
        Ask::ScheduleActivity(activity_spec()),
        Ask::CancelActivity("1".into()),
        Ask::StartTimer(timer_spec()),
        Ask::RescheduleTimer { timer: "t1".into(), fire_at: time(1) },
        Ask::CancelTimer("t1".into()),
        Ask::OpenWait(wait_spec()),
        Ask::SatisfyWait("w1".into()),
        Ask::TimeOutWait("w1".into()),
        Ask::DescribeWait { wait: "w1".into(), details: wait_details() },
        Ask::CancelWait("w1".into()),
        Ask::StartChild(Box::new(child_spec())),
        Ask::SignalExternal {
            target: other_workflow(),
            name: "paid".into(),
            input: payloads(),
            header: named(),
        },
        Ask::CancelExternal {
            target: other_workflow(),
            mode: CancelMode::Terminate,
            reason: "why".into(),
        },
        Ask::RecordMarker(marker()),
        Ask::UpsertSearchAttributes(named()),
        Ask::UpsertMemo(named()),
        Ask::AcceptUpdate { update: "u".into(), request: update_request() },
        Ask::RejectUpdate { update: "u".into(), failure: failure() },
        Ask::CompleteUpdate { update: "u".into(), outcome: Outcome::Completed(payloads()) },
        Ask::CompleteRun(payloads()),
        Ask::FailRun(failure()),
        Ask::CancelRun(payloads()),
        Ask::ContinueAsNew(Box::new(next)),
    ]
}

fn check_completion(call: Call) {
    let completion = completion_to_wire(call.clone());
    let numbered = over_the_wire(&Completion { number: 9, completion });
    let completion = numbered.completion.expect("a worker's");
    let back = completion_from_wire(completion, &"session".into()).expect("it makes sense");
    assert_eq!(format!("{back:?}"), format!("{call:?}"));
}

#[test]
fn completions() {
    let command = |ask| Command { ask, extension: extension() };
    let completion = TaskCompletion {
        commands: every_ask().into_iter().map(command).collect(),
        flags: BTreeSet::from([Flag::OptionalTimers]),
        sdk_metadata: extension(),
        force_next: true,
        eager_activities: 3,
    };
    let calls = [
        Call::CompleteTask(task_token(), Box::new(completion)),
        Call::FailTask {
            token: task_token(),
            cause: TaskFailureCause::ReplayBlocked,
            failure: failure(),
            blocked: Some(blocked()),
        },
        Call::AnswerQuery(query_token(), Ok(payloads())),
        Call::AnswerQuery(query_token(), Err(failure())),
        Call::ResolveActivity(activity_token(), Resolution::Completed(payloads())),
        Call::ResolveActivity(activity_token(), Resolution::Failed(failure())),
        Call::ResolveActivity(activity_token(), Resolution::Cancelled(payloads())),
        Call::Heartbeat(activity_token(), payloads()),
        Call::PresentAttempt(activity_token(), "session".into()),
        Call::DetachAttempt(activity_token()),
    ];
    calls.into_iter().for_each(check_completion);
}

#[test]
fn a_command_at_fault_is_named_with_its_place() {
    let call = Call::CompleteTask(task_token(), Box::default());
    let Some(abide_proto::generated::completion::Completion::CompleteTask(mut wire)) =
        completion_to_wire(call)
    else {
        panic!("a completion is a worker's");
    };
    wire.commands = vec![Command::from(Ask::CancelTimer("t".into())).into(), Default::default()];
    let completion = abide_proto::generated::completion::Completion::CompleteTask(wire);
    let invalid = completion_from_wire(completion, &"session".into()).expect_err("no command");
    assert_eq!(invalid.field, "commands[1].ask");
}

#[test]
fn calls_of_clients_are_no_completions() {
    assert_eq!(completion_to_wire(Call::AwaitClose(target())), None);
    let start = StartCall {
        workflow: crate::values::workflow(),
        spec: run_spec(),
        identity: String::new(),
        key: None,
        conflict: Default::default(),
        reuse: Default::default(),
        begin: Default::default(),
        signal: None,
        update: None,
    };
    assert_eq!(completion_to_wire(Call::Start(Box::new(start))), None);
}

#[test]
fn acknowledgements() {
    let cause = TaskFailureCause::BadCommand;
    let replies = [
        CallReply::TaskTaken { completed: 7 },
        CallReply::TaskDiscarded,
        CallReply::TaskRefused { cause, message: "why".into() },
        CallReply::Alive { cancel_requested: true },
        CallReply::Alive { cancel_requested: false },
        CallReply::Done { run: run(1), repeat: true },
    ];
    for reply in replies {
        let acknowledgement = Some(acknowledgement_to_wire(Ok(reply.clone())));
        let numbered = over_the_wire(&Acknowledgement { number: 9, acknowledgement });
        let back = acknowledgement_from_wire(numbered.acknowledgement.expect("an answer"));
        assert_eq!(format!("{back:?}"), format!("{:?}", Ok::<_, ()>(reply)));
    }
}

fn check_task(dispatch: Dispatch) {
    let task = over_the_wire(&Task::from(dispatch.clone()));
    let back = Dispatch::try_from(task).expect("it makes sense");
    // A body that was read keeps its bytes, so tails are compared by what they say.
    let ((back, back_tail), (dispatch, tail)) = (split(back), split(dispatch));
    assert_eq!(back_tail, tail);
    assert_eq!(format!("{back:?}"), format!("{dispatch:?}"));
}

/// The task without its tail, and the tail.
fn split(mut dispatch: Dispatch) -> (Dispatch, Vec<Event>) {
    let tail = match &mut dispatch {
        Dispatch::Workflow { given, .. } => std::mem::take(&mut given.tail),
        Dispatch::Activity { .. } | Dispatch::Query { .. } => Vec::new(),
    };
    (dispatch, tail)
}

#[test]
fn tasks() {
    let body = Body::new(Fact::RunCancelled(RunCancelled { details: payloads() }));
    let given = GivenTask {
        start: task_token().start,
        attempt: 2,
        previous: 3,
        tail: vec![Event { number: 8, time: time(1), body }],
        updates: vec![("u".into(), update_request())],
        timeout: Duration::from_secs(10),
    };
    for recent in [None, Some(Vec::new()), Some(vec!["row".into()])] {
        let (token, given) = (task_token(), given.clone());
        check_task(Dispatch::Workflow { token, given, last_event: 7, recent });
    }
    let given = ActivityGiven {
        spec: activity_spec(),
        execution: "execution".into(),
        attempt: 2,
        scheduled_at: time(2),
        heartbeat: Some(payloads()),
    };
    let (token, given) = (activity_token(), Box::new(given));
    check_task(Dispatch::Activity { token, given, eager: true });
    let query = Query { name: "q".into(), input: payloads() };
    check_task(Dispatch::Query { token: query_token(), last_event: 5, query });
}

#[test]
fn credits() {
    for kind in [WorkKind::Workflow, WorkKind::Activity] {
        let queue = QueueKey { namespace: "default".into(), queue: "orders".into(), kind };
        let wire = over_the_wire(&credit_to_wire(queue.clone(), 12));
        assert_eq!(credit_from_wire(wire), Ok((queue, 12)));
    }
}
