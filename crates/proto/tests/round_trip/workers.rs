//! What workers and servers say to each other.

use std::{collections::BTreeSet, time::Duration};

use abide_core::{
    command::{Ask, Command, ContinueAsNew},
    dispatch::{Dispatch, QueueKey, WorkKind},
    event::{Body, CancelMode, Event, Fact, Flag, RunCancelled, TaskFailureCause, UpdateOutcome},
    operation::QueryRequest,
    report::{Report, ReportAnswer, TaskCompletion},
    run::{ActivityGiven, GivenTask, Resolution},
};
use abide_proto::{
    generated::{Acknowledgement, Completion, Task},
    worker::{
        acknowledgement_from_wire, acknowledgement_to_wire, credit_from_wire, credit_to_wire,
        report_from_wire, report_to_wire,
    },
};

use crate::{
    over_the_wire,
    values::{
        activity_spec, activity_token, blocked, child_spec, extension, failure, marker, named,
        other_workflow, payloads, query_token, run, run_spec, task_token, time, timer_spec,
        update_request, wait_details, wait_spec,
    },
};

pub(crate) fn every_ask() -> Vec<Ask> {
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
        Ask::CompleteUpdate { update: "u".into(), outcome: UpdateOutcome::Completed(payloads()) },
        Ask::CompleteRun(payloads()),
        Ask::FailRun(failure()),
        Ask::CancelRun(payloads()),
        Ask::ContinueAsNew(Box::new(next)),
    ]
}

fn check_completion(report: Report) {
    let completion = Some(report_to_wire(report.clone()));
    let numbered = over_the_wire(&Completion { number: 9, completion });
    let completion = numbered.completion.expect("a worker's");
    let back = report_from_wire(completion, &"session".into()).expect("it makes sense");
    assert_eq!(format!("{back:?}"), format!("{report:?}"));
}

#[test]
fn completions() {
    let command = |ask: Ask| Command { extension: extension(), ..ask.into() };
    let completion = TaskCompletion {
        commands: every_ask().into_iter().map(command).collect(),
        flags: BTreeSet::from([Flag::OptionalTimers]),
        sdk_metadata: extension(),
        force_next: true,
        eager_activities: 3,
    };
    let reports = [
        Report::CompleteTask(task_token(), Box::new(completion)),
        Report::FailTask {
            token: task_token(),
            cause: TaskFailureCause::ReplayBlocked,
            failure: failure(),
            blocked: Some(blocked()),
        },
        Report::AnswerQuery(query_token(), Ok(payloads())),
        Report::AnswerQuery(query_token(), Err(failure())),
        Report::ResolveActivity(activity_token(), Resolution::Completed(payloads())),
        Report::ResolveActivity(activity_token(), Resolution::Failed(failure())),
        Report::ResolveActivity(activity_token(), Resolution::Cancelled(payloads())),
        Report::Heartbeat(activity_token(), payloads()),
        Report::PresentAttempt(activity_token(), "session".into()),
        Report::DetachAttempt(activity_token()),
    ];
    reports.into_iter().for_each(check_completion);
}

#[test]
fn a_command_at_fault_is_named_with_its_place() {
    let report = Report::CompleteTask(task_token(), Box::default());
    let abide_proto::generated::completion::Completion::CompleteTask(mut wire) =
        report_to_wire(report)
    else {
        panic!("a completion is a worker's");
    };
    wire.commands = vec![Command::from(Ask::CancelTimer("t".into())).into(), Default::default()];
    let completion = abide_proto::generated::completion::Completion::CompleteTask(wire);
    let invalid = report_from_wire(completion, &"session".into()).expect_err("no command");
    assert_eq!(invalid.field, "commands[1].ask");
}

#[test]
fn acknowledgements() {
    let cause = TaskFailureCause::BadCommand;
    let replies = [
        ReportAnswer::TaskTaken { completed: 7 },
        ReportAnswer::TaskDiscarded,
        ReportAnswer::TaskRefused { cause, message: "why".into() },
        ReportAnswer::Alive { cancel_requested: true },
        ReportAnswer::Alive { cancel_requested: false },
        ReportAnswer::Done { run: run(1), repeat: true },
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
    let query = QueryRequest { name: "q".into(), input: payloads(), header: named() };
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
