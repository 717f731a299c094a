//! What operators see of the servers of a cluster.

use std::{
    net::{TcpListener, TcpStream},
    process::{Command, Stdio},
};

use abide_postgres_fixture::for_test;
use serde_json::{Value, json};

use crate::harness::{Engine, Ran, abide, compare, fresh};

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
    let serve =
        |name| Engine::start(["serve", "--store", &database, "--lease", "1", "--node", name]);
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
    let one = Engine::start(["serve", "--store", &database, "--lease", "1", "--node", "one"]);
    let http = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut second = abide();
    second.args(["serve", "--store", &database, "--lease", "1", "--node", "one"]);
    second.args(["--address", "127.0.0.1:0", "--http", &http.to_string()]);
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
        let said = Ran::of(command.args(["--http", "127.0.0.1:0"]).args(words)).bad(1);
        assert!(said.contains(told), "{said}");
    };
    refused(&["--lease", "0"], "a lease of 0ns is refused");
    refused(&["--lease", "3601"], "from 200 milliseconds to an hour");
    refused(&["--node", ""], "is no name for a node");
    refused(&["--node", "one\ntwo"], "is no name for a node");
    refused(&["--advertise", "one:port"], "cannot reach one:port");
}
