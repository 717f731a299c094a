//! The engine is killed in the middle of things, and goes on.

use serde_json::Value;

use crate::harness::{Engine, Ran, Talking, abide};

#[test]
fn a_sleep_survives_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::dev(folder.path());
    engine.run("workflow start --type reminder --id long --input \"tea\" --input 3600").good();
    engine.run("workflow start --type reminder --id short --input \"cake\" --input 1").good();
    engine.run("workflow query long text").good();
    engine.run("workflow query short text").good();
    let waits = engine.json("waits list");
    engine.kill();

    let engine = Engine::dev(folder.path());
    // The short sleep ended while the engine was down, or ends now.
    assert_eq!(engine.run("workflow result short").good(), "\"Remember: cake\"\n");
    let long: Vec<_> = waits.into_iter().filter(|wait| wait["workflow"] == "long").collect();
    assert_eq!(engine.json("waits list"), long, "the long sleep is as it was");
    assert_eq!(engine.run("workflow query long text").good(), "\"tea\"\n");
    let timer = long[0]["timer"].as_str().unwrap();
    engine.run(&format!("timer reschedule long {timer} --in 1s")).good();
    assert_eq!(engine.run("workflow result long").good(), "\"Remember: tea\"\n");
    let history = engine.json("workflow history long");
    let started = history.iter().filter(|event| event["event"] == "TimerStarted");
    assert_eq!(started.count(), 1, "the sleep was asked for once");
}

#[test]
fn a_follower_outlives_the_engine() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::dev(folder.path());
    engine.run("workflow start --type approval --id a --input \"desk\"").good();
    let mut follow = abide();
    follow.args(["workflow", "history", "a", "--follow", "--json", "--address", &engine.address]);
    let mut follower = Talking::spawn(&mut follow);
    assert!(follower.next().unwrap().contains("RunStarted"), "it follows");

    let place = engine.address.trim_start_matches("http://").to_owned();
    engine.kill();
    let mut again = abide();
    again.args(["dev", "--json", "--address", &place, "--http", "127.0.0.1:0", "--data"]);
    let engine = Engine::spawn(again.arg(folder.path()));
    // A query waits until the code has run, so that there is something to decide.
    engine.run("workflow query a approvals").good();
    engine.run("approvals decide a approve --by Ada").good();
    let events: Vec<Value> =
        follower.by_ref().map(|line| serde_json::from_str(&line).unwrap()).collect();
    follower.end();
    let numbers: Vec<_> = events.iter().filter_map(|event| event["number"].as_u64()).collect();
    assert_eq!(numbers, (2..2 + numbers.len() as u64).collect::<Vec<_>>(), "each event once");
    assert_eq!(events.last().unwrap()["facts"]["result"], "desk was approved by Ada");
}

#[test]
fn told_to_end_it_ends_well() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::dev(folder.path());
    engine.run("workflow start --type reminder --id r --input \"tea\" --input 3600").good();
    assert_eq!(engine.terminate(), Some(0));
    // Nobody holds the folder any more.
    let engine = Engine::dev(folder.path());
    assert_eq!(engine.run("workflow query r text").good(), "\"tea\"\n");
}

#[test]
fn nothing_is_lost_when_server_and_worker_are_killed_again_and_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut torture = abide();
    torture.args(["crash-test", "--kills", "20", "--clients", "16", "--json", "--folder"]);
    let report: Value =
        serde_json::from_str(&Ran::of(torture.arg(folder.path())).good()).expect("one object");
    assert_eq!(report["kills_of_server"], 20);
    assert_eq!(report["kills_of_worker"], 20);
    assert!(report["kills_of_both_at_once"].is_u64() && report["repeated_attempts"].is_u64());
    assert!(report["journeys"].as_u64() >= Some(16), "every client came through: {report}");
    assert!(report["moved_deadlines"].as_u64() > Some(0), "deadlines were moved: {report}");
    // What an earlier test left would be mistaken for losses of this one.
    let again = Ran::of(&mut torture).bad(2);
    assert!(again.contains("earlier crash test"), "{again}");
}
