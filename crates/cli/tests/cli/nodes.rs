//! What operators see of the servers of a cluster.

use abide_postgres_fixture::for_test;
use serde_json::{Value, json};

use crate::harness::{Engine, compare, fresh};

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
