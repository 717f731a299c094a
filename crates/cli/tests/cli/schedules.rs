//! Schedules as an operator has them: created, looked at, changed and deleted by commands, and exact
//! although the engine is killed.

use std::collections::BTreeSet;

use abide::Timestamp;
use abide_postgres_fixture::for_test;
use serde_json::Value;

use crate::harness::{Engine, compare, fresh};

/// The schedule, once this is true of it.
fn until(engine: &Engine, id: &str, holds: impl Fn(&Value) -> bool) -> Value {
    loop {
        let described = engine.json(&format!("schedule describe {id}")).remove(0);
        if holds(&described) {
            return described;
        }
    }
}

#[test]
fn a_schedule_is_created_looked_at_changed_and_deleted() {
    let (engine, _folder) = fresh();
    let create = "schedule create office --type hello --input \"Ada\" --time-zone Europe/Berlin";
    let times = ["--cron", "0 9 * * MON-FRI", "--except", "month=12 day=24-26", "--trigger"];
    compare("schedule_create", &engine.run_with(create, &times).good());
    compare("schedule_exists", &engine.run_with(create, &times).bad(1));
    until(&engine, "office", |office| office["recent"][0]["outcome"] == "completed");
    compare("schedule_describe", &engine.run("schedule describe office").good());
    compare("schedule_list", &engine.run("schedule list").good());
    let note = ["--note", "the office is closed"];
    compare("schedule_pause", &engine.run_with("schedule pause office", &note).good());
    compare("schedule_list_paused", &engine.run("schedule list").good());
    engine.run("schedule unpause office").good();

    let update = "schedule update office --every 1h+5m --overlap buffer-all --clear exclusions";
    compare("schedule_update", &engine.run(update).good());
    let definition = &engine.json("schedule describe office")[0]["definition"];
    assert_eq!(definition["cron"], Value::Array(Vec::new()));
    assert_eq!(definition["intervals"][0]["offset_seconds"], 300);
    assert_eq!(
        (&definition["overlap"], &definition["input"]),
        (&"buffer-all".into(), &"Ada".into())
    );
    assert_eq!(definition["time_zone"], "Europe/Berlin", "what is not given stays");
    let span = "--from 2026-01-01T00:00:00Z --to 2026-01-01T02:59:59Z";
    engine.run(&format!("schedule backfill office {span}")).good();
    until(&engine, "office", |office| office["starts"] == 4);
    let long = "schedule backfill office --from 2020-01-01T00:00:00Z --to 2026-01-01T00:00:00Z";
    compare("schedule_backfill_long", &engine.run(long).bad(1));

    compare("schedule_delete", &engine.run("schedule delete office").good());
    compare("schedule_missing", &engine.run("schedule trigger office").bad(1));
    compare("schedule_none", &engine.run("schedule list").good());
    assert_eq!(engine.json("workflow list").len(), 4, "what it started is still there");
}

#[test]
fn a_bad_schedule_is_refused_with_field_bound_and_hint() {
    let (engine, _folder) = fresh();
    let create = |more: &[&str]| engine.run_with("schedule create bad --type hello", more);
    compare("schedule_bad_cron", &create(&["--cron", "0 25 * * *"]).bad(2));
    compare("schedule_bad_zone", &create(&["--cron", "@daily", "--time-zone", "Mars/Base"]).bad(2));
    compare("schedule_bad_calendar", &create(&["--calendar", "hours=9"]).bad(2));
    compare("schedule_bad_offset", &create(&["--every", "1h+2h"]).bad(2));
    compare("schedule_never", &create(&["--calendar", "month=2 day=30"]).bad(2));
    assert!(engine.json("schedule list").is_empty());
}

/// Starts for each second, although the engine is killed in between.
fn survives_kills(start: impl Fn() -> Engine) {
    let mut engine = start();
    let create = "schedule create beat --type t --queue none --overlap allow-all";
    engine.run_with(create, &["--cron", "* * * * * *"]).good();
    let first = until(&engine, "beat", |beat| beat["starts"].as_u64() > Some(0));
    for kills in 1..=3 {
        until(&engine, "beat", |beat| beat["starts"].as_u64() > Some(2 * kills));
        engine.kill();
        engine = start();
    }
    until(&engine, "beat", |beat| beat["starts"].as_u64() > Some(8));
    engine.run("schedule pause beat").good();
    let runs = engine.json("workflow list --limit 1000");
    let ids: BTreeSet<_> = runs.iter().filter_map(|row| row["workflow"].as_str()).collect();
    assert_eq!(ids.len(), runs.len(), "each id once");
    assert_eq!(ids.first().copied(), first["recent"][0]["workflow"].as_str());
    let times = ids.iter().filter_map(|id| id.strip_prefix("beat-")?.parse::<Timestamp>().ok());
    let seconds: Vec<_> = times.map(Timestamp::seconds).collect();
    let whole: Vec<_> = (seconds[0]..).take(ids.len()).collect();
    assert_eq!(seconds, whole, "each second once, none lost");
}

#[test]
fn each_time_starts_once_although_the_engine_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    survives_kills(|| Engine::dev(folder.path()));
}

#[test]
fn each_time_starts_once_on_postgresql_too() {
    let Some(server) = for_test("each_time_starts_once_on_postgresql_too") else { return };
    let address = server.database("schedules");
    survives_kills(|| Engine::start(["serve", "--store", &address, "--lease", "1"]));
}
