//! What a start does when the workflow exists, and what keys do.

use crate::harness::{Engine, compare, fresh};

fn start(engine: &Engine, more: &str) -> String {
    let words = format!("workflow start --type approval --id a --input \"desk\" {more}");
    engine.json(&words)[0]["run"].as_str().expect("a run").to_owned()
}

#[test]
fn a_second_start_does_what_the_policy_says() {
    let (engine, _folder) = fresh();
    let first = start(&engine, "--key once");
    assert_eq!(start(&engine, "--key once"), first, "a repeat is the same start");
    let again = "workflow start --type approval --id a --input \"desk\"";
    compare("start_conflict", &engine.run(again).bad(1));
    assert_eq!(start(&engine, "--on-conflict use-existing"), first);
    let used = engine.run(&format!("{again} --on-conflict use-existing")).good();
    assert_eq!(used, format!("exists a (run {first})\n"), "nothing was started");
    let used = engine.json(&format!("{again} --on-conflict use-existing"));
    assert_eq!(used[0]["started"], false);
    let second = start(&engine, "--on-conflict terminate-existing");
    assert_ne!(second, first);
    let old = format!("workflow describe a --run {first}");
    assert_eq!(engine.json(&old)[0]["status"], "terminated");
    engine.run("workflow terminate a").good();
    engine.run(&format!("{again} --reuse reject")).bad(1);
    assert_ne!(start(&engine, "--reuse allow-if-failed"), second);
}

#[test]
fn a_signal_comes_with_the_start() {
    let (engine, _folder) = fresh();
    let start = "workflow start --type approval --id s --input \"desk\" --signal decision";
    let signal = "--signal-input {\"request\":\"request\",\"decision\":\"reject\",\"approver\":\"Ada\"} --wait";
    let result = engine.run(&format!("{start} {signal}")).good();
    assert_eq!(result, "\"desk was turned down by Ada\"\n");
}

#[test]
fn an_id_is_drawn_if_none_is_given_and_input_comes_from_a_file() {
    let (engine, folder) = fresh();
    let file = folder.path().join("input.json");
    std::fs::write(&file, "\"Ada\"").unwrap();
    let file = file.to_str().unwrap();
    let started = engine.json(&format!("workflow start --type hello --input-file {file}"));
    let id = started[0]["workflow"].as_str().unwrap();
    assert!(id.starts_with("hello-"), "{id}");
    assert_eq!(engine.run(&format!("workflow result {id}")).good(), "\"Hello, Ada!\"\n");
}

#[test]
fn a_delayed_start_waits_and_a_namespace_is_checked() {
    let (engine, _folder) = fresh();
    engine.run("workflow start --type hello --id d --input \"Ada\" --delay 1h").good();
    assert_eq!(engine.json("workflow describe d")[0]["doing"], "start_delayed");
    compare("unknown_namespace", &engine.run("workflow list --namespace nope").bad(2));
}
