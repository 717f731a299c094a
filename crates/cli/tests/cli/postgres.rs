//! A server on PostgreSQL instead of a file.

use std::fs;

use abide_postgres_fixture::for_test;

use crate::harness::{Engine, Ran, abide};

#[test]
fn runs_survive_a_kill_on_postgresql() {
    let Some(server) = for_test("runs_survive_a_kill_on_postgresql") else { return };
    let address = server.database("killed");
    let engine = Engine::start(["serve", "--store", &address, "--lease", "1"]);
    let place = format!("postgres://127.0.0.1:{}/killed (schema abide)", server.port());
    assert_eq!(engine.ready["data"], place);
    engine.run("workflow start --type t --id order-1").good();
    let history = engine.json("workflow history order-1");
    engine.kill();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("abide.toml");
    fs::write(&file, format!("store = \"{address}\"\n")).unwrap();
    let engine = Engine::start(["serve".as_ref(), "--config".as_ref(), file.as_os_str()]);
    assert_eq!(engine.run("workflow count --status running").good(), "1\n");
    assert_eq!(engine.json("workflow history order-1"), history);
    assert_eq!(engine.terminate(), Some(0));
}

#[test]
fn two_servers_share_the_runs_and_one_takes_over_when_the_other_is_killed() {
    let test = "two_servers_share_the_runs_and_one_takes_over_when_the_other_is_killed";
    let Some(server) = for_test(test) else { return };
    let address = server.database("shared");
    let serve = || Engine::node(&address, &[]);
    let (first, second) = (serve(), serve());
    for number in 0..8 {
        let engine = if number % 2 == 0 { &first } else { &second };
        engine.run(&format!("workflow start --type t --id run-{number}")).good();
    }
    for number in 0..8 {
        let engine = if number % 2 == 0 { &second } else { &first };
        engine.run(&format!("workflow signal run-{number} go")).good();
    }
    first.kill();
    for number in 0..8 {
        second.run(&format!("workflow signal run-{number} again")).good();
        let history = second.json(&format!("workflow history run-{number}"));
        let signals = history.iter().filter(|event| event["event"] == "SignalReceived");
        assert_eq!(signals.count(), 2, "{history:?}");
    }
    assert_eq!(second.terminate(), Some(0));
}

#[test]
fn a_database_that_cannot_be_opened_is_named_without_its_password() {
    let cases = [
        ("postgres://user:secret@127.0.0.1:1/things", 1, "postgres://127.0.0.1:1/things"),
        ("mysql://user:secret@127.0.0.1/things", 2, "write it as postgres://"),
    ];
    for (address, code, named) in cases {
        let failed = Ran::of(abide().args(["serve", "--store", address])).bad(code);
        assert!(failed.contains(named), "{failed}");
        assert!(!failed.contains("secret"), "{failed}");
    }
}
