//! Updates that are sent with a start, updates that are looked up by id, and the answers of their callers
//! after crashes and lost messages.

use abide_core::{
    command::{Ask, ContinueAsNew},
    event::{RunTerminated, SignalReceived, UpdateOutcome, UpdateRequest},
    failure::Failure,
    ids::RunId,
    operation::{
        AnyAnswer, AwaitUpdate, CallError, ConflictPolicy, Describe, Start, StartUpdate, Started,
        Terminate, Ticket, UpdateAnswer, UpdateWait,
    },
    payload::Payload,
    retry::RetryPolicy,
    run::{Close, Refusal, Stage},
};
use abide_store::{CommitError, RunFilter};

use crate::harness::{World, shard_of, target};

fn request() -> UpdateRequest {
    UpdateRequest { name: "pay".into(), ..UpdateRequest::default() }
}

/// A start with the update `u` and its own idempotency keys.
fn start_call(world: &mut World) -> Start {
    let asked = StartUpdate {
        update: "u".into(),
        request: request(),
        until: UpdateWait::Completed,
        wait_while_blocked: false,
    };
    Start {
        key: Some("start".into()),
        conflict: ConflictPolicy::UseExisting,
        update: Some(Box::new(asked)),
        ..world.start_call("w")
    }
}

fn call(world: &mut World, start: &Start) -> Ticket {
    world.call(shard_of("w"), start.clone())
}

fn look_up(world: &mut World, until: UpdateWait) -> Ticket {
    let (target, update) = (target("w"), "u".into());
    let call = AwaitUpdate { target, update, until, wait_while_blocked: false };
    world.call(shard_of("w"), call)
}

fn poll(world: &mut World) -> Result<Stage, CallError> {
    let ticket = look_up(world, UpdateWait::Admitted);
    match world.replies.remove(&ticket).expect("it does not wait")? {
        AnyAnswer::Update(UpdateAnswer::Reached { stage, .. }) => Ok(stage),
        other => panic!("not where an update stands: {other:?}"),
    }
}

fn told(world: &mut World, ticket: Ticket) -> Result<AnyAnswer, CallError> {
    world.replies.remove(&ticket).expect("the caller is told")
}

/// The answer to a start with an update: the run, whether it is new, and the update's stage.
fn both(world: &mut World, ticket: Ticket) -> (RunId, bool, Result<AnyAnswer, CallError>) {
    match told(world, ticket) {
        Ok(AnyAnswer::Started(Started { run, started, update: Some(update) })) => {
            (run, started, update.map(AnyAnswer::from))
        }
        other => panic!("not both: {other:?}"),
    }
}

fn accept() -> Ask {
    Ask::AcceptUpdate { update: "u".into(), request: request() }
}

fn complete() -> Ask {
    Ask::CompleteUpdate {
        update: "u".into(),
        outcome: UpdateOutcome::Completed(vec![Payload::new("5")]),
    }
}

fn stage(reply: &Result<AnyAnswer, CallError>) -> &Stage {
    match reply {
        Ok(AnyAnswer::Update(UpdateAnswer::Reached { stage, .. })) => stage,
        other => panic!("no stage: {other:?}"),
    }
}

fn completed() -> Stage {
    Stage::Completed(UpdateOutcome::Completed(vec![Payload::new("5")]))
}

fn runs(world: &World) -> usize {
    world.tables.runs(&RunFilter::default(), 9).len()
}

/// The first run of the workflow.
fn first(world: &World) -> RunId {
    let runs = world.tables.runs(&RunFilter::default(), 9);
    runs.iter().find(|run| run.ordinal == 1).expect("it is written").run
}

fn accepted(world: &World, run: RunId) -> usize {
    world.history("w", run).iter().filter(|name| **name == "UpdateAccepted").count()
}

fn continue_as_new(world: &mut World, updates: &[&str]) -> Ask {
    let spec = world.run("w").spec;
    let updates = updates.iter().map(|update| (*update).into()).collect();
    Ask::ContinueAsNew(Box::new(ContinueAsNew { spec, signals: Vec::new(), updates }))
}

/// A world whose shard is already loaded, so that the next commit belongs to the call under test.
fn opened() -> World {
    let mut world = World::new();
    world.ask(shard_of("w"), Describe { target: target("w") }).expect_err("there is no run");
    world
}

#[test]
fn a_start_with_an_update_is_one_call_and_one_batch() {
    let mut world = opened();
    world.commit_at_once = false;
    let start = start_call(&mut world);
    let ticket = call(&mut world, &start);
    world.commit(Ok(()));
    assert!(world.commits.is_empty(), "the update waits for code, not for the store");
    world.commit_at_once = true;
    assert!(!world.replies.contains_key(&ticket), "the caller waits for the update");
    let token = world.take_task();
    world.complete(token, vec![accept(), complete()]);
    let (run, started, update) = both(&mut world, ticket);
    assert_eq!((run, started, stage(&update)), (first(&world), true, &completed()));
}

#[test]
fn a_start_that_is_not_written_tells_nothing_of_its_update() {
    let mut world = opened();
    world.commit_at_once = false;
    let start = start_call(&mut world);
    let ticket = call(&mut world, &start);
    world.commit(Err(CommitError::Unknown("the disk is gone".into())));
    assert_eq!(told(&mut world, ticket).unwrap_err(), CallError::Reset);
    assert_eq!(runs(&world), 0);
}

/// The crash happens after the start is written, after the update is accepted, or after its outcome.
#[test]
fn a_repeat_starts_and_updates_once_wherever_the_first_was_lost() {
    for steps in 0..3 {
        let mut world = World::new();
        let start = start_call(&mut world);
        call(&mut world, &start);
        if steps > 0 {
            let token = world.take_task();
            let asks = if steps == 1 { vec![accept()] } else { vec![accept(), complete()] };
            world.complete(token, asks);
        }
        world.crash();
        world.replies.clear();
        let again = call(&mut world, &start);
        match steps {
            0 => {
                let token = world.take_task();
                world.complete(token, vec![accept(), complete()]);
            }
            1 => {
                world.signal("w", "go").unwrap();
                let token = world.take_task();
                world.complete(token, vec![complete()]);
            }
            _ => {}
        }
        let (run, started, update) = both(&mut world, again);
        assert_eq!((run, started, stage(&update)), (first(&world), true, &completed()), "{steps}");
        assert_eq!((runs(&world), accepted(&world, run)), (1, 1), "{steps}");
    }
}

#[test]
fn a_repeat_of_a_call_that_used_a_run_finds_it_also_when_it_has_closed() {
    let mut world = World::new();
    let open = world.start("w");
    let start = start_call(&mut world);
    let first = call(&mut world, &start);
    let token = world.take_task();
    world.complete(token, vec![accept(), complete(), Ask::CompleteRun(Vec::new())]);
    assert!(!both(&mut world, first).1);
    world.crash();
    let again = call(&mut world, &start);
    let (run, started, update) = both(&mut world, again);
    assert_eq!((run, started, stage(&update)), (open, false, &completed()));
    assert_eq!(runs(&world), 1);
}

#[test]
fn a_repeated_signal_with_start_finds_the_run_that_took_the_signal() {
    let mut world = World::new();
    let open = world.start("w");
    let signal = SignalReceived { name: "s".into(), key: Some("k".into()), ..Default::default() };
    let call = Start {
        key: Some("k".into()),
        conflict: ConflictPolicy::UseExisting,
        signal: Some(signal),
        ..world.start_call("w")
    };
    let ask = |world: &mut World| world.ask(shard_of("w"), call.clone());
    ask(&mut world).unwrap();
    let token = world.take_task();
    world.complete(token, vec![Ask::CompleteRun(Vec::new())]);
    let again = ask(&mut world);
    assert!(
        matches!(again, Ok(AnyAnswer::Started(Started { run, started: false, .. })) if run == open)
    );
    assert_eq!(runs(&world), 1);
}

#[test]
fn a_repeat_follows_the_run_that_it_began() {
    let mut world = World::new();
    let start = start_call(&mut world);
    call(&mut world, &start);
    world.crash();
    // The run continues without the update, which was only in memory.
    world.describe("w");
    let token = world.take_task();
    let next = continue_as_new(&mut world, &[]);
    world.complete(token, vec![next]);
    let again = call(&mut world, &start);
    let token = world.take_task();
    world.complete(token, vec![accept(), complete()]);
    let (run, started, update) = both(&mut world, again);
    assert_eq!((run, started, stage(&update)), (first(&world), true, &completed()));
    assert_eq!(runs(&world), 2);
}

#[test]
fn a_start_that_is_refused_keeps_nothing_of_its_update() {
    let mut world = World::new();
    let open = world.start("w");
    let start = Start { conflict: ConflictPolicy::Reject, ..start_call(&mut world) };
    let ticket = call(&mut world, &start);
    let error = told(&mut world, ticket).unwrap_err();
    assert!(matches!(error, CallError::AlreadyExists { run, .. } if run == open));
    assert_eq!(poll(&mut world), Err(Refusal::UnknownUpdate("u".into()).into()));
}

#[test]
fn a_rejected_update_leaves_the_run_that_was_started_for_it() {
    let mut world = World::new();
    let start = start_call(&mut world);
    let ticket = call(&mut world, &start);
    let token = world.take_task();
    let failure = Failure { message: "no".into(), ..Failure::default() };
    world.complete(token, vec![Ask::RejectUpdate { update: "u".into(), failure }]);
    let (run, started, update) = both(&mut world, ticket);
    assert_eq!((run, started), (first(&world), true));
    assert!(
        matches!(update, Ok(AnyAnswer::Update(UpdateAnswer::Rejected(failure))) if failure.message == "no")
    );
    assert!(world.run("w").open());
    assert_eq!(poll(&mut world), Err(Refusal::UnknownUpdate("u".into()).into()));
}

#[test]
fn an_update_that_the_open_run_refuses_is_told_beside_the_run() {
    let limits = abide_core::limits::Limits { pending_updates: 0, ..Default::default() };
    let mut world = World::with_limits(limits);
    let open = world.start("w");
    let start = start_call(&mut world);
    let ticket = call(&mut world, &start);
    let (run, started, update) = both(&mut world, ticket);
    assert_eq!((run, started), (open, false));
    assert!(matches!(update, Err(CallError::Refused(Refusal::Limit(_)))), "{update:?}");
}

#[test]
fn what_comes_with_a_start_is_checked_before_anything_is_written() {
    let mut world = World::new();
    let check = |world: &mut World, change: &dyn Fn(&mut Start), said: &str| {
        let mut start = start_call(world);
        change(&mut start);
        let error = world.ask(shard_of("w"), start).unwrap_err();
        assert_eq!(error.to_string(), said);
    };
    let update = |start: &mut Start, change: &dyn Fn(&mut StartUpdate)| {
        change(start.update.as_mut().expect("there is one"));
    };
    check(
        &mut world,
        &|start| start.signal = Some(SignalReceived { name: "s".into(), ..Default::default() }),
        "update excludes a signal: send only one of them",
    );
    check(
        &mut world,
        &|start| update(start, &|asked| asked.update = "".into()),
        "update id is empty",
    );
    check(
        &mut world,
        &|start| update(start, &|asked| asked.update = "u".repeat(1001).into()),
        "update id has 1001 bytes, the limit is 1000",
    );
    check(
        &mut world,
        &|start| update(start, &|asked| asked.request.name.clear()),
        "update name is empty",
    );
    let large = (2 << 20) + 1;
    check(
        &mut world,
        &|start| {
            update(start, &|asked| asked.request.input = vec![Payload::new(vec![b' '; large])])
        },
        "update input has 2097153 bytes, the limit is 2097152",
    );
    assert_eq!(runs(&world), 0);
}

#[test]
fn an_update_is_looked_up_without_asking_for_it() {
    let mut world = World::new();
    let start = start_call(&mut world);
    call(&mut world, &start);
    assert_eq!(poll(&mut world), Ok(Stage::Admitted));
    let waiting = look_up(&mut world, UpdateWait::Completed);
    let token = world.take_task();
    world.complete(token, vec![accept()]);
    assert_eq!(poll(&mut world), Ok(Stage::Accepted));
    let at_accepted = look_up(&mut world, UpdateWait::Accepted);
    assert_eq!(stage(&told(&mut world, at_accepted)), &Stage::Accepted);
    assert!(!world.replies.contains_key(&waiting));
    world.signal("w", "go").unwrap();
    let token = world.take_task();
    world.complete(token, vec![complete(), Ask::CompleteRun(Vec::new())]);
    assert_eq!(stage(&told(&mut world, waiting)), &completed());
    world.crash();
    assert_eq!(poll(&mut world), Ok(completed()));
}

#[test]
fn an_update_of_an_earlier_run_of_the_chain_is_found() {
    let mut world = World::new();
    let start = start_call(&mut world);
    call(&mut world, &start);
    let token = world.take_task();
    let next = continue_as_new(&mut world, &[]);
    world.complete(token, vec![accept(), complete(), next]);
    assert_eq!(poll(&mut world), Ok(completed()));
    world.crash();
    assert_eq!(poll(&mut world), Ok(completed()));
}

#[test]
fn who_looks_an_update_up_follows_it_into_the_next_run() {
    let mut world = World::new();
    let start = start_call(&mut world);
    call(&mut world, &start);
    let waiting = look_up(&mut world, UpdateWait::Completed);
    let token = world.take_task();
    let next = continue_as_new(&mut world, &["u"]);
    world.complete(token, vec![accept(), next]);
    let token = world.take_task();
    world.complete(token, vec![accept(), complete()]);
    assert_eq!(stage(&told(&mut world, waiting)), &completed());
}

#[test]
fn a_carried_update_that_the_next_run_rejects_stays_rejected() {
    let mut world = World::new();
    let start = start_call(&mut world);
    let first = call(&mut world, &start);
    let token = world.take_task();
    let next = continue_as_new(&mut world, &["u"]);
    world.complete(token, vec![accept(), next]);
    let token = world.take_task();
    let failure = Failure { message: "no".into(), ..Failure::default() };
    world.complete(token, vec![Ask::RejectUpdate { update: "u".into(), failure }]);
    let rejected = |reply: &Result<AnyAnswer, CallError>| matches!(reply, Ok(AnyAnswer::Update(UpdateAnswer::Rejected(failure))) if failure.message == "no");
    assert!(rejected(&both(&mut world, first).2));
    world.crash();
    let later = look_up(&mut world, UpdateWait::Completed);
    assert!(rejected(&told(&mut world, later)));
}

fn aborted(run: RunId, how: Close, accepted: bool) -> CallError {
    CallError::UpdateAborted { run, how, accepted }
}

#[test]
fn the_caller_of_an_unfinished_update_is_told_how_the_run_closed() {
    for (last, how) in [
        (Ask::CompleteRun(Vec::new()), Close::Completed),
        (Ask::FailRun(Failure::default()), Close::Failed),
    ] {
        let mut world = World::new();
        let start = start_call(&mut world);
        let asked = call(&mut world, &start);
        let waiting = look_up(&mut world, UpdateWait::Completed);
        let token = world.take_task();
        world.complete(token, vec![accept(), last]);
        let expected = aborted(first(&world), how, true);
        assert_eq!(both(&mut world, asked).2.unwrap_err(), expected);
        assert_eq!(told(&mut world, waiting).unwrap_err(), expected);
        world.crash();
        assert_eq!(poll(&mut world), Err(expected));
    }
}

#[test]
fn an_update_that_no_code_has_judged_is_aborted_as_not_accepted() {
    let mut world = World::new();
    let start = start_call(&mut world);
    let asked = call(&mut world, &start);
    let RunTerminated { reason, identity, details, key, .. } = RunTerminated::default();
    let target = target("w");
    let call = Terminate { target, reason, identity, details, key };
    world.ask(shard_of("w"), call).unwrap();
    let expected = aborted(first(&world), Close::Terminated, false);
    assert_eq!(both(&mut world, asked).2.unwrap_err(), expected);
}

#[test]
fn another_try_of_the_run_does_not_repeat_what_the_first_accepted() {
    let mut world = World::new();
    let mut start = start_call(&mut world);
    start.spec.retry = Some(RetryPolicy::default());
    let asked = call(&mut world, &start);
    let token = world.take_task();
    world.complete(token, vec![accept(), Ask::FailRun(Failure::default())]);
    assert_eq!(runs(&world), 2);
    let expected = aborted(first(&world), Close::Failed, true);
    assert_eq!(both(&mut world, asked).2.unwrap_err(), expected);
}
