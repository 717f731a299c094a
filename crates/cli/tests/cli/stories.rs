//! What a person does on the first day, command by command.

use serde_json::json;

use crate::harness::{Talking, abide, compare, fresh};

#[test]
fn a_person_is_asked_and_decides() {
    let (engine, _folder) = fresh();
    let start = ["--input", "\"a new desk\""];
    let started = engine.run_with("workflow start --type approval --id order-1", &start).good();
    compare("approval_start", &started);
    // A query waits until the code has run, so that the wait is there.
    engine.run("workflow query order-1 approvals").good();
    compare("approval_waits", &engine.run("waits list").good());
    compare("approval_inbox", &engine.run("approvals list").good());
    compare("approval_describe", &engine.run("workflow describe order-1").good());
    let decide = "approvals decide order-1 approve --by Ada --key once";
    compare("approval_decide", &engine.run(decide).good());
    compare("approval_result", &engine.run("workflow result order-1").good());
    compare("approval_history", &engine.run("workflow history order-1").good());
    compare("approval_described_closed", &engine.run("workflow describe order-1").good());
    compare("approval_list", &engine.run("workflow list").good());
    compare("no_waits", &engine.run("waits list").good());
}

#[test]
fn programs_read_the_same_as_json() {
    let (engine, _folder) = fresh();
    let started = engine.json("workflow start --type hello --id h --input \"Ada\" --wait");
    assert_eq!(started, [json!({ "workflow": "h", "result": "Hello, Ada!" })]);
    let started = engine.json("workflow start --type approval --id a --input \"desk\"");
    assert_eq!(started[0]["workflow"], "a");
    let run = started[0]["run"].clone();
    let asked = engine.json("workflow query a approvals");
    assert_eq!(asked[0]["answer"]["requests"][0]["subject"], "desk", "{asked:?}");
    let name = "approval:request";
    let waits = engine.json(&format!("waits list --kind approval --name {name} --within 25h"));
    assert_eq!(waits.len(), 1);
    for (key, value) in [("workflow", "a"), ("kind", "approval"), ("name", name)] {
        assert_eq!(waits[0][key], value);
    }
    assert_eq!(waits[0]["run"], run);
    assert!(waits[0]["timer"].is_string() && waits[0]["until"].is_string(), "{waits:?}");
    assert!(engine.json("waits list --within 1h").is_empty());
    let tally = engine.json("waits tally --interval 5h --intervals 5 --kind approval --kind timer");
    assert_eq!(tally.len(), 1);
    assert_eq!(
        (&tally[0]["counts"], &tally[0]["whole"], &tally[0]["more"]),
        (&json!({ "approval": 1 }), &json!(true), &json!(false))
    );
    assert!(engine.json("waits tally --interval 25h --intervals 1 --kind timer").is_empty());
    let (standing, types) = (json!({ "completed": 1, "running": 1 }), json!({ "approval": 1 }));
    let counted = engine.json("workflow count --by status");
    assert_eq!(counted, [json!({ "counts": standing, "more": false })]);
    let counted = engine.json("workflow count --by type --status running");
    assert_eq!(counted, [json!({ "counts": types, "more": false })]);
    let described = &engine.json("workflow describe a")[0];
    assert_eq!(described["status"], "running");
    assert_eq!(described["waits"][0]["name"], name);
    let listed = engine.json("workflow list --status running --type approval");
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0]["run"], run);
    assert_eq!(engine.json("workflow count --status completed"), [json!({ "count": 1 })]);
    assert_eq!(engine.json("workflow list --limit 1").len(), 1);
    assert!(engine.json("workflow list --started-before 1h").is_empty());
    let history = engine.json("workflow history h");
    let names: Vec<_> = history.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(names.first(), Some(&"RunStarted"));
    assert_eq!(names.last(), Some(&"RunCompleted"));
    assert_eq!(history[0]["facts"]["spec"]["input"], "Ada");
}

#[test]
fn a_reminder_is_changed_and_comes_early() {
    let (engine, _folder) = fresh();
    engine.run("workflow start --type reminder --id r --input \"tea\" --input 3600").good();
    let update = "workflow update r set_text --update-id u1 --input";
    compare("reminder_update", &engine.run(&format!("{update} \"coffee\"")).good());
    // The same update again has the outcome of the first.
    compare("reminder_update", &engine.run(&format!("{update} \"coffee\"")).good());
    compare("reminder_query", &engine.run("workflow query r text").good());
    let rejected = engine.run("workflow update r set_text --input \"\"").bad(1);
    compare("reminder_update_rejected", &rejected);
    let accepted = engine.json("workflow update r set_text --input \"tea\" --no-wait");
    assert!(accepted[0]["update"].is_string(), "{accepted:?}");
    let timer = engine.json("waits list")[0]["timer"].as_str().unwrap().to_owned();
    let moved = engine.run(&format!("timer reschedule r {timer} --in 30m")).good();
    compare("timer_reschedule", &moved);
    let past = format!("timer reschedule r {timer} --at 2020-01-01T00:00:00Z");
    compare("timer_reschedule_past", &engine.run(&past).bad(1));
    let once = |length| format!("timer reschedule r {timer} --key once --in {length}");
    let first = engine.json(&once("2h"));
    assert!(first[0]["fire_at"].is_string(), "{first:?}");
    assert_eq!(engine.json(&once("2h")), first, "a repeat tells the due time of the first");
    compare("timer_reschedule_key_reused", &engine.run(&once("3h")).bad(1));
    engine.run(&format!("timer reschedule r {timer} --in 1s")).good();
    compare("reminder_result", &engine.run("workflow result r").good());
}

/// Whoever starts workflows chooses their ids and types.
#[test]
fn an_id_and_a_type_stay_on_one_line() {
    let (engine, _folder) = fresh();
    let id = "a\nstatus: completed";
    let start = ["--id", id, "--type", "t\nqueue: fake"];
    let started = engine.run_with("workflow start --queue none", &start).good();
    assert!(started.starts_with("started a\\nstatus: completed (run "), "{started}");
    let described = engine.run_with("workflow describe", &[id]).good();
    assert!(described.contains("a\\nstatus: completed\n"), "{described}");
    assert!(described.contains("t\\nqueue: fake\n"), "{described}");
    let history = engine.run_with("workflow history", &[id]).good();
    assert!(history.contains("\"t\\nqueue: fake\""), "{history}");
    engine.run_with("workflow terminate", &[id]).good();
    let ended = engine.run_with("workflow result", &[id]).bad(1);
    assert!(ended.contains("`abide workflow history $'a\\U0000000astatus: completed'`"), "{ended}");
}

#[test]
fn who_waits_for_a_result_is_told_that_the_code_cannot_run() {
    let (engine, _folder) = fresh();
    let start = ["workflow", "start", "--type", "unheard-of", "--id", "stuck", "--wait"];
    let wait = ["workflow", "result", "stuck"];
    for words in [&start[..], &wait[..]] {
        let mut command = abide();
        command.args(words).args(["--address", &engine.address]);
        let remark = Talking::spawn_for_remarks(&mut command).next().expect("it says something");
        assert!(remark.starts_with("still waiting for stuck: its code failed"), "{remark}");
    }
}

#[test]
fn runs_end_from_outside() {
    let (engine, _folder) = fresh();
    for id in ["c", "t"] {
        let start = format!("workflow start --type reminder --id {id} --input \"x\" --input 3600");
        engine.run(&start).good();
        engine.run(&format!("workflow query {id} text")).good();
    }
    compare("repair", &engine.run("repair c").good());
    compare("cancel", &engine.run_with("workflow cancel c --reason", &["no longer"]).good());
    compare("cancelled_result", &engine.run("workflow result c").bad(1));
    compare("terminate", &engine.run("workflow terminate t --reason stuck").good());
    compare("terminated_result", &engine.run("workflow result t").bad(1));
    engine.run("workflow start --type reminder --id u --input \"x\" --input 3600").good();
    engine.run("workflow terminate u").good();
    compare("terminated_for_no_reason", &engine.run("workflow result u").bad(1));
    // Following a history ends with its run.
    compare("history_followed", &engine.run("workflow history t --follow").good());
    compare("cancel_closed", &engine.run("workflow cancel t").bad(1));
}

#[test]
fn a_workflow_is_held_and_goes_on() {
    let (engine, _folder) = fresh();
    engine.run("workflow start --type approval --id p --input \"desk\"").good();
    engine.run("workflow query p approvals").good();
    compare("pause", &engine.run_with("workflow pause p --reason", &["we are closed"]).good());
    // A repeat changes nothing.
    engine.run("workflow pause p").good();
    let answer = "{\"request\":\"request\",\"decision\":\"approve\",\"approver\":\"Ada\"}";
    engine.run(&format!("workflow signal p decision --input {answer}")).good();
    let described = &engine.json("workflow describe p")[0];
    assert_eq!([&described["status"], &described["doing"]], ["paused", "paused"]);
    compare("unpause", &engine.run("workflow unpause p --reason open").good());
    assert_eq!(engine.run("workflow result p").good(), "\"desk was approved by Ada\"\n");
    let history = engine.json("workflow history p");
    let pauses: Vec<_> = history
        .iter()
        .filter(|event| event["event"] == "RunPaused" || event["event"] == "RunUnpaused")
        .map(|event| event["facts"]["reason"].as_str().unwrap())
        .collect();
    assert_eq!(pauses, ["we are closed", "open"]);
}

#[test]
fn a_history_is_recorded_for_tests() {
    let (engine, folder) = fresh();
    engine.run("workflow start --type hello --id h --input \"Ada\" --wait").good();
    let file = folder.path().join("h.history");
    let file = file.to_str().unwrap();
    let said = engine.run_with("workflow history h --record", &[file]).good();
    let events = engine.json("workflow history h").len();
    assert_eq!(said, format!("recorded {events} events in {file}\n"));
    let bytes = std::fs::read(file).unwrap();
    let decoded = abide_core::codec::decode_events(bytes.into()).expect("it can be read");
    assert_eq!(decoded.len(), events);
}
