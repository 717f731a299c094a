//! A server on PostgreSQL instead of a file.

use std::fs;

use abide_postgres_fixture::for_test;

use crate::harness::{Engine, Ran, Talking, abide};

#[test]
fn runs_survive_a_kill_on_postgresql() {
    let Some(server) = for_test("runs_survive_a_kill_on_postgresql") else { return };
    let address = server.database("killed");
    let engine = Engine::start(["serve", "--store", &address]);
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
fn a_second_server_takes_over_and_the_first_one_ends() {
    let test = "a_second_server_takes_over_and_the_first_one_ends";
    let Some(server) = for_test(test) else { return };
    let address = server.database("taken");
    let first = Engine::start(["serve", "--store", &address]);
    first.run("workflow start --type t --id before").good();
    let second = Engine::start(["serve", "--store", &address]);
    // Its next write tells the first one; whoever asked for it is not told that it was done.
    let start = ["workflow", "start", "--type", "t", "--id", "lost", "--address", &first.address];
    let asking = Talking::spawn(abide().args(start));
    assert_eq!(first.ended(), Some(1));
    drop(asking);
    let listed = second.json("workflow list");
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0]["workflow"], "before");
}

#[test]
fn a_database_that_cannot_be_opened_is_named_without_its_password() {
    let cases = [
        ("postgres://user:secret@127.0.0.1:1/things", "postgres://127.0.0.1:1/things"),
        ("mysql://user:secret@127.0.0.1/things", "write it as postgres://"),
    ];
    for (address, named) in cases {
        let failed = Ran::of(abide().args(["serve", "--store", address])).bad(1);
        assert!(failed.contains(named), "{failed}");
        assert!(!failed.contains("secret"), "{failed}");
    }
}
