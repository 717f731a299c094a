//! Golden histories: one for each row of the table of waits, as bytes of the log and as a listing for
//! people. A file is a promise to existing runs: it never changes, and programs
//! replay it at every cut. `ABIDE_WRITE_GOLDEN=1` writes what is missing.

use std::{fmt::Write, fs, path::PathBuf};

use abide_core::{
    codec::{self, Row},
    event::{Event, Fact, Origin},
    note::{Note, Record},
};
use abide_program::Program;
use bytes::Bytes;

use crate::{scenarios, worker, world::World};

#[test]
fn histories_are_written_as_recorded() {
    for scenario in scenarios::all() {
        let (world, worker) = scenario.play();
        worker.check(&world);
        let path = file(scenario.name);
        if !path.exists() && std::env::var("ABIDE_WRITE_GOLDEN").is_ok_and(|value| value == "1") {
            fs::write(&path, print(&world.log)).unwrap();
        }
        let recorded = fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(print(&world.log), recorded, "{} is not what is written now", path.display());
    }
}

#[test]
fn recorded_histories_replay_at_every_cut() {
    for (name, program) in programs() {
        let rows = parse(&fs::read_to_string(file(name)).unwrap());
        let events: Vec<_> = rows.iter().flat_map(events).collect();
        worker::check_cuts(&program, &events);
    }
}

/// A file without scenario would no longer be replayed.
#[test]
fn every_recorded_history_has_its_scenario() {
    let names: Vec<_> = programs().into_iter().map(|(name, _)| name).collect();
    for entry in fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        assert!(names.contains(&name), "{} has no scenario", path.display());
    }
}

/// What a file says is what its bytes say.
#[test]
fn a_file_is_read_as_it_was_written() {
    for scenario in scenarios::all() {
        let (World { log, .. }, _) = scenario.play();
        assert_eq!(parse(&print(&log)), log);
    }
}

/// The programs of all recorded histories.
fn programs() -> Vec<(&'static str, Program)> {
    let written = scenarios::all().into_iter().map(|scenario| (scenario.name, scenario.program));
    written.chain(scenarios::older()).collect()
}

fn folder() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "golden", "histories"].iter().collect()
}

fn file(name: &str) -> PathBuf {
    folder().join(format!("{name}.txt"))
}

fn events(row: &Row) -> Vec<Event> {
    codec::decode_events(row.events.clone()).unwrap()
}

/// For each row its events and its notes in hexadecimal, a line each; an empty line; the listing.
fn print(log: &[Row]) -> String {
    let mut text = String::new();
    for row in log {
        writeln!(text, "events {}\nnotes {}", hex(&row.events), hex(&row.notes)).unwrap();
    }
    text.push('\n');
    for (row, number) in log.iter().zip(1..) {
        writeln!(text, "row {number}").unwrap();
        for record in codec::decode_row(row).unwrap() {
            writeln!(text, "  {}", line(&record)).unwrap();
        }
    }
    text
}

fn parse(text: &str) -> Vec<Row> {
    let (rows, _) = text.split_once("\n\n").unwrap();
    let column = |line: &str, name: &str| unhex(line.strip_prefix(name).unwrap().trim());
    let lines: Vec<_> = rows.lines().collect();
    let row =
        |pair: &[&str]| Row { events: column(pair[0], "events"), notes: column(pair[1], "notes") };
    lines.chunks(2).map(row).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(digits: &str) -> Bytes {
    let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
    (0..digits.len()).step_by(2).map(byte).collect::<Vec<_>>().into()
}

fn line(record: &Record) -> String {
    match record {
        Record::Event(Event { number, time, body }) => {
            format!("{number} {time} {}{}", body.fact.name(), about(&body.fact))
        }
        Record::Note(note) => format!("note {}", about_note(note)),
    }
}

/// What a reader wants to know of an event.
fn about(fact: &Fact) -> String {
    match fact {
        Fact::TimerStarted(started) => {
            let spec = &started.spec;
            let origin = spec.origin.as_ref().map(origin).unwrap_or_default();
            format!(" {} fire_at={} origin={origin}", spec.timer, spec.fire_at)
        }
        Fact::TimerRescheduled(moved) => format!(" {} fire_at={}", moved.timer, moved.fire_at),
        Fact::TimerFired(fired) => format!(" {} fire_at={}", fired.timer, fired.fire_at),
        Fact::TimerCancelled(cancelled) => format!(" {}", cancelled.timer),
        Fact::WaitOpened(opened) => {
            format!(" {} {:?}", opened.spec.wait, opened.spec.condition)
        }
        Fact::WaitDescribed(described) => format!(" {}", described.wait),
        Fact::WaitSatisfied(end) => format!(" {} {:?}", end.wait, end.condition),
        Fact::WaitTimedOut(end) => format!(" {} {:?}", end.wait, end.condition),
        Fact::SignalReceived(signal) => format!(" {}", signal.name),
        Fact::ActivityScheduled(scheduled) => {
            format!(" {} execution={}", scheduled.spec.activity, scheduled.execution)
        }
        Fact::ActivityStarted(started) => format!(" attempt={}", started.attempt),
        Fact::ActivityFailed(failed) => {
            format!(" {} {:?}", failed.failure.message, failed.retry_state)
        }
        Fact::ChildInitiated(initiated) => {
            let spec = &initiated.child;
            format!(" {} retry_of={:?}", spec.workflow.workflow, spec.retry_of)
        }
        _ => String::new(),
    }
}

fn origin(origin: &Origin) -> String {
    match origin {
        Origin::CreateTimer => "CreateTimer".into(),
        Origin::ExternalEvent { name } => format!("ExternalEvent({name})"),
        Origin::Condition { key, fingerprint } => format!("Condition({key:?}, {fingerprint:?})"),
        Origin::ActivityRetry { execution } => format!("ActivityRetry({execution})"),
        Origin::ChildWorkflowRetry { workflow } => format!("ChildWorkflowRetry({workflow})"),
    }
}

fn about_note(note: &Note) -> String {
    match note {
        Note::InputBuffered(body) => format!("InputBuffered {}", body.fact.name()),
        Note::BufferReleased { dropped } => format!("BufferReleased dropped={dropped:?}"),
        Note::AttemptStarted(started) => {
            format!("AttemptStarted attempt={} start={}", started.attempt, started.start)
        }
        Note::AttemptEnded(ended) => format!("AttemptEnded next_at={}", ended.next_at),
        Note::AttemptReady { at, .. } => format!("AttemptReady at={at}"),
        Note::AttemptDetached { start, .. } => format!("AttemptDetached start={start}"),
        other => format!("{other:?}"),
    }
}
