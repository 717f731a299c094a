//! Resets, retries and deletions on the command line.

use serde_json::json;

use crate::harness::fresh;

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
    let engine = crate::harness::Engine::dev(folder.path());
    assert!(engine.json("workflow list").is_empty());
    engine.run("workflow history r").bad(1);
    engine.run("workflow start --type hello --id r --input \"Ada\" --wait").good();
}
