//! Golden snapshots: the bytes of runs that have something of everything, one file per version. A layout
//! that changes without a new version would be read as another state; here it fails first.
//! `ABIDE_WRITE_GOLDEN=1` writes the file of a new version.

use std::{fs, path::PathBuf};

use abide_core::{
    command::{Ask, ContinueAsNew},
    effect::EffectOutcome,
    event::{
        ActivitySpec, Approval, CancelMode, Guards, Origin, Parent, RunCancelRequested, RunPaused,
        RunSpec, RunTerminated, RunUnpaused, TimerSpec, WaitDetails, WaitSpec,
    },
    run::{Input, Reapply, ResetPoint, Run, SNAPSHOT_VERSION, StartRun},
    time::Timestamp,
};

use crate::{
    build::*,
    world::{World, start_run},
};

#[test]
fn a_changed_layout_has_a_new_version() {
    let path: PathBuf =
        [env!("CARGO_MANIFEST_DIR"), "golden", "snapshots", &format!("{SNAPSHOT_VERSION}.txt")]
            .iter()
            .collect();
    let written: String = samples().iter().map(|(name, run)| line(name, run)).collect();
    if !path.exists() && std::env::var("ABIDE_WRITE_GOLDEN").is_ok_and(|value| value == "1") {
        fs::write(&path, &written).unwrap();
    }
    let recorded = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(written, recorded, "raise SNAPSHOT_VERSION: {} differs", path.display());
}

#[test]
fn a_sample_is_read_as_it_was_written() {
    for (name, run) in samples() {
        let bytes = run.to_snapshot();
        assert_eq!(Run::from_snapshot(&bytes).unwrap().to_snapshot(), bytes, "{name}");
    }
}

fn line(name: &str, run: &Run) -> String {
    let hex: String = run.to_snapshot().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{name} {hex}\n")
}

fn samples() -> Vec<(&'static str, Run)> {
    vec![
        ("pending", pending().run),
        ("buffered", buffered().run),
        ("fired", fired().run),
        ("blocked", blocked().run),
        ("followed", followed().run),
        ("terminated", terminated().run),
        ("reset", reset().run),
        ("schedule", crate::schedules::busy().run),
    ]
}

/// A run that a reset made, with a child that it takes over.
fn reset() -> World {
    let mut world = World::after([child("kept"), timer("t", 60), activity("a")]);
    world.answer(1, EffectOutcome::Applied);
    world.task([]);
    world.reset(ResetPoint::LastTask, Reapply::ALL).unwrap()
}

fn details() -> Option<WaitDetails> {
    Some(WaitDetails {
        subject: "an order".into(),
        actors: vec!["ada".into(), "bob".into()],
        data: map("amount", "7"),
        approval: Some(Approval {
            request: "order".into(),
            update: "decide".into(),
            choices: vec!["yes".into(), "no".into()],
        }),
    })
}

fn timer_of(timer: &str, origin: Origin) -> Ask {
    let guards = Guards { not_after: Some(at(900)), max_extensions: Some(3) };
    let spec = timer_spec(timer, at(600), Some(origin));
    Ask::StartTimer(TimerSpec { details: details(), guards, ..spec })
}

/// A timer whose firing no task has seen.
fn fired() -> World {
    let mut world = World::after([timer_of("t", Origin::CreateTimer)]);
    world.go_to(600);
    world.fire("t");
    world
}

/// Something open of every kind.
fn pending() -> World {
    let spec = RunSpec {
        input: payloads("7"),
        header: map("trace", "t"),
        execution_timeout: Some(seconds(9000)),
        run_timeout: Some(seconds(8000)),
        task_timeout: Some(seconds(7)),
        retry: Some(policy()),
        cron: Some("0 0 * * *".into()),
        ..spec()
    };
    let mut world = World::begin(StartRun {
        spec,
        key: Some("start".into()),
        expires_at: Some(at(9000)),
        parent: Some(Parent { run: other(), initiated: 5, ordinal: 1 }),
        root: Some(other()),
        ..start_run()
    });
    world.update("accepted");
    world.update("completed");
    world.task([
        accept("accepted"),
        accept("completed"),
        complete_update("completed"),
        timer_of("sleep", Origin::CreateTimer),
        timer_of("signal", Origin::ExternalEvent { name: "go".into() }),
        timer_of("activity", Origin::ActivityRetry { execution: "first".into() }),
        timer_of("child", Origin::ChildWorkflowRetry { workflow: "first".into() }),
        endless("endless", "go"),
        Ask::OpenWait(WaitSpec { details: details(), ..wait_spec("wait", Some("deadline")) }),
        deadline("deadline", 500),
        open_wait("open", None),
        activity("ready"),
        activity("started"),
        Ask::ScheduleActivity(ActivitySpec {
            retry: Some(policy()),
            heartbeat: Some(seconds(30)),
            ..activity_spec("backoff")
        }),
        child("child"),
        signal_external("go"),
        cancel_external(CancelMode::Request),
        Ask::UpsertMemo(map("note", "x")),
        Ask::UpsertSearchAttributes(map("customer", "7")),
    ]);
    world.start_activity("started");
    world.heartbeat("started", "half");
    world.start_activity("backoff");
    world.fail_activity("backoff");
    world.take(World::move_input("sleep", at(700), Some("move")));
    world
}

/// Inputs of every keyed kind, some of which wait for the started task to end.
fn buffered() -> World {
    let mut world = pending();
    let signal = world.signal_input("go", Some("signal"));
    world.take(signal);
    world.start_task();
    world.complete_activity("started");
    world.take(World::move_input("sleep", at(800), Some("again")));
    let key = |key: &str| Some(key.into());
    world.take(Input::Pause(RunPaused { key: key("pause"), ..RunPaused::default() }));
    world.take(Input::Unpause(RunUnpaused { key: key("unpause"), ..RunUnpaused::default() }));
    for cancel in ["cancel", "again"] {
        let request = RunCancelRequested { key: key(cancel), ..RunCancelRequested::default() };
        world.take(Input::RequestCancel(request));
    }
    world
}

/// Code does not fit, and the deadline of a wait has passed.
fn blocked() -> World {
    let mut world = World::after([open_wait("wait", Some("deadline")), deadline("deadline", 5)]);
    world.go_to(5);
    world.fire("deadline");
    world.start_task();
    world.block_task();
    world
}

/// A run that went on as another, which took over what was asked.
fn followed() -> World {
    let mut world = World::after([]);
    let signal = world.signal_input("go", Some("signal"));
    world.take(signal);
    world.update("done");
    let next = ContinueAsNew { spec: spec(), signals: Vec::new(), updates: Vec::new() };
    let took =
        world.task([accept("done"), complete_update("done"), Ask::ContinueAsNew(Box::new(next))]);
    world.successor(&took)
}

fn terminated() -> World {
    let mut world = World::after([timer("t", 60), endless("e", "go")]);
    assert!(world.run.timers.values().any(|timer| timer.spec.fire_at == Timestamp::NEVER));
    let key = Some("end".into());
    world.take(Input::Terminate(RunTerminated { key, ..RunTerminated::default() }));
    world
}
