//! Resets, retries and deletions on the command line.

use serde_json::json;

use crate::harness::{Engine, fresh};

#[test]
fn a_run_that_ended_goes_on_from_its_last_step() {
    let (engine, _folder) = fresh();
    engine.run("workflow start --type reminder --id r --input \"tea\" --input 3600").good();
    // A query waits for the first task.
    engine.run("workflow query r text").good();
    engine.run("workflow update r set_text --update-id u1 --input \"coffee\"").good();
    engine.run("workflow terminate r").good();
    let old = engine.json("workflow describe r")[0]["run"].clone();

    let reset = engine.json("workflow retry r --key once");
    let new = reset[0]["run"].clone();
    assert_eq!(reset, [json!({ "done": "reset", "workflow": "r", "run": new })]);
    assert_ne!(old, new);
    let shown = &engine.json("workflow describe r")[0];
    assert_eq!((&shown["run"], &shown["reset_from"]), (&new, &old));
    assert_eq!(engine.json("workflow query r text")[0]["answer"], "coffee");

    let first = engine.json("workflow reset r --to first --updates drop")[0]["run"].clone();
    assert_eq!(engine.json("workflow query r text")[0]["answer"], "tea");
    assert_eq!(engine.json("workflow describe r")[0]["reset_from"], new);
    assert_ne!(first, new);
}

#[test]
fn a_task_that_does_not_exist_is_refused_with_a_hint() {
    let (engine, _folder) = fresh();
    engine.run("workflow start --type hello --id h --input \"Ada\" --wait").good();
    let refused = engine.run("workflow reset h --to event:1").bad(1);
    assert!(refused.contains("event 1 belongs to no task that was started"), "{refused}");
    assert!(refused.contains("`abide workflow history h` shows the tasks of the run"), "{refused}");
    let refused = engine.run("workflow retry h").bad(1);
    assert!(refused.contains("no step of the run failed"), "{refused}");
    let refused = engine.run("workflow reset h --to second").bad(2);
    assert!(refused.contains("expected first, last, failure, event:NUMBER or build:ID"));
    assert_eq!(engine.json("workflow list").len(), 1, "nothing has changed");
}

#[test]
fn a_deleted_run_is_gone_after_a_crash_too() {
    let (engine, folder) = fresh();
    engine.run("workflow start --type reminder --id r --input \"tea\" --input 3600").good();
    let refused = engine.run("workflow delete r").bad(1);
    assert!(refused.contains("add --terminate"), "{refused}");
    assert_eq!(
        engine.json("workflow delete r --terminate"),
        [json!({ "done": "deleted", "workflow": "r" })]
    );
    engine.run("workflow describe r").bad(1);
    engine.kill();
    let engine = Engine::dev(folder.path());
    assert!(engine.json("workflow list").is_empty());
    engine.run("workflow history r").bad(1);
    engine.run("workflow start --type hello --id r --input \"Ada\" --wait").good();
}

/// Starts this many reminders.
fn reminders(engine: &Engine, count: usize) {
    for number in 1..=count {
        let start = format!("workflow start --type reminder --id r{number} --input \"x\"");
        engine.run(&format!("{start} --input 3600")).good();
    }
}

fn batch(engine: &Engine, words: &str, query: &str) -> serde_json::Value {
    let printed = engine.run_with(words, &["--query", query, "--json"]).good();
    serde_json::from_str(&printed).expect("JSON")
}

const RUNNING: &str = "WorkflowType = 'reminder' AND ExecutionStatus = 'Running'";

#[test]
fn a_batch_goes_on_after_the_engine_was_killed() {
    let (engine, folder) = fresh();
    reminders(&engine, 9);
    let seen = batch(&engine, "batch start --terminate --dry-run", RUNNING);
    assert_eq!((&seen["count"], seen["sample"].as_array().unwrap().len()), (&json!(9), 5));
    let started = batch(&engine, "batch start --id b1 --terminate --rate 3", RUNNING);
    assert_eq!((&started["total"], &started["status"]), (&json!(9), &json!("running")));
    engine.kill();
    let engine = Engine::dev(folder.path());
    let again = batch(&engine, "batch start --id b1 --terminate --rate 3", RUNNING);
    assert_eq!(again["total"], 9, "a repeat is the same batch");
    let ended = &engine.json("batch show b1 --wait")[0];
    assert_eq!((&ended["status"], &ended["failed"]), (&json!("completed"), &json!(0)), "{ended}");
    // Runs that were terminated just before the kill are not found again, and not counted.
    assert!((6..=9).contains(&ended["done"].as_u64().unwrap()), "{ended}");
    assert_eq!(engine.json("workflow count --status terminated"), [json!({ "count": 9 })]);
}

#[test]
fn a_batch_is_stopped_and_reports_what_refused_it() {
    let (engine, _folder) = fresh();
    reminders(&engine, 4);
    batch(&engine, "batch start --id slow --cancel --rate 1", RUNNING);
    let stopped = &engine.json("batch stop slow")[0];
    assert_eq!(stopped["status"], "stopped");
    assert!(stopped["done"].as_u64().unwrap() < 4, "{stopped}");
    assert_eq!(engine.json("batch show slow --wait")[0]["status"], "stopped");

    engine.run("workflow start --type hello --id h --input \"Ada\" --wait").good();
    let all = "WorkflowType = 'reminder' OR WorkflowType = 'hello'";
    batch(&engine, "batch start --id all --delete", &format!("({all}) AND WorkflowId != 'r9'"));
    let ended = &engine.json("batch show all --wait")[0];
    let (done, failed) = (ended["done"].as_u64().unwrap(), ended["failed"].as_u64().unwrap());
    assert_eq!(done + failed, 5, "{ended}");
    assert!(failed > 0 && ended["failures"][0]["reason"].as_str().unwrap().contains("open"));
    engine.run("workflow describe h").bad(1);
    assert_eq!(engine.json("batch list").len(), 2);

    let refused = engine.run_with("batch start --delete", &["--query", "Nope = 1"]).bad(2);
    assert!(refused.contains("Nope"), "{refused}");
    let refused = engine.run_with("batch start --id all --cancel", &["--query", RUNNING]).bad(2);
    assert!(refused.contains("another batch"), "{refused}");
    engine.run("batch show none").bad(1);
    engine.run("batch stop none").bad(1);
}
