//! `abide replay`: histories are replayed by a worker's program. The program here is `abide dev`, whose
//! demo worker has the workflows.

use std::{fs, path::PathBuf, process::Command};

use abide_core::{
    codec,
    event::{Body, Event, Fact},
};
use serde_json::Value;
use tempfile::TempDir;

use crate::harness::{Ran, abide, compare, fresh};

/// Histories in a folder that begins a command line.
struct Histories {
    folder: TempDir,
}

impl Histories {
    /// Two runs of the demo: a greeting that is over, and a reminder that is open.
    fn recorded() -> Self {
        let (engine, data) = fresh();
        engine.run("workflow start --type hello --id h --input \"Ada\" --wait").good();
        let start = "workflow start --type reminder --id r --input \"tea\" --input 3600";
        engine.run(start).good();
        engine.run("workflow query r text").good();
        let this = Self { folder: tempfile::tempdir().expect("a folder") };
        for id in ["h", "r"] {
            let file = this.path(id);
            engine.run(&format!("workflow history {id} --record {}", file.display())).good();
        }
        drop((engine, data));
        this
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(format!("{name}.history"))
    }

    /// The history of `r` as that of a workflow of another type.
    fn forge(&self, name: &str, workflow_type: &str) {
        let bytes = fs::read(self.path("r")).expect("it was recorded");
        let mut events = codec::decode_events(bytes.into()).expect("it is a history");
        let Fact::RunStarted(mut started) = events[0].body.fact.clone() else { panic!() };
        started.spec.workflow_type = workflow_type.into();
        let body = Body::new(Fact::RunStarted(started));
        events[0] = Event { body, ..events[0].clone() };
        fs::write(self.path(name), codec::encode_events(&events)).expect("a file");
    }

    /// `abide replay` of these files, with words before the program.
    fn replay(&self, words: &[&str], names: &[&str]) -> Command {
        let mut command = abide();
        command.current_dir(self.folder.path()).arg("replay").args(words);
        command.args(names.iter().map(|name| format!("{name}.history")));
        command
    }
}

/// Lets the demo worker replay.
fn by_demo(mut command: Command) -> Ran {
    let data = tempfile::tempdir().expect("a folder");
    command.args(["--", env!("CARGO_BIN_EXE_abide"), "dev", "--data"]).arg(data.path());
    command.args(["--address", "127.0.0.1:0", "--http", "127.0.0.1:0"]);
    Ran::of(&mut command)
}

fn by(mut command: Command, program: &[&str]) -> Ran {
    Ran::of(command.arg("--").args(program))
}

#[test]
fn histories_that_fit_are_told() {
    let histories = Histories::recorded();
    let ran = by_demo(histories.replay(&[], &["h", "r"]));
    compare("replay_fits", &ran.good());
    // A folder stands for its histories.
    let mut command = abide();
    command.arg("replay").arg(histories.folder.path()).arg("--json");
    let printed = by_demo(command).good();
    let objects: Vec<Value> =
        printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told = |object: &Value| (object["type"].clone(), object["outcome"].clone());
    let told: Vec<_> = objects.iter().map(told).collect();
    assert_eq!(told, [("hello".into(), "fits".into()), ("reminder".into(), "fits".into())]);
}

#[test]
fn histories_that_do_not_fit_are_shown() {
    let histories = Histories::recorded();
    histories.forge("changed", "approval");
    histories.forge("foreign", "nobody");
    let ran = by_demo(histories.replay(&["--timeout", "5s"], &["h", "changed", "foreign"]));
    assert_eq!(ran.code, Some(1), "{ran:?}");
    compare("replay_mismatch", &ran.stdout);
    compare("replay_mismatch_error", &ran.stderr);
}

#[test]
fn histories_are_fetched_from_an_engine() {
    let (engine, _data) = fresh();
    for id in ["a", "b", "c"] {
        engine.run(&format!("workflow start --type hello --id {id} --input \"Ada\" --wait")).good();
    }
    let fetch = |words: &str| {
        let mut command = abide();
        command.arg("replay").args(words.split_whitespace());
        command.args(["--address", &engine.address]);
        by_demo(command)
    };
    compare("replay_fetched", &fetch("--type hello --limit 2").good());
    let none = fetch("--type hello --status open").bad(1);
    assert!(none.contains("no run matches the filter"), "{none}");
}

#[test]
fn bad_files_are_told_before_a_program_is_started() {
    let histories = Histories::recorded();
    let missing = by(histories.replay(&[], &["missing"]), &["false"]).bad(2);
    assert!(missing.contains("cannot read missing.history"), "{missing}");
    fs::write(histories.path("damaged"), b"no history").unwrap();
    let damaged = by(histories.replay(&[], &["damaged"]), &["false"]).bad(2);
    assert!(damaged.contains("damaged.history is not a history"), "{damaged}");
    fs::write(histories.path("empty"), b"").unwrap();
    let empty = by(histories.replay(&[], &["empty"]), &["false"]).bad(2);
    assert!(
        empty.contains("empty.history is not a full history: it does not begin with RunStarted"),
        "{empty}"
    );
    let both = by(histories.replay(&["--type", "hello"], &["h"]), &["false"]).bad(2);
    assert!(both.contains("cannot be combined"), "{both}");
    Ran::of(&mut histories.replay(&[], &["h"])).bad(2);
}

#[test]
fn a_program_that_does_not_replay_is_told() {
    let histories = Histories::recorded();
    let replay = |words: &[&str]| histories.replay(words, &["h"]);
    let missing = by(replay(&[]), &["./no-such-worker"]).bad(2);
    assert!(missing.contains("cannot start ./no-such-worker"), "{missing}");
    let ends = by(replay(&[]), &["sh", "-c", "echo no database >&2; exit 3"]).bad(1);
    assert!(ends.contains("it ended with exit status: 3"), "{ends}");
    assert!(ends.contains("no database"), "{ends}");
    let never = by(replay(&["--timeout", "100ms"]), &["sleep", "60"]).bad(1);
    assert!(never.contains("it exceeded the time limit of 100ms; it printed nothing"), "{never}");
    let report = "printf '{\"worker\":{\"queue\":\"q\",\"workflow_types\":[]}}\\n' \
                  >> \"$ABIDE_REPLAY/report.jsonl\"";
    let nothing = by(replay(&[]), &["sh", "-c", report]).bad(1);
    assert!(nothing.contains("no worker of sh registers a workflow"), "{nothing}");
    // One that dies of a history does not make its type an unknown one.
    let dies = report.replace("[]", "[\"hello\"]") + "; exit 3";
    let dies = by(replay(&[]), &["sh", "-c", &dies]);
    assert_eq!(dies.code, Some(1), "{dies:?}");
    compare("replay_died", &format!("{}{}", dies.stdout, dies.stderr));
}

#[test]
fn patches_of_open_runs_are_counted() {
    let (engine, _data) = fresh();
    assert_eq!(engine.run("workflow patches").good(), "read 0 of 0 runs\n");
    engine.run("workflow start --type reminder --id r --input \"tea\" --input 3600").good();
    assert_eq!(engine.run("workflow patches").good(), "read 1 of 1 runs\n");
    assert!(engine.json("workflow patches").is_empty());
}
