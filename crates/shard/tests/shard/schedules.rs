//! Schedules: each of their times starts one run, whatever crashes, and the operations on them.

use std::time::Duration;

use abide_core::{
    command::{Ask, Command},
    dispatch::Dispatch,
    event::{Fact, RunSpec},
    failure::Failure,
    ids::{ShardId, WorkflowKey},
    limits::{InvalidField, Limits},
    list::RunStatus,
    operation::{
        AnyAnswer, CallError, ChangeSchedule, CreateSchedule, DeleteSchedule, DescribeSchedule,
        Done, ScheduleDescription, Terminate,
    },
    report::{Report, TaskCompletion, TaskToken},
    run::Refusal,
    schedule::{Overlap, Schedule, ScheduleBounds, ScheduleChange, ScheduledOutcome, Spec, key_of},
    time::Timestamp,
};
use abide_shard::message::Message;
use abide_store::RunFilter;

use crate::harness::{Crash, World, shard_of, target, worker};

const MINUTE: Duration = Duration::from_secs(60);

fn place() -> WorkflowKey {
    key_of("default".into(), "nightly")
}

fn home() -> ShardId {
    place().slot().shard()
}

/// Every minute.
fn definition(overlap: Overlap) -> Schedule {
    Schedule {
        spec: Spec { cron: vec!["* * * * *".into()], ..Spec::default() },
        workflow: "job".into(),
        run: RunSpec { workflow_type: "type".into(), queue: "queue".into(), ..RunSpec::default() },
        overlap: Some(overlap),
        catch_up: None,
        pause_on_failure: false,
        remaining: None,
    }
}

fn creation(schedule: Schedule) -> CreateSchedule {
    CreateSchedule {
        workflow: place(),
        schedule,
        paused: false,
        note: String::new(),
        trigger: false,
        identity: "ada".into(),
        key: Some("create".into()),
    }
}

fn created(schedule: Schedule) -> World {
    let mut world = World::new();
    world.ask(home(), creation(schedule)).expect("it is created");
    world
}

fn change(
    world: &mut World,
    change: ScheduleChange,
    key: Option<&str>,
) -> Result<AnyAnswer, CallError> {
    let (workflow, identity, key) = (place(), "ada".into(), key.map(Into::into));
    world.ask(home(), ChangeSchedule { workflow, change, revision: None, identity, key })
}

fn deletion(key: &str) -> DeleteSchedule {
    DeleteSchedule { workflow: place(), identity: "ada".into(), key: Some(key.into()) }
}

fn described(world: &mut World) -> Result<ScheduleDescription, CallError> {
    match world.ask(home(), DescribeSchedule { workflow: place() })? {
        AnyAnswer::Schedule(description) => Ok(*description),
        other => panic!("not a schedule: {other:?}"),
    }
}

/// All workflows that the schedule started and how they stand, by the last two digits of their minute.
fn jobs(world: &World) -> Vec<(String, RunStatus)> {
    let rows = world.tables.runs(&RunFilter::default(), 100);
    let jobs = rows.into_iter().filter(|row| row.workflow.as_str().starts_with("job-"));
    let mut jobs: Vec<_> =
        jobs.map(|row| (row.workflow.as_str()[18..20].to_owned(), row.status)).collect();
    jobs.sort();
    jobs
}

fn numbers(world: &World) -> Vec<String> {
    jobs(world).into_iter().map(|(minute, _)| minute).collect()
}

/// The worker ends the newest run that is offered.
fn finish(world: &mut World, how: Ask) {
    let token = world.take_task();
    world.complete(token, vec![how]);
}

#[test]
fn each_time_starts_a_run_and_an_open_one_makes_it_skip() {
    let mut world = created(definition(Overlap::Skip));
    world.pass(MINUTE);
    assert_eq!(numbers(&world), ["01"]);
    world.pass(MINUTE);
    assert_eq!(numbers(&world), ["01"], "the first is still open");
    finish(&mut world, Ask::CompleteRun(Vec::new()));
    world.pass(MINUTE);
    assert_eq!(
        jobs(&world),
        [("01".into(), RunStatus::Completed), ("03".into(), RunStatus::Running)]
    );
    let state = described(&mut world).unwrap().state;
    assert_eq!((state.starts, state.skipped), (2, 1));
    assert_eq!(state.recent[0].outcome, Some(ScheduledOutcome::Completed));
    assert_eq!(state.running.len(), 1);
}

#[test]
fn others_are_terminated_before_the_next_starts() {
    let mut world = created(definition(Overlap::TerminateOther));
    world.pass(MINUTE);
    world.pass(MINUTE);
    assert_eq!(
        jobs(&world),
        [("01".into(), RunStatus::Terminated), ("02".into(), RunStatus::Running)]
    );
}

#[test]
fn others_are_asked_to_cancel_and_the_next_waits_for_it() {
    let mut world = created(definition(Overlap::CancelOther));
    world.pass(MINUTE);
    world.pass(MINUTE);
    assert_eq!(numbers(&world), ["01"]);
    finish(&mut world, Ask::CancelRun(Vec::new()));
    assert_eq!(
        jobs(&world),
        [("01".into(), RunStatus::Cancelled), ("02".into(), RunStatus::Running)]
    );
}

#[test]
fn a_failure_pauses_it_until_it_is_unpaused() {
    let schedule = Schedule { pause_on_failure: true, ..definition(Overlap::Skip) };
    let mut world = created(schedule);
    world.pass(MINUTE);
    let failure = Failure { message: "no paper".into(), ..Failure::default() };
    finish(&mut world, Ask::FailRun(failure));
    world.pass(5 * MINUTE);
    assert_eq!(numbers(&world), ["01"]);
    let state = described(&mut world).unwrap().state;
    assert!(state.paused && state.note.contains("no paper"), "{}", state.note);
    change(&mut world, ScheduleChange::Unpaused { note: "refilled".into() }, None).unwrap();
    assert_eq!(numbers(&world), ["01"], "the pause is not made up for");
    world.pass(MINUTE);
    assert_eq!(numbers(&world), ["01", "07"]);
}

#[test]
fn a_trigger_and_a_backfill_start_at_once_and_once_per_key() {
    let mut world = created(definition(Overlap::AllowAll));
    change(&mut world, ScheduleChange::Paused { note: "holiday".into() }, None).unwrap();
    world.pass(10 * MINUTE);
    let trigger = ScheduleChange::Triggered { overlap: None };
    for repeat in [false, true] {
        let done = change(&mut world, trigger.clone(), Some("now")).unwrap();
        assert!(matches!(done, AnyAnswer::Done(Done { repeat: told, .. }) if told == repeat));
    }
    assert_eq!(numbers(&world), ["10"]);
    let at = |minute: u64| Timestamp::from_unix_millis(1_800_000_000_000 + minute * 60_000);
    let backfill = ScheduleChange::Backfilled { from: at(2), to: at(4), overlap: None };
    change(&mut world, backfill, Some("then")).unwrap();
    assert_eq!(numbers(&world), ["02", "03", "04", "10"]);
    let other = change(&mut world, trigger, Some("then"));
    assert!(matches!(other, Err(CallError::Refused(Refusal::KeyReused(_)))), "{other:?}");
}

#[test]
fn downtime_is_made_up_for_within_the_window() {
    let catch_up = Some(2 * MINUTE + MINUTE / 2);
    let mut world = created(Schedule { catch_up, ..definition(Overlap::AllowAll) });
    world.crash();
    world.now = world.now.saturating_add(6 * MINUTE);
    world.send(home(), Message::Tick);
    assert_eq!(numbers(&world), ["04", "05", "06"]);
    assert_eq!(described(&mut world).unwrap().state.missed, 3);
}

#[test]
fn it_can_be_deleted_and_created_again_and_what_it_started_goes_on() {
    let mut world = created(definition(Overlap::Skip));
    world.pass(MINUTE);
    let again = world.ask(home(), creation(definition(Overlap::Skip)));
    assert!(matches!(again, Ok(AnyAnswer::Done(Done { repeat: true, .. }))), "{again:?}");
    let other = CreateSchedule { key: None, ..creation(definition(Overlap::Skip)) };
    let exists = world.ask(home(), other.clone());
    assert!(matches!(exists, Err(CallError::AlreadyExists { .. })), "{exists:?}");
    for repeat in [false, true] {
        let done = world.ask(home(), deletion("delete")).unwrap();
        assert!(matches!(done, AnyAnswer::Done(Done { repeat: told, .. }) if told == repeat));
    }
    assert_eq!(described(&mut world), Err(CallError::NotFound));
    world.pass(5 * MINUTE);
    assert_eq!(jobs(&world), [("01".into(), RunStatus::Running)]);
    let trigger = change(&mut world, ScheduleChange::Triggered { overlap: None }, None);
    assert_eq!(trigger.map(drop), Err(CallError::NotFound));
    world.ask(home(), other).expect("the id is free");
    world.pass(MINUTE);
    assert_eq!(numbers(&world), ["01", "07"]);
    // The end of a run of the first schedule is not taken for one of the second.
    let state = described(&mut world).unwrap().state;
    world.offers.retain(|offer| offer.run != state.running[0].run);
    finish(&mut world, Ask::CompleteRun(Vec::new()));
    assert_eq!(described(&mut world).unwrap().state.running.len(), 1);
}

#[test]
fn a_repeated_deletion_spares_a_schedule_that_was_created_since() {
    let mut world = created(definition(Overlap::Skip));
    world.ask(home(), deletion("delete")).expect("it is deleted");
    let next = CreateSchedule { key: None, ..creation(definition(Overlap::Skip)) };
    world.ask(home(), next).expect("the id is free");
    for _ in 0..2 {
        let late = world.ask(home(), deletion("delete")).unwrap();
        assert!(matches!(late, AnyAnswer::Done(Done { repeat: true, .. })), "{late:?}");
        assert!(described(&mut world).is_ok(), "the new schedule goes on");
        world.crash();
    }
    world.ask(home(), deletion("another")).expect("it is deleted");
    assert_eq!(described(&mut world), Err(CallError::NotFound));
}

#[test]
fn only_the_operations_of_schedules_change_one() {
    let mut world = created(definition(Overlap::Skip));
    let (key, details) = (None, Vec::new());
    let target = abide_core::operation::RunTarget { workflow: place(), run: None };
    let (reason, identity) = (String::new(), String::new());
    let ended = world.ask(home(), Terminate { target, reason, identity, details, key });
    let Err(CallError::Invalid(InvalidField { field, problem })) = ended else {
        panic!("not refused: {ended:?}");
    };
    assert_eq!(field, "workflow id");
    assert!(problem.contains("the operations of schedules"), "{problem}");
    let mut start = world.start_call("x");
    start.workflow = key_of("default".into(), "other");
    let started = world.ask(start.workflow.slot().shard(), start);
    assert!(matches!(started, Err(CallError::Invalid(_))), "{started:?}");
    // A workflow of the same id is no schedule.
    world.start("nightly");
    assert!(described(&mut world).is_ok());
}

#[test]
fn what_is_out_of_bounds_is_refused_and_changes_nothing() {
    let mut world = World::new();
    let refused =
        |world: &mut World, schedule: Schedule| match world.ask(home(), creation(schedule)) {
            Err(CallError::Invalid(InvalidField { field, problem })) => {
                assert_eq!(described(world), Err(CallError::NotFound));
                format!("{field} {problem}")
            }
            other => panic!("not refused: {other:?}"),
        };
    let of = || definition(Overlap::Skip);
    let times = |spec: Spec| Schedule { spec, ..definition(Overlap::Skip) };
    let cron = |text: &str| times(Spec { cron: vec![text.into()], ..Spec::default() });
    assert_eq!(
        refused(&mut world, cron("0 25 * * *")),
        "cron \"0 25 * * *\" is not a cron expression: hour 25 is not in 0 to 23"
    );
    let zone = times(Spec { time_zone: "Mars".into(), ..of().spec });
    assert!(refused(&mut world, zone).starts_with("time zone \"Mars\" is no time zone; use"));
    let past = times(Spec { end_at: Some(Timestamp::EPOCH), ..of().spec });
    assert!(refused(&mut world, past).starts_with("schedule matches no time from now on"));
    let many = times(Spec { cron: vec!["@daily".into(); 21], ..Spec::default() });
    assert_eq!(refused(&mut world, many), "cron is given 21 times, the limit is 20");
    let late = Schedule { catch_up: Some(Duration::from_secs(1)), ..of() };
    assert!(refused(&mut world, late).starts_with("catch-up window is 1s, not in 10s to"));
    let none = Schedule { remaining: Some(0), ..of() };
    assert_eq!(refused(&mut world, none), "remaining is 0; leave it out for any number");
    let untyped = Schedule { run: RunSpec::default(), ..of() };
    assert!(refused(&mut world, untyped).starts_with("workflow type"));

    world.ask(home(), creation(of())).expect("it is created");
    let (from, to) = (Timestamp::EPOCH, world.now);
    let old = change(&mut world, ScheduleChange::Backfilled { from, to, overlap: None }, None);
    let problem = old.unwrap_err().to_string();
    assert!(problem.contains("the limit is 316224000s; divide it"), "{problem}");
    let from = to.saturating_sub(1001 * MINUTE);
    let long = change(&mut world, ScheduleChange::Backfilled { from, to, overlap: None }, None);
    let problem = long.unwrap_err().to_string();
    assert!(problem.contains("times of the backfill"), "{problem}");
    let to = world.now.saturating_add(MINUTE);
    let future = change(&mut world, ScheduleChange::Backfilled { from, to, overlap: None }, None);
    assert!(future.unwrap_err().to_string().contains("in the future"));
    let (workflow, identity) = (place(), String::new());
    let paused = ScheduleChange::Paused { note: String::new() };
    let stale = ChangeSchedule { workflow, change: paused, revision: Some(7), identity, key: None };
    let stale = world.ask(home(), stale).map(drop);
    assert_eq!(stale, Err(CallError::Refused(Refusal::ScheduleRevised { revision: 1 })));
    assert_eq!(described(&mut world).unwrap().state.revision, 1);
}

/// Three times, each of which starts a run that completes, with a crash instead of each output.
#[test]
fn each_time_starts_once_whatever_crashes() {
    for rows in [500, 3] {
        let mut whole = World::with_limits(bounded(rows));
        let end = tell(&mut whole);
        let expected = ["01", "02", "03"].map(|minute| (minute.into(), RunStatus::Completed));
        assert_eq!(end, expected);
        for crash in [Crash::All, Crash::Shard] {
            for number in 1..=whole.outputs {
                let mut world = World::with_limits(bounded(rows));
                world.fuse = Some((number, crash));
                let told = tell(&mut world);
                assert_eq!(told, end, "{crash:?} crashes instead of output {number}, {rows} rows");
            }
        }
    }
}

fn bounded(rows: u64) -> Limits {
    Limits { schedules: ScheduleBounds { rows, ..ScheduleBounds::default() }, ..Limits::default() }
}

fn tell(world: &mut World) -> Vec<(String, RunStatus)> {
    let schedule = Schedule { remaining: Some(3), ..definition(Overlap::BufferAll) };
    for _ in 0..400 {
        // The client repeats its call, and other shards may have something to do.
        world.call(home(), creation(schedule.clone()));
        world.send(home(), Message::Tick);
        for minute in 1..=3 {
            let job = format!("job-2027-01-15T08:{minute:02}:00Z");
            world.send(shard_of(&job), Message::Tick);
        }
        let done = jobs(world);
        if done.len() == 3 && done.iter().all(|(_, status)| !status.is_open()) {
            // A crash may lose the answer.
            let ticket = world.call(home(), DescribeSchedule { workflow: place() });
            if let Some(Ok(AnyAnswer::Schedule(described))) = world.replies.remove(&ticket)
                && described.state.running.is_empty()
            {
                return done;
            }
        }
        match world.offers.pop() {
            Some(offer) => {
                let shard = offer.shard;
                world.send(shard, Message::Matched(offer, worker("session")));
                if let Some(Dispatch::Workflow { token, .. }) = world.dispatches.pop() {
                    complete(world, token);
                }
            }
            None => world.pass(Limits::default().effect_timeout),
        }
    }
    panic!("the story has no end: {:?}", jobs(world));
}

fn complete(world: &mut World, token: TaskToken) {
    let shard = token.workflow.slot().shard();
    let commands = vec![Command::from(Ask::CompleteRun(Vec::new()))];
    let completion = TaskCompletion { commands, ..TaskCompletion::default() };
    world.say(shard, Report::CompleteTask(token, Box::new(completion)));
}

#[test]
fn a_long_log_is_continued_in_another_run() {
    let mut world = World::with_limits(bounded(4));
    world.ask(home(), creation(definition(Overlap::AllowAll))).expect("it is created");
    let first = described(&mut world).unwrap().run;
    for _ in 0..10 {
        world.pass(MINUTE);
    }
    let described = described(&mut world).unwrap();
    assert_ne!(described.run, first);
    assert_eq!((described.state.starts, numbers(&world).len()), (10, 10));
    // A run that an earlier run of the schedule started tells the current one.
    world.offers.truncate(1);
    finish(&mut world, Ask::CompleteRun(Vec::new()));
    assert_eq!(self::described(&mut world).unwrap().state.running.len(), 9);
    let facts = world.facts("abide.schedule:nightly", first);
    assert!(matches!(facts.last(), Some(Fact::RunContinuedAsNew(_))));
    let key = world.ask(home(), creation(definition(Overlap::AllowAll)));
    assert!(matches!(key, Ok(AnyAnswer::Done(Done { repeat: true, .. }))), "{key:?}");
    assert!(world.ask(home(), abide_core::operation::Describe { target: target("x") }).is_err());
}
