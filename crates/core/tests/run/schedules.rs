//! Runs that are schedules: what they do in the transition of each input, what they send, and how they
//! go on in another run.

use abide_core::{
    command::Ask,
    effect::{Action, ChildClosed, EffectOutcome, RunOutcome, StartChild},
    event::*,
    failure::Failure,
    ids::RunId,
    limits::Limits,
    operation::CreateSchedule,
    retry::RetryState,
    run::{
        ChangeSchedule, Close, Context, Input, Refusal, Reply, ResumeSource, Status, TimerKey,
        WaitKey, begin_schedule,
    },
    schedule::{Overlap, Schedule, ScheduleBounds, ScheduleChange, ScheduledOutcome, Spec, key_of},
};

use crate::{
    build::*,
    world::{Took, World},
};

/// A schedule that is due every ten seconds.
fn definition(overlap: Overlap) -> Schedule {
    Schedule {
        spec: Spec { cron: vec!["*/10 * * * * *".into()], ..Spec::default() },
        workflow: "job".into(),
        run: spec(),
        overlap: Some(overlap),
        catch_up: None,
        pause_on_failure: false,
        remaining: None,
    }
}

fn create(schedule: Schedule) -> CreateSchedule {
    CreateSchedule {
        workflow: key_of("default".into(), "s"),
        schedule,
        paused: false,
        note: String::new(),
        trigger: false,
        identity: "ada".into(),
        key: Some("create".into()),
    }
}

fn created(create: &CreateSchedule, limits: Limits) -> World {
    let context = Context { now: at(0), next_run: run_id(2), limits: &limits };
    let start = begin_schedule(&context, create, run_id(1), 1);
    World::bounded(limits, at(0), start).0
}

fn world(overlap: Overlap) -> World {
    created(&create(definition(overlap)), Limits::default())
}

/// A schedule with something of everything.
pub(crate) fn busy() -> World {
    let mut world = world(Overlap::BufferAll);
    fire(&mut world, 30);
    change(&mut world, ScheduleChange::Paused { note: "holiday".into() });
    let overlap = Some(Overlap::CancelOther);
    change(&mut world, ScheduleChange::Triggered { overlap });
    world
}

fn fire(world: &mut World, second: u64) -> Took {
    world.go_to(second);
    world.take(Input::Due { timer: TimerKey::Schedule })
}

fn request(change: ScheduleChange, key: Option<&str>, revision: Option<u64>) -> Input {
    let (identity, key) = (String::new(), key.map(Into::into));
    Input::ChangeSchedule(Box::new(ChangeSchedule { change, revision, identity, key }))
}

fn change(world: &mut World, change: ScheduleChange) -> Took {
    world.take(request(change, None, None))
}

fn starts(world: &World) -> Vec<StartChild> {
    let starts = world.effects().into_iter().filter_map(|effect| match &effect.action {
        Action::StartChild(start) => Some((**start).clone()),
        _ => None,
    });
    starts.collect()
}

fn answer(world: &mut World, answer: EffectOutcome) -> Took {
    let number = *world.run.outbox.keys().next().unwrap();
    world.take(Input::EffectAnswered { number, answer })
}

fn closed(number: u64, first_run: RunId, outcome: RunOutcome) -> Input {
    let closed = ChildClosed { initiated: number, first_run, run: first_run, outcome };
    Input::Deliver { source: other(), action: Action::ChildClosed(closed) }
}

/// The open run with this number completes.
fn complete(world: &mut World, number: u64) -> Took {
    let state = world.run.schedule.as_ref().unwrap();
    let run = state.running.iter().find(|run| run.number == number).unwrap().run;
    world.take(closed(number, run, RunOutcome::Completed(Vec::new())))
}

#[test]
fn a_schedule_has_no_task_and_waits_for_its_time() {
    let world = world(Overlap::Skip);
    assert_eq!(world.history(), ["RunStarted"]);
    assert!(!world.run.task_pending());
    assert_eq!(world.run.due(&TimerKey::Schedule), Some(at(10)));
    let wait = world.run.shown_wait(&WaitKey::Schedule).unwrap();
    assert_eq!((wait.name.as_str(), wait.until), ("s", at(10)));
    assert_eq!(wait.details.unwrap().subject, "*/10 * * * * *");
    assert_eq!(world.run.resume_sources(), [ResumeSource::Due, ResumeSource::Input]);
}

#[test]
fn its_time_starts_a_run_in_one_transition() {
    let mut world = world(Overlap::Skip);
    world.go_to(9);
    let early = world.take(Input::Due { timer: TimerKey::Schedule });
    assert_eq!((early.reply, early.names.len()), (Reply::NotDue, 0));
    let took = fire(&mut world, 10);
    assert_eq!(took.names, ["ScheduleStepped"]);
    let start = starts(&world).pop().unwrap();
    assert_eq!(start.child.workflow, workflow("job-2027-01-15T08:00:10Z"));
    assert_eq!(start.child.parent_close, ParentClosePolicy::Abandon);
    assert_eq!((start.parent.run, start.parent.initiated), (world.run.reference(), 1));
    assert!(start.run.is_child_of(world.run.id, 1));
    let memo = |name: &str| start.child.spec.memo[name].data.clone();
    assert_eq!(memo("schedule_id"), "\"s\"");
    assert_eq!(memo("scheduled_at"), "\"2027-01-15T08:00:10Z\"");
    // The hint that brought it here is over; the next time is due.
    let again = world.take(Input::Due { timer: TimerKey::Schedule });
    assert_eq!(again.reply, Reply::NotDue);
    assert_eq!(world.run.due(&TimerKey::Schedule), Some(at(20)));
}

#[test]
fn the_close_of_a_run_may_come_before_the_answer_to_its_start() {
    let mut world = world(Overlap::BufferAll);
    fire(&mut world, 20);
    let took = complete(&mut world, 1);
    assert_eq!(took.reply, Reply::Delivered(EffectOutcome::Applied));
    assert_eq!(took.names, ["ScheduledRunEnded", "ScheduleStepped"]);
    let numbers: Vec<_> = starts(&world).iter().map(|start| start.parent.initiated).collect();
    assert_eq!(numbers, [1, 2], "the next follows at once");
    let took = answer(&mut world, EffectOutcome::Applied);
    assert_eq!(took.names, ["EffectSettled"]);
    // What is told twice, or of another run, changes nothing.
    let (first, stranger) = (starts(&world)[0].run, run_id(99));
    for (number, run) in [(1, first), (2, stranger)] {
        let took = world.take(closed(number, run, RunOutcome::Completed(Vec::new())));
        assert_eq!(took.names, Vec::<String>::new());
    }
}

#[test]
fn a_start_that_is_refused_is_told_and_the_next_follows() {
    let mut world = world(Overlap::BufferAll);
    fire(&mut world, 20);
    let cause = DeliveryFailure::AlreadyExists;
    let took = answer(&mut world, EffectOutcome::Failed(cause));
    assert_eq!(took.names, ["EffectSettled", "ScheduledRunEnded", "ScheduleStepped"]);
    let state = world.run.schedule.as_ref().unwrap();
    assert_eq!(state.recent[0].outcome, Some(ScheduledOutcome::NotStarted { cause }));
    assert_eq!(starts(&world).pop().unwrap().parent.initiated, 2);
}

#[test]
fn other_runs_are_ended_as_the_policy_says() {
    let mut world = world(Overlap::TerminateOther);
    fire(&mut world, 10);
    answer(&mut world, EffectOutcome::Applied);
    fire(&mut world, 20);
    let effects = world.effects();
    assert!(matches!(
        &effects[0].action,
        Action::Cancel { mode: CancelMode::Terminate, reason } if reason.contains("schedule")
    ));
    assert_eq!(effects[0].target.child, Some(1));
    assert_eq!(effects[0].target.workflow, workflow("job-2027-01-15T08:00:10Z"));
    answer(&mut world, EffectOutcome::Applied);
    let run = world.run.schedule.as_ref().unwrap().running[0].run;
    world.take(closed(1, run, RunOutcome::Terminated { reason: String::new() }));
    assert_eq!(starts(&world)[0].child.workflow, workflow("job-2027-01-15T08:00:20Z"));
}

#[test]
fn a_failure_pauses_it_and_its_message_is_shortened() {
    let mut world = created(
        &create(Schedule { pause_on_failure: true, ..definition(Overlap::Skip) }),
        Limits::default(),
    );
    fire(&mut world, 10);
    let run = starts(&world)[0].run;
    let failure = Failure { message: "ü".repeat(400), ..Failure::default() };
    let retry_state = RetryState::PolicyNotSet;
    world.take(closed(1, run, RunOutcome::Failed { failure, retry_state }));
    let state = world.run.schedule.as_ref().unwrap();
    assert!(state.paused && state.note.len() < 600, "{}", state.note);
    assert_eq!(world.run.due(&TimerKey::Schedule), None);
    assert_eq!(world.run.resume_sources(), [ResumeSource::Input]);
}

#[test]
fn a_change_is_recognised_by_its_key_and_guarded_by_the_revision() {
    let mut world = world(Overlap::Skip);
    let pause = || ScheduleChange::Paused { note: "n".into() };
    let took = world.take(request(pause(), Some("k"), Some(1)));
    assert_eq!(took.names, ["ScheduleStepped", "ScheduleChanged", "ScheduleStepped"]);
    assert_eq!(world.take(request(pause(), Some("k"), Some(1))).reply, Reply::Repeat);
    let other = ScheduleChange::Unpaused { note: String::new() };
    let reused = world.refused(request(other, Some("k"), None));
    assert_eq!(reused, Refusal::KeyReused("k".into()));
    let revised = world.refused(request(pause(), None, Some(1)));
    assert_eq!(revised, Refusal::ScheduleRevised { revision: 2 });
    // The request that created it is known too.
    let mut asked = create(definition(Overlap::Skip));
    assert_eq!(world.run.created_by(&asked), Ok(true));
    asked.schedule.workflow = "other".into();
    assert_eq!(world.run.created_by(&asked), Err(Refusal::KeyReused("create".into())));
    asked.key = Some("another".into());
    assert_eq!(world.run.created_by(&asked), Ok(false));
}

#[test]
fn triggers_and_backfills_are_bounded() {
    let bounds =
        ScheduleBounds { waiting: 2, backfills: 1, backfill_times: 3, ..Default::default() };
    let limits = Limits { schedules: bounds, ..Limits::default() };
    let mut world = created(&create(definition(Overlap::BufferAll)), limits);
    let trigger = || ScheduleChange::Triggered { overlap: None };
    for _ in 0..3 {
        change(&mut world, trigger());
    }
    let refused = world.refused(request(trigger(), None, None)).to_string();
    assert_eq!(refused, "waiting starts of the schedule would exceed the limit of 2");
    let backfill = |from, to| {
        let (from, to) = (at(from), at(to));
        ScheduleChange::Backfilled { from, to, overlap: Some(Overlap::BufferAll) }
    };
    let refused = world.refused(request(backfill(10, 40), None, None)).to_string();
    assert!(refused.ends_with("would exceed the limit of 3"), "{refused}");
    change(&mut world, backfill(10, 30));
    let refused = world.refused(request(backfill(10, 10), None, None)).to_string();
    assert_eq!(refused, "unfinished backfills of the schedule would exceed the limit of 1");
}

#[test]
fn it_goes_on_in_a_new_run_once_nothing_is_in_flight() {
    let limits = Limits {
        schedules: ScheduleBounds { rows: 4, ..ScheduleBounds::default() },
        ..Limits::default()
    };
    let mut world = created(&create(definition(Overlap::AllowAll)), limits);
    for second in [10, 20, 30] {
        fire(&mut world, second);
    }
    // The log is long enough, but starts are in flight.
    fire(&mut world, 40);
    assert_eq!(world.run.due(&TimerKey::Schedule), Some(at(50)));
    for _ in 0..4 {
        answer(&mut world, EffectOutcome::Applied);
    }
    assert_eq!(world.run.due(&TimerKey::Schedule), Some(at(40)), "it goes on at once");
    let took = fire(&mut world, 40);
    assert_eq!(took.names, ["RunContinuedAsNew"]);
    assert!(matches!(world.run.status, Status::Closed { how: Close::ContinuedAsNew, .. }));
    let mut next = world.successor(&took);
    assert_eq!(next.history(), ["RunStarted"]);
    let asked = create(definition(Overlap::AllowAll));
    assert_eq!(next.run.created_by(&asked), Ok(true), "keys are carried over");
    // Its first act is to plan; nothing is started twice.
    fire(&mut next, 41);
    assert_eq!((next.effects().len(), next.run.due(&TimerKey::Schedule)), (0, Some(at(50))));
    // It still knows what the earlier run started, and numbers on.
    complete(&mut next, 2);
    fire(&mut next, 50);
    assert_eq!(starts(&next)[0].parent.initiated, 5);
    assert!(starts(&next)[0].run.is_child_of(next.run.id, 5));
}

#[test]
fn an_ended_schedule_closes_after_a_while() {
    let mut world = created(
        &create(Schedule { remaining: Some(1), ..definition(Overlap::Skip) }),
        Limits::default(),
    );
    fire(&mut world, 10);
    answer(&mut world, EffectOutcome::Applied);
    complete(&mut world, 1);
    let week = 7 * 24 * 3600;
    assert_eq!(world.run.due(&TimerKey::Schedule), Some(at(10 + week)));
    let took = fire(&mut world, 10 + week);
    assert_eq!(took.names, ["RunCompleted"]);
}

#[test]
fn a_schedule_takes_nothing_that_workflows_take() {
    let mut world = world(Overlap::Skip);
    let inputs = [
        world.signal_input("s", None),
        Input::RequestCancel(RunCancelRequested::default()),
        Input::Pause(RunPaused::default()),
    ];
    for input in inputs {
        assert_eq!(world.refused(input), Refusal::IsSchedule);
    }
    let action = Action::Cancel { mode: CancelMode::Terminate, reason: String::new() };
    let took = world.take(Input::Deliver { source: other(), action });
    let refused = EffectOutcome::Failed(DeliveryFailure::Refused);
    assert_eq!((took.reply, took.names.len()), (Reply::Delivered(refused), 0));
    assert_eq!(world.crash().names, Vec::<String>::new());
    let deleted = Input::Terminate(RunTerminated::default());
    assert_eq!(world.take(deleted).names, ["RunTerminated"]);
}

#[test]
fn every_row_of_a_busy_schedule_folds() {
    busy().check_every_snapshot();
}

#[test]
fn workflow_code_cannot_name_a_schedule() {
    let mut world = World::new();
    world.start_task();
    let child = Ask::StartChild(Box::new(ChildSpec {
        workflow: key_of("default".into(), "s"),
        spec: spec(),
        parent_close: ParentClosePolicy::Abandon,
        reuse: ReusePolicy::Allow,
        retry_of: None,
        attempt: 0,
        recorded_retry: None,
    }));
    let took = world.complete([child]);
    let Reply::TaskRefused { message, .. } = took.reply else { panic!("{:?}", took.reply) };
    assert!(message.contains("begins with abide.schedule:"), "{message}");
}
