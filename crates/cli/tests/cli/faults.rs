//! Several nodes on one database, through every fault that can happen to them: nothing is lost, nothing
//! happens twice. The crash test itself looks for that; here it is told what to do, one fault at a time.
//!
//! Two nodes that both hold themselves for the owner of a shard are in `freeze` and `cut`: the node
//! that was frozen or cut off goes on with what it remembers while another one has its shards.

use abide_postgres_fixture::{Server, Setup, for_test, start_for_test};
use serde_json::Value;

use crate::harness::{Ran, abide};

/// Three nodes, a fresh database of this name, and this fault, once.
fn endure(server: &Server, fault: &str, more: &[&str]) -> Value {
    let folder = tempfile::tempdir().expect("a folder");
    let store = server.database(&format!("crash-{fault}"));
    let mut torture = abide();
    torture.args(["crash-test", "--nodes", "3", "--store", &store, "--lease", "1", "--json"]);
    torture.args(["--clients", "6", "--rounds", "1", "--kills", "3", "--faults", fault]);
    torture.args(more).arg("--folder").arg(folder.path());
    let report: Value = serde_json::from_str(&Ran::of(&mut torture).good()).expect("one object");
    assert!(report["journeys"].as_u64() >= Some(6), "every client came through: {report}");
    assert!(report["direct_readings"].as_u64() > Some(0), "every node was asked: {report}");
    report
}

#[test]
fn nothing_is_lost_when_nodes_and_workers_are_killed() {
    let Some(server) = for_test("nothing_is_lost_when_nodes_and_workers_are_killed") else {
        return;
    };
    let report = endure(server, "kill", &[]);
    assert_eq!((&report["kills_of_server"], &report["kills_of_worker"]), (&3.into(), &3.into()));
}

#[test]
fn others_have_the_runs_of_a_dead_node_and_timers_that_were_due_fire_once() {
    let test = "others_have_the_runs_of_a_dead_node_and_timers_that_were_due_fire_once";
    let Some(server) = for_test(test) else { return };
    let report = endure(server, "failover", &[]);
    assert_eq!(report["failover"]["kills"], 1);
    assert!(report["failover"]["all_longest_ms"].as_u64() > Some(0), "it was measured: {report}");
}

#[test]
fn a_node_that_was_frozen_past_its_lease_neither_writes_nor_answers() {
    let test = "a_node_that_was_frozen_past_its_lease_neither_writes_nor_answers";
    let Some(server) = for_test(test) else { return };
    assert_eq!(endure(server, "freeze", &[])["faults"]["freeze"]["times"], 1);
}

#[test]
fn a_node_that_is_cut_off_from_the_database_does_not_answer_clients() {
    let test = "a_node_that_is_cut_off_from_the_database_does_not_answer_clients";
    let Some(server) = for_test(test) else { return };
    assert_eq!(endure(server, "cut", &[])["faults"]["cut"]["times"], 1);
}

#[test]
fn a_commit_whose_answer_is_lost_takes_effect_once() {
    let Some(server) = for_test("a_commit_whose_answer_is_lost_takes_effect_once") else { return };
    let report = endure(server, "lose-answers", &[]);
    assert!(report["lost_answers"].as_u64() >= Some(3), "{report}");
}

#[test]
fn a_database_that_crashes_and_comes_back_has_all_that_was_acknowledged() {
    let test = "a_database_that_crashes_and_comes_back_has_all_that_was_acknowledged";
    let Some(server) = start_for_test(test, &Setup::default()) else { return };
    let restart = server.restart_command();
    let report = endure(&server, "database", &["--restart-database", &restart]);
    assert_eq!(report["faults"]["database"]["times"], 1);
}

#[test]
fn a_rolling_restart_fails_no_call() {
    let Some(server) = for_test("a_rolling_restart_fails_no_call") else { return };
    let report = endure(server, "roll", &[]);
    assert_eq!(report["faults"]["roll"]["times"], 1);
}

#[test]
fn what_a_fault_needs_must_be_there() {
    let check = |arguments: &[&str], told: &str| {
        let refused = Ran::of(abide().arg("crash-test").args(arguments)).bad(2);
        assert!(refused.contains(told), "{refused}");
    };
    check(&["--nodes", "3"], "several nodes need a database");
    check(&["--faults", "cut"], "the fault cut needs --store");
    check(&["--store", "postgres://db/x", "--faults", "database"], "needs --restart-database");
    check(&["--store", "postgres://u:secret@a,b/x"], "must name one host");
    check(&["--faults", "fire"], "lose-answers");
}
