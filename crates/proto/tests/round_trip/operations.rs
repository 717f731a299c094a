//! What clients ask and are told.

use std::time::Duration;

use abide_core::{
    attempt::{ActivityToken, AttemptName, AttemptReport},
    codec::{self, RunDetails},
    digest::Digest,
    effect::RunOutcome,
    event::{Guards, Mover, Origin, ReusePolicy, RunReference, TaskFailureCause, UpdateOutcome},
    ids::{NamespaceId, ShardId},
    list::{RunFilter, RunParent, RunRow, RunStatus, WaitFilter, WaitKind, WaitPosition, WaitRow},
    node::{NodeListing, NodeStanding},
    operation::{
        Alive, AnyAnswer, AnyOperation, AwaitClose, AwaitUpdate, AwaitWaits, Begin, CallError,
        Cancel, Closed, ConflictPolicy, Count, CountRuns, CreateSearchAttribute, Delete,
        DeleteSearchAttribute, Describe, Done, History, HistoryPage, ListNodes, ListRuns,
        ListSearchAttributes, ListWaits, Nodes, Pause, Query, QueryAnswer, QueryRequest, Repair,
        ReportAttempt, RescheduleTimer, Reset, RunRows, RunWaits, SearchAttributes, Signal, Start,
        StartUpdate, Started, Terminate, Unpause, Update, UpdateAnswer, UpdateWait, WaitRows,
    },
    retry::RetryState,
    run::{
        Close, Description, Liveness, Movable, Reapply, Refusal, ResetPoint, Resolution,
        ResumeSource, ShownActivity, ShownChild, ShownPhase, ShownWait, Stage, TaskTrouble,
        WaitKey,
    },
    search::AttributeKind,
    tally::{RunGroup, RunTally, TallyRuns, TallyWaits, WaitGroup, WaitTally},
    time::Timestamp,
};
use abide_proto::{
    generated::{NumberedAnswer, NumberedCall},
    operation::{answer_from_wire, answer_to_wire, operation_from_wire, operation_to_wire},
};

use crate::{
    over_the_wire,
    values::{
        blocked, extension, failure, named, payloads, run, run_spec, signal, target, time,
        update_request, wait_details, workflow,
    },
};

fn check_operation(operation: impl Into<AnyOperation>) {
    let operation = operation.into();
    let call = operation_to_wire(operation.clone()).expect("a client's");
    let numbered = over_the_wire(&NumberedCall { number: 9, call: Some(call) });
    let back = operation_from_wire(numbered.call.expect("a call"));
    let back = back.expect("it makes sense");
    assert_eq!(format!("{back:?}"), format!("{operation:?}"));
}

#[test]
fn starts() {
    let start = |conflict, reuse, begin, full: bool| Start {
        workflow: workflow(),
        spec: run_spec(),
        identity: "shop".into(),
        key: full.then(|| "k".into()),
        conflict,
        reuse,
        begin,
        signal: full.then(signal),
        update: full.then(|| {
            let (update, until) = ("u1".into(), UpdateWait::Accepted);
            let request = update_request();
            Box::new(StartUpdate { update, request, until, wait_while_blocked: true })
        }),
    };
    let after = Begin::After(Duration::from_millis(1500));
    check_operation(start(ConflictPolicy::Reject, ReusePolicy::Allow, Begin::AtOnce, false));
    check_operation(start(ConflictPolicy::UseExisting, ReusePolicy::AllowIfFailed, after, true));
    check_operation(start(
        ConflictPolicy::TerminateExisting,
        ReusePolicy::Reject,
        Begin::At(time(10)),
        true,
    ));
}

#[test]
fn messages() {
    let update = |until| Update {
        target: target(),
        update: "u1".into(),
        request: update_request(),
        until,
        wait_while_blocked: until == UpdateWait::Completed,
    };
    let look_up = |until| AwaitUpdate {
        target: target(),
        update: "u1".into(),
        until,
        wait_while_blocked: until == UpdateWait::Completed,
    };
    check_operation(Signal { target: target(), signal: signal(), extension: extension() });
    check_operation(update(UpdateWait::Admitted));
    check_operation(update(UpdateWait::Accepted));
    check_operation(update(UpdateWait::Completed));
    check_operation(look_up(UpdateWait::Admitted));
    check_operation(look_up(UpdateWait::Completed));
    check_operation(Query {
        target: target(),
        query: QueryRequest { name: "q".into(), input: payloads(), header: named() },
    });
    check_operation(AwaitClose { target: target() });
    check_operation(AwaitWaits { target: target(), after: 12 });
}

#[test]
fn changes_of_course() {
    check_operation(Delete { target: target(), identity: "who".into() });
    let points = [
        ResetPoint::FirstTask,
        ResetPoint::LastTask,
        ResetPoint::Event(7),
        ResetPoint::Build("b".into()),
        ResetPoint::Failure,
    ];
    for (index, to) in points.into_iter().enumerate() {
        check_operation(Reset {
            target: target(),
            to,
            reapply: Reapply { signals: index % 2 == 0, updates: index > 2 },
            reason: "why".into(),
            identity: "who".into(),
            key: Some("k".into()),
        });
    }
}

#[test]
fn what_operators_do() {
    let (reason, identity) = (String::from("why"), String::from("who"));
    let key = || Some("k".into());
    let reschedule = |what, after, key| RescheduleTimer {
        target: target(),
        what,
        fire_at: time(11),
        after,
        identity: "who".into(),
        key,
    };
    check_operation(Cancel {
        target: target(),
        reason: reason.clone(),
        identity: identity.clone(),
        key: key(),
    });
    check_operation(Terminate {
        target: target(),
        reason: reason.clone(),
        identity: identity.clone(),
        details: payloads(),
        key: key(),
    });
    check_operation(Pause {
        target: target(),
        reason: reason.clone(),
        identity: identity.clone(),
        key: key(),
    });
    check_operation(Unpause { target: target(), reason, identity: identity.clone(), key: None });
    check_operation(reschedule("t1".into(), Some(Duration::from_millis(1500)), key()));
    check_operation(reschedule(Movable::Wait(WaitKey::Condition("c1".into())), None, None));
    check_operation(Repair { target: target(), identity });
}

#[test]
fn calls_about_waits() {
    let moved = RescheduleTimer {
        target: target(),
        what: Movable::Wait(WaitKey::Condition("c1".into())),
        fire_at: time(11),
        after: None,
        identity: "anna".into(),
        key: None,
    };
    check_operation(moved);
    check_operation(AwaitWaits { target: target(), after: 12 });
}

#[test]
fn lists_and_histories() {
    let shard = ShardId::new(63).expect("the last shard");
    let runs = RunFilter {
        namespace: Some("default".into()),
        workflow: Some("order-17".into()),
        workflow_type: Some("Order".into()),
        statuses: RunStatus::ALL.to_vec(),
        started_from: Some(time(1)),
        started_before: Some(time(2)),
        known: Default::default(),
        after: None,
        query: "Amount > 100".into(),
        search: None,
    };
    let waits = WaitFilter {
        namespace: Some("default".into()),
        run: Some((shard, run(1))),
        workflow: Some("order-17".into()),
        workflow_type: Some("Order".into()),
        kind: Some(WaitKind::Signal),
        name: Some("paid".into()),
        until: Some(time(3)),
        since_before: Some(time(4)),
        known: Default::default(),
        after: Some(WaitPosition {
            until: Timestamp::NEVER,
            run: run(2),
            shard,
            wait: "wait".into(),
        }),
    };
    check_operation(Describe { target: target() });
    check_operation(CountRuns { filter: runs.clone() });
    let paged = RunFilter { after: Some((time(4), run(3))), ..runs };
    check_operation(ListRuns { filter: paged, limit: Some(7) });
    check_operation(ListRuns { filter: RunFilter::default(), limit: None });
    check_operation(ListWaits { filter: waits, limit: Some(7) });
    check_operation(ListNodes);
    check_operation(ListSearchAttributes { namespace: "default".into() });
    let (namespace, name) = (NamespaceId::from("default"), "Amount".to_owned());
    check_operation(CreateSearchAttribute {
        namespace: namespace.clone(),
        name: name.clone(),
        kind: AttributeKind::Int,
    });
    check_operation(DeleteSearchAttribute { namespace, name });
    let filter = RunFilter { namespace: Some("default".into()), ..Default::default() };
    check_operation(TallyRuns { filter });
    check_operation(TallyWaits {
        namespace: Some("default".into()),
        known: Default::default(),
        workflow_type: Some("Order".into()),
        kinds: [WaitKind::Timer, WaitKind::Approval].into(),
        from: time(5),
        interval: Duration::from_millis(1500),
        intervals: 7,
    });
    for follow in [None, Some(0), Some(12)] {
        let request = History { target: target(), from: 5, follow };
        check_operation(request);
    }
}

#[test]
fn a_start_that_names_its_run_is_refused() {
    let mut request: abide_proto::generated::StartRunRequest = Start {
        workflow: workflow(),
        spec: run_spec(),
        identity: "shop".into(),
        key: None,
        conflict: ConflictPolicy::Reject,
        reuse: ReusePolicy::Allow,
        begin: Begin::AtOnce,
        signal: None,
        update: None,
    }
    .into();
    let asked = |request| abide_proto::generated::numbered_call::Call::Start(request);
    assert!(operation_from_wire(asked(request.clone())).is_ok());
    request.run = Some(run(1).as_bytes().to_vec().into());
    let refused = operation_from_wire(asked(request)).expect_err("the engine draws ids");
    assert_eq!(refused.field, "run");
}

fn check_reply(answer: impl Into<AnyAnswer>) {
    let reply = answer.into();
    let answer = Some(answer_to_wire(Ok(reply.clone())));
    let numbered = over_the_wire(&NumberedAnswer { number: 9, answer });
    let back = answer_from_wire(numbered.answer.expect("an answer")).expect("it makes sense");
    assert_eq!(format!("{back:?}"), format!("{reply:?}"));
}

fn shown_wait(kind: WaitKind, key: WaitKey) -> ShownWait {
    ShownWait {
        key,
        kind,
        name: "paid".into(),
        origin: Some(Origin::ExternalEvent { name: "paid".into() }),
        timer: Some("t1".into()),
        since: time(4),
        until: Timestamp::NEVER,
        guards: Guards { not_after: Some(time(5)), max_extensions: Some(6) },
        moves: 7,
        moved_by: Some(Mover::Outside {
            identity: "anna".into(),
            key: Some("k".into()),
            received_at: time(8),
            asked: Digest::from_number(9),
        }),
        details: Some(wait_details()),
    }
}

#[test]
fn waits_of_a_run() {
    let bare = ShownWait {
        origin: None,
        timer: None,
        until: time(9),
        guards: Guards::default(),
        moved_by: None,
        details: None,
        ..shown_wait(WaitKind::ActivityRetry, WaitKey::Activity(5))
    };
    let waits = vec![shown_wait(WaitKind::Approval, WaitKey::Condition("c1".into())), bare];
    let waits = RunWaits { run: run(1), log_row: 3, waits: waits.into(), closed: true };
    check_reply(waits);
}

#[test]
fn nodes() {
    let nodes = NodeStanding::ALL.map(|standing| NodeListing {
        name: "one".into(),
        address: "one:7233".into(),
        standing,
        shards: 21,
    });
    check_reply(Nodes(nodes.into()));
}

fn with_update(update: Result<UpdateAnswer, CallError>) -> Started {
    Started { run: run(1), started: true, update: Some(update) }
}

#[test]
fn replies() {
    let outcomes = [
        RunOutcome::Completed(payloads()),
        RunOutcome::Failed { failure: failure(), retry_state: RetryState::Timeout },
        RunOutcome::TimedOut { retry_state: RetryState::PolicyNotSet },
        RunOutcome::Cancelled(payloads()),
        RunOutcome::Terminated { reason: "why".into() },
    ];
    for outcome in outcomes {
        let (how, next_run) = (Close::Failed, Some(run(2)));
        let closed = Closed { run: run(1), how, outcome: Some(outcome), next_run };
        check_reply(closed);
    }
    let how = Close::ContinuedAsNew;
    check_reply(Closed { run: run(1), how, outcome: None, next_run: None });
    check_reply(Started { run: run(1), started: true, update: None });
    check_reply(Done { run: run(1), repeat: true, fire_at: None });
    check_reply(Done { run: run(1), repeat: false, fire_at: Some(time(2)) });
    check_reply(UpdateAnswer::Reached { run: run(1), stage: Stage::Admitted });
    check_reply(UpdateAnswer::Reached { run: run(1), stage: Stage::Accepted });
    check_reply(UpdateAnswer::Reached {
        run: run(1),
        stage: Stage::Completed(UpdateOutcome::Failed(failure())),
    });
    check_reply(UpdateAnswer::Reached { run: run(1), stage: Stage::CompletedIn(run(2)) });
    check_reply(UpdateAnswer::Rejected(failure()));
    check_reply(with_update(Ok(UpdateAnswer::Reached { run: run(2), stage: Stage::Accepted })));
    check_reply(with_update(Ok(UpdateAnswer::Rejected(failure()))));
    check_reply(with_update(Err(CallError::Refused(Refusal::RunClosed))));
    check_reply(QueryAnswer(Ok(payloads())));
    check_reply(QueryAnswer(Err(failure())));
}

fn started(detached: bool) -> ShownPhase {
    ShownPhase::Started { at: time(2), identity: "w".into(), detached }
}

#[test]
fn reports_on_attempts() {
    let token = ActivityToken { workflow: target().workflow, run: run(1), scheduled: 5, start: 2 };
    let named = || AttemptName::Activity(target(), "activity-1".into());
    let ended = |resolution| ReportAttempt {
        attempt: named(),
        report: AttemptReport::Resolved(resolution),
    };
    check_operation(ReportAttempt {
        attempt: AttemptName::Token(token),
        report: AttemptReport::Heartbeat(payloads()),
    });
    check_operation(ended(Resolution::Completed(payloads())));
    check_operation(ended(Resolution::Failed(failure())));
    check_operation(ended(Resolution::Cancelled(payloads())));
    for cancel_requested in [false, true] {
        check_reply(Alive { cancel_requested });
    }
}

#[test]
fn descriptions() {
    let phases = [
        ShownPhase::Ready { since: time(1) },
        started(false),
        started(true),
        ShownPhase::Backoff { until: time(3) },
    ];
    let activities = phases.map(|phase| ShownActivity {
        activity: "1".into(),
        activity_type: "charge".into(),
        queue: "orders".into(),
        attempt: 2,
        phase,
        last_failure: Some(failure()),
        heartbeat: Some(payloads()),
        cancel_requested: true,
    });
    let waits = WaitKind::ALL.map(|kind| shown_wait(kind, WaitKey::Timer("t1".into())));
    let trouble = TaskTrouble {
        attempt: 3,
        failed_at: time(5),
        not_before: Some(time(6)),
        cause: TaskFailureCause::ReplayBlocked,
        failure: failure(),
        blocked: Some(blocked()),
    };
    check_reply(Box::new(Description {
        workflow: workflow(),
        run: run(1),
        workflow_type: "Order".into(),
        queue: "orders".into(),
        status: RunStatus::ReplayBlocked,
        liveness: Liveness::ReplayBlocked,
        resume_sources: vec![ResumeSource::Task, ResumeSource::Operator],
        first_run: run(0),
        reset_from: Some(run(4)),
        attempt: 2,
        parent: Some(RunReference { workflow: workflow(), run: run(9) }),
        started_at: time(7),
        begins_at: Some(time(7)),
        closed_at: Some(time(8)),
        deadline: Some(time(9)),
        next_run: Some(run(2)),
        outcome: Some(RunOutcome::Completed(payloads())),
        last_event: 12,
        history_bytes: 3456,
        cancel_requested: true,
        memo: named(),
        search_attributes: named(),
        trouble: Some(trouble),
        waits: waits.into(),
        activities: activities.into(),
        children: vec![ShownChild {
            workflow: workflow(),
            run: run(4),
            workflow_type: "Parcel".into(),
            started: true,
        }],
        updates: vec!["u1".into()],
    }));
}

#[test]
fn rows() {
    let details = RunDetails { memo: named(), search_attributes: named() };
    let row = |status| RunRow {
        run: run(1),
        namespace: "default".into(),
        workflow: "order-17".into(),
        ordinal: 2,
        workflow_type: "Order".into(),
        status,
        start_key: Some("k".into()),
        started_at: time(1),
        closed_at: Some(time(2)),
        details: codec::encode_run_details(&details),
        queue: "orders".into(),
        parent: Some(RunParent { workflow: "shop".into(), run: run(2) }),
    };
    check_reply(RunRows { rows: RunStatus::ALL.map(row).to_vec(), next: Some((time(1), run(1))) });
    let without = RunRow { parent: None, ..row(RunStatus::Running) };
    check_reply(RunRows { rows: vec![without], next: None });
    let wait = |details| WaitRow {
        run: run(1),
        wait: "wait".into(),
        namespace: "default".into(),
        workflow: "order-17".into(),
        workflow_type: "Order".into(),
        kind: WaitKind::Approval,
        name: "key".into(),
        since: time(3),
        until: Timestamp::NEVER,
        timer: Some("t1".into()),
        details: codec::encode_wait_details(details),
    };
    let shown = wait_details();
    check_reply(WaitRows { rows: vec![wait(Some(&shown)), wait(None)], more: false });
    check_reply(Count(12));
    let of_type = |status| RunGroup::Type { status, workflow_type: "Order".into() };
    let groups = RunStatus::ALL.map(|status| (of_type(status), 3)).into();
    check_reply(RunTally { groups, more: true });
    let values = [Some("eu".to_owned()), Some(String::new()), None];
    let groups = values.map(|value| (RunGroup::Value(value), 4)).into();
    check_reply(RunTally { groups, more: false });
    let kinds = AttributeKind::ALL.map(|kind| (format!("a{}", kind.number()), kind));
    check_reply(SearchAttributes(kinds.into_iter().collect()));
    let groups = WaitKind::ALL.map(|kind| (WaitGroup { interval: 4, kind }, 5)).into();
    check_reply(WaitTally { groups, more: false, whole: 7 });
    check_reply(HistoryPage {
        run: run(1),
        rows: vec!["one".into(), "two".into()],
        next: 3,
        more: true,
        closed: true,
    });
}
