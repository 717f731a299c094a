//! What operators see of the servers of a cluster.

use std::{
    net::{TcpListener, TcpStream},
    process::{Command, Stdio},
};

use abide_postgres_fixture::for_test;
use serde_json::{Value, json};

use crate::harness::{Engine, Ran, abide, compare, fresh, node};

/// Nodes by name, with their states.
fn states(engine: &Engine) -> Vec<(Value, Value)> {
    let nodes = engine.json("nodes list");
    nodes.iter().map(|node| (node["name"].clone(), node["state"].clone())).collect()
}

#[test]
fn an_engine_on_a_file_is_one_node_that_serves_everything() {
    let (engine, _folder) = fresh();
    compare("nodes_alone", &engine.run("nodes list").good());
    let address = engine.address.trim_start_matches("http://");
    let alone = json!({"name": "local", "address": address, "state": "alive", "shards": 64});
    assert_eq!(engine.json("nodes list"), [alone]);
}

#[test]
fn a_server_that_left_is_shown_as_gone() {
    let Some(server) = for_test("a_server_that_left_is_shown_as_gone") else { return };
    let database = server.database("nodes");
    let serve = |name| Engine::node(&database, &["--node", name]);
    let (one, two) = (serve("one"), serve("two"));
    assert_eq!(states(&one), [("one".into(), "alive".into()), ("two".into(), "alive".into())]);
    assert_eq!(states(&one), states(&two));
    assert_eq!(two.terminate(), Some(0));
    assert_eq!(states(&one), [("one".into(), "alive".into()), ("two".into(), "gone".into())]);
    let gone = &one.json("nodes list")[1];
    assert_eq!(gone["shards"], 0);
}

#[test]
fn a_server_that_waits_for_its_name_ends_when_it_is_told() {
    let test = "a_server_that_waits_for_its_name_ends_when_it_is_told";
    let Some(server) = for_test(test) else { return };
    let database = server.database("nodes-waiting");
    let one = Engine::node(&database, &["--node", "one"]);
    let http = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut second = node(&database);
    second.args(["--node", "one", "--address", "127.0.0.1:0", "--http", &http.to_string()]);
    let mut second = second.stdout(Stdio::null()).spawn().expect("the binary runs");
    while TcpStream::connect(http).is_err() {
        assert_eq!(second.try_wait().expect("it can be looked at"), None, "it waits");
    }
    let told = Command::new("kill").args(["-TERM", &second.id().to_string()]).status();
    assert!(told.expect("kill runs").success());
    assert_eq!(second.wait().expect("it ends").code(), Some(0));
    assert_eq!(states(&one), [("one".into(), "alive".into())]);
}

#[test]
fn names_and_leases_that_would_harm_a_cluster_are_refused() {
    let refused = |words: &[&str], told: &str| {
        let mut command = abide();
        command.args(["serve", "--store", "postgres://127.0.0.1:1/x", "--address", "127.0.0.1:0"]);
        let said = Ran::of(command.args(["--http", "127.0.0.1:0"]).args(words)).bad(2);
        assert!(said.contains(told), "{said}");
    };
    refused(&["--lease", "0"], "invalid lease of 0ns");
    refused(&["--lease", "3601"], "the maximum 1h");
    refused(&["--node", ""], "is not a valid node name");
    refused(&["--node", "one\ntwo"], "is not a valid node name");
    refused(&["--advertise", "one:port"], "cannot reach one:port");
    refused(&["--node", "one"], "abide nodes secret");
    refused(&["--advertise", "one:7233"], "abide nodes secret");
    refused(&["--secret-file", "/nowhere"], "cannot read the node secret from /nowhere");
}

#[test]
fn a_secret_is_made_by_a_command_and_read_from_a_file() {
    let test = "a_secret_is_made_by_a_command_and_read_from_a_file";
    let made = || Ran::of(abide().args(["nodes", "secret"])).good();
    assert!(made().trim().len() >= 64 && made() != made());
    let Some(server) = for_test(test) else { return };
    let database = server.database("nodes-secret");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("node.secret");
    std::fs::write(&file, made()).unwrap();
    let serve = |name| {
        let file = file.to_str().unwrap();
        let words = ["serve", "--store", &database, "--lease", "1", "--secret-file", file];
        Engine::start(words.into_iter().chain(["--node", name]))
    };
    let (one, two) = (serve("one"), serve("two"));
    for number in 0..8 {
        one.run(&format!("workflow start --type t --id run-{number}")).good();
        two.run(&format!("workflow describe run-{number}")).good();
    }
}

#[test]
fn a_second_server_on_a_database_needs_a_secret() {
    let test = "a_second_server_on_a_database_needs_a_secret";
    let Some(server) = for_test(test) else { return };
    let database = server.database("nodes-alone");
    // A busy machine must not keep the first one from renewing its lease.
    let first = Engine::start(["serve", "--store", &database, "--lease", "10"]);
    for mut second in [abide(), node(&database)] {
        if second.get_args().next().is_none() {
            second.args(["serve", "--store", &database, "--lease", "10"]);
        }
        let said =
            Ran::of(second.args(["--address", "127.0.0.1:0", "--http", "127.0.0.1:0"])).bad(1);
        assert!(said.contains("abide nodes secret"), "{said}");
    }
    first.run("workflow start --type t --id run").good();
    let alone = first.json("nodes list");
    assert_eq!(alone.len(), 1);
    assert_eq!(alone[0]["address"], first.address.trim_start_matches("http://"));
}

#[test]
fn another_server_goes_on_with_the_batch_of_one_that_is_killed() {
    let test = "another_server_goes_on_with_the_batch_of_one_that_is_killed";
    let Some(server) = for_test(test) else { return };
    let database = server.database("nodes-batch");
    let serve = |name| Engine::node(&database, &["--node", name]);
    let (one, two) = (serve("one"), serve("two"));
    for number in 1..=6 {
        one.run(&format!("workflow start --type none --id r{number} --queue none")).good();
    }
    let query = ["--query", "WorkflowType = 'none'"];
    one.run_with("batch start --id b --terminate --rate 2", &query).good();
    one.kill();
    let ended = &two.json("batch show b --wait")[0];
    assert_eq!((&ended["status"], &ended["done"]), (&json!("completed"), &json!(6)), "{ended}");
    assert_eq!(two.json("workflow count --status terminated"), [json!({ "count": 6 })]);
}
