//! The benchmarks run and say what they should. Their figures are nobody's business here.

use serde_json::Value;

use crate::harness::{Ran, abide};

fn bench(words: &str) -> Vec<Value> {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = abide();
    // An engine that clients use otherwise is not measured unless a flag says so.
    command.env("ABIDE_ADDRESS", "http://127.0.0.1:1").env("ABIDE_NAMESPACE", "nobodys");
    command.args(["bench", "--json", "--seconds", "0.1", "--directory"]).arg(folder.path());
    let printed = Ran::of(command.args(words.split_whitespace())).good();
    let left = folder.path().read_dir().expect("the folder is there").count();
    assert_eq!(left, 0, "nothing is left behind");
    printed.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// The last report of that name has all of these figures.
#[track_caller]
fn check(reports: &[Value], name: &str, figures: &[&str]) {
    let report = reports.iter().rfind(|report| report["bench"] == name).expect("a report");
    for figure in figures.iter().chain(&["load_average", "cores"]) {
        assert!(report[figure].is_number(), "{figure} is missing in {report}");
    }
}

#[test]
fn the_store_and_hello_are_measured() {
    let reports = bench("hello --concurrency 4");
    check(&reports, "disk", &["fdatasync_p50_ms", "fdatasync_p99_ms"]);
    check(&reports, "store", &["transitions_per_s", "p50_ms", "p99_ms", "bytes_per_transition"]);
    let figures = ["runs_per_s", "p50_ms", "p99_ms", "cpu_ms_per_run", "bytes_per_run"];
    check(&reports, "hello", &figures);
    check(&reports, "hello", &["commits_per_run", "batches_per_run"]);
}

#[test]
fn hello_is_measured_over_processes() {
    check(&bench("hello --concurrency 4 --spawn"), "hello", &["runs_per_s", "cpu_ms_per_run"]);
}

#[test]
fn sleeps_and_signals_are_measured_and_aims_told() {
    let reports = bench("sleep --runs 5 --spread 1 --lone 2");
    check(&reports, "sleep", &["runs", "p50_ms", "p99_ms", "max_ms", "early"]);
    let aim = reports.iter().find(|report| report["aim"] == "sleep_never_early").unwrap();
    assert_eq!(aim["met"], true, "{aim}");
    let reports = bench("signal --runs 3");
    check(&reports, "signal", &["acknowledged_p50_ms", "p50_ms", "p99_ms"]);
    assert!(reports.iter().any(|report| report["aim"] == "signal_p50"));
}

#[test]
fn what_cannot_be_measured_is_refused() {
    let refused = |words: &str| Ran::of(abide().arg("bench").args(words.split(' '))).bad(2);
    assert!(refused("signal --runs 0").contains("above zero"));
    assert!(refused("idle --address http://127.0.0.1:1").contains("starts itself"));
}

#[test]
fn sleeping_runs_are_weighed() {
    let reports = bench("idle --runs 10");
    check(&reports, "idle", &["rss_mb_added", "restart_ready_s", "idle_cpu_percent"]);
}

#[test]
fn nodes_on_postgresql_are_measured() {
    let Some(server) = abide_postgres_fixture::for_test("nodes_on_postgresql_are_measured") else {
        return;
    };
    let address = server.address("postgres");
    let words = "--concurrency 4 --nodes 2 --waiting 5 --kills 0";
    let reports = bench(&format!("postgres --store {address} {words}"));
    let figures = ["transitions_per_s", "database_cpu_ms", "rows", "log_bytes"];
    check(&reports, "postgres-store", &figures);
    let figures = ["runs_per_s", "cpu_ms_per_run", "log_bytes_per_run", "table_bytes_per_run"];
    check(&reports, "postgres-hello", &figures);
    check(&reports, "postgres-waiting", &["table_bytes_per_run", "rows_per_run"]);
    for aim in ["postgres_hello", "postgres_nodes"] {
        assert!(reports.iter().any(|report| report["aim"] == aim), "{reports:?}");
    }
    let left = server
        .query("postgres", "SELECT datname FROM pg_database WHERE datname LIKE 'abide_bench%'");
    assert_eq!(left, "", "nothing is left behind");
}
