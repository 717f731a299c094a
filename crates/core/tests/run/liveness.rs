//! Every open run has one liveness state and at least one resume source.

use abide_core::{
    command::Ask,
    effect::EffectOutcome,
    event::Origin,
    run::{Liveness, ResumeSource, StartRun},
    time::Timestamp,
};

use crate::{
    build::*,
    world::{World, start_run},
};

fn check(world: &World, liveness: Liveness, sources: &[ResumeSource]) {
    assert_eq!(world.run.liveness(), liveness);
    assert_eq!(world.run.resume_sources(), sources);
}

#[test]
fn a_run_that_waits_for_its_first_task() {
    let start = StartRun { first_task_at: Some(at(60)), ..start_run() };
    check(&World::begin(start), Liveness::StartDelayed, &[ResumeSource::Due]);
}

#[test]
fn a_run_whose_code_waits_for_a_worker() {
    check(&World::new(), Liveness::TaskWaiting, &[ResumeSource::Task]);
}

#[test]
fn a_run_whose_code_runs() {
    let mut world = World::new();
    world.start_task();
    check(&world, Liveness::TaskRunning, &[ResumeSource::Task]);
}

#[test]
fn a_run_whose_task_failed() {
    let mut world = World::new();
    world.start_task();
    world.fail_task();
    check(&world, Liveness::TaskWaiting, &[ResumeSource::Task]);
}

#[test]
fn a_run_whose_code_does_not_fit() {
    let mut world = World::new();
    world.start_task();
    world.block_task();
    let sources = [ResumeSource::Task, ResumeSource::Operator];
    check(&world, Liveness::ReplayBlocked, &sources);
}

#[test]
fn a_run_that_was_asked_for_an_update() {
    let mut world = World::after([]);
    world.update("u");
    check(&world, Liveness::TaskWaiting, &[ResumeSource::Input]);
}

/// A ready one has its task; a waiting one its due time.
#[test]
fn a_run_that_waits_for_an_activity() {
    let mut spec = activity_spec("a");
    spec.retry = Some(policy());
    let mut world = World::after([Ask::ScheduleActivity(spec)]);
    check(&world, Liveness::ActivityPending, &[ResumeSource::Activity]);
    world.start_activity("a");
    let sources = [ResumeSource::Due, ResumeSource::Activity];
    check(&world, Liveness::ActivityPending, &sources);
    world.fail_activity("a");
    check(&world, Liveness::ActivityPending, &[ResumeSource::Due]);
}

#[test]
fn a_run_that_waits_for_other_workflows() {
    let mut world = World::after([child("c")]);
    check(&world, Liveness::ChildPending, &[ResumeSource::Child]);
    world.answer(1, EffectOutcome::Applied);
    world.task([]);
    check(&world, Liveness::ChildPending, &[ResumeSource::Child]);
    let world = World::after([signal_external("go")]);
    check(&world, Liveness::ChildPending, &[ResumeSource::Child]);
}

#[test]
fn a_run_that_sleeps() {
    check(&World::after([timer("t", 60)]), Liveness::TimerPending, &[ResumeSource::Due]);
}

#[test]
fn a_run_that_waits_for_a_signal() {
    let world = World::after([endless("t", "approve")]);
    check(&world, Liveness::InputPending, &[ResumeSource::Input]);
    let origin = Some(Origin::ExternalEvent { name: "approve".into() });
    let world = World::after([Ask::StartTimer(timer_spec("t", at(60), origin))]);
    let sources = [ResumeSource::Due, ResumeSource::Input];
    check(&world, Liveness::TimerPending, &sources);
}

#[test]
fn a_run_that_waits_for_a_condition() {
    let world = World::after([open_wait("w", None)]);
    check(&world, Liveness::InputPending, &[ResumeSource::Input]);
    let world = World::after([open_wait("w", Some("t")), deadline("t", 60)]);
    let sources = [ResumeSource::Due, ResumeSource::Input];
    check(&world, Liveness::TimerPending, &sources);
}

/// A sleep so long that it never ends is no deadline; a signal or a cancel request still comes through.
#[test]
fn a_run_that_sleeps_for_ever() {
    let spec = timer_spec("t", Timestamp::NEVER, Some(Origin::CreateTimer));
    let world = World::after([Ask::StartTimer(spec)]);
    check(&world, Liveness::InputPending, &[ResumeSource::Input]);
}

#[test]
fn a_run_that_waits_for_nothing_takes_inputs() {
    check(&World::after([]), Liveness::InputPending, &[ResumeSource::Input]);
}

#[test]
fn a_paused_run() {
    let mut world = World::after([timer("t", 60)]);
    world.pause();
    check(&world, Liveness::Paused, &[ResumeSource::Due, ResumeSource::Operator]);
}

#[test]
fn a_closed_run_goes_nowhere() {
    let mut world = World::after([timer("t", 60)]);
    world.terminate();
    check(&world, Liveness::Closed, &[]);
}
