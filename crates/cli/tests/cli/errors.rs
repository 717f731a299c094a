//! What goes wrong is said in one line, with what to do, and an exit code for scripts.

use std::net::TcpListener;

use serde_json::Value;

use crate::harness::{Ran, abide, compare, fresh};

#[test]
fn an_unknown_workflow_is_named() {
    let (engine, _folder) = fresh();
    for command in ["describe", "history", "result", "cancel", "terminate"] {
        let said = engine.run(&format!("workflow {command} nope")).bad(1);
        compare("unknown_workflow", &said);
    }
    compare("unknown_workflow", &engine.run("workflow signal nope x").bad(1));
    compare("unknown_workflow", &engine.run("workflow query nope x").bad(1));
    compare("unknown_workflow", &engine.run("repair nope").bad(1));
    let run = "00000000-0000-7000-8000-000000000000";
    compare("unknown_run", &engine.run(&format!("workflow describe nope --run {run}")).bad(1));
}

/// Whoever may start a workflow must not be able to write over the screen of an operator.
#[test]
fn names_that_others_chose_cannot_change_the_screen() {
    let (engine, _folder) = fresh();
    let id = "order\u{1b}[2J\u{1b}]0;gone\u{7}";
    engine.run_with("workflow start --type t --id", &[id]).good();
    let said = [
        engine.run("workflow list").good(),
        engine.run_with("workflow describe", &[id]).good(),
        engine.run_with("workflow history", &[id]).good(),
        engine.run_with("workflow signal", &[id, "s\u{1b}c"]).good(),
        engine.run_with("workflow terminate", &[id]).good(),
        engine.run_with("workflow signal", &[id, "s"]).bad(1),
    ];
    for said in &said {
        assert!(!said.contains(|letter: char| letter.is_control() && letter != '\n'), "{said:?}");
    }
    assert!(said[0].contains("order\\u{1b}[2J\\u{1b}]0;gone\\u{7}"), "{}", said[0]);
    let rows = engine.json("workflow list");
    assert_eq!(rows[0]["workflow"], id, "programs get it as it is");
}

#[test]
fn an_unknown_query_lists_the_known_ones() {
    let (engine, _folder) = fresh();
    engine.run("workflow start --type reminder --id r --input \"x\" --input 3600").good();
    compare("unknown_query", &engine.run("workflow query r nope").bad(1));
    compare("unknown_timer", &engine.run("timer reschedule r nope --in 1h").bad(1));
}

#[test]
fn programs_read_errors_as_json() {
    let (engine, _folder) = fresh();
    let said = engine.run("workflow describe nope --json").bad(1);
    let error: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(error["error"], "there is no workflow \"nope\"");
    assert_eq!(error["exit_code"], 1);
    assert!(error["hint"].as_str().unwrap().contains("abide workflow list"));
    // What is typed wrongly, too.
    let said = engine.run("workflow list --status odd --json").bad(2);
    let error: Value = serde_json::from_str(&said).unwrap();
    assert!(error["error"].as_str().unwrap().contains("'odd'"), "{error}");
    assert_eq!(error["exit_code"], 2);
}

#[test]
fn nobody_listens() {
    // A port that was free a moment ago, and belongs to nobody now.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let address = format!("http://127.0.0.1:{port}");
    let ran = Ran::of(abide().args(["workflow", "list", "--address", &address]));
    compare("no_engine", &ran.bad(3));
}

#[test]
fn one_of_several_servers_is_enough() {
    let (engine, _folder) = fresh();
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for addresses in
        [format!("{nobody},{}", engine.address), format!("{},{nobody}", engine.address)]
    {
        Ran::of(abide().args(["workflow", "list"]).env("ABIDE_ADDRESS", addresses)).good();
    }
    let said =
        Ran::of(abide().args(["workflow", "list", "--address", &format!("{nobody},{nobody}")]));
    assert_eq!(said.bad(3).matches("http://127.0.0.1").count(), 2);
}

#[test]
fn what_is_typed_wrongly_is_said_before_an_engine_is_looked_for() {
    let run = |words: &[&str]| Ran::of(abide().args(words)).bad(2);
    compare("bad_json", &run(&["workflow", "start", "--type", "hello", "--input", "Ada"]));
    compare("bad_time", &run(&["timer", "reschedule", "a", "1", "--in", "soon"]));
    compare("bad_status", &run(&["workflow", "list", "--status", "odd"]));
    compare("negative_time", &run(&["workflow", "start", "--type", "hello", "--delay", "-5s"]));
    compare("odd_scheme", &run(&["workflow", "list", "--address", "ftp://x"]));
    compare("missing_file", &run(&["workflow", "signal", "a", "b", "--input-file", "nope.json"]));
}
