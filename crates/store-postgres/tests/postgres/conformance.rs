//! Runs the conformance suite of all backends.

use abide_postgres_fixture::{Setup, Stop, for_test, start_for_test};
use abide_store::conformance;
use abide_store_postgres::{Options, PostgresStore};

#[test]
fn conforms() {
    let Some(server) = for_test("conforms") else { return };
    let address = server.database("conforms");
    let mut schemas = (0..).map(|number: u32| format!("store {number}"));
    conformance::run(|| {
        let mut options = Options::new(&address).unwrap();
        options.schema = schemas.next().unwrap();
        PostgresStore::open(&options).unwrap()
    });
}

/// A node of this version keeps running while one of the next version migrates, which only adds to
/// the schema.
#[test]
fn conforms_on_tables_that_a_newer_version_has_added_to() {
    let test = "conforms_on_tables_that_a_newer_version_has_added_to";
    let Some(server) = for_test(test) else { return };
    let address = server.database("added_to");
    let mut schemas = (0..).map(|number: u32| format!("store_{number}"));
    conformance::run(|| {
        let mut options = Options::new(&address).unwrap();
        options.schema = schemas.next().unwrap();
        let store = PostgresStore::open(&options).unwrap();
        server.query("added_to", &migration(&options.schema));
        store
    });
    let mut options = Options::new(&address).unwrap();
    options.schema = "store_0".to_owned();
    drop(PostgresStore::open(&options).unwrap());
}

/// Changes that a newer version may make to a schema: new columns, tables and indexes.
fn migration(schema: &str) -> String {
    let tables = "shards log snapshots runs tasks due waits outbox inbox registry";
    let columns: String = tables
        .split(' ')
        .map(|table| format!("ALTER TABLE {table} ADD COLUMN added text NOT NULL DEFAULT 'x';"))
        .collect();
    format!(
        "BEGIN; SET LOCAL search_path = {schema}; {columns} CREATE TABLE more (number bigint); \
         CREATE INDEX runs_by_added ON runs (added); \
         UPDATE abide_schema SET version = 2, oldest = 1; COMMIT"
    )
}

#[test]
fn survives_closing() {
    let Some(server) = for_test("survives_closing") else { return };
    let options = Options::new(&server.database("survives_closing")).unwrap();
    conformance::run_reopened(PostgresStore::open(&options).unwrap(), |store| {
        drop(store);
        PostgresStore::open(&options).unwrap()
    });
}

/// The store stays open while the database crashes and restarts.
#[test]
fn survives_a_crash_of_the_database() {
    let setup = Setup::default();
    let Some(server) = start_for_test("survives_a_crash_of_the_database", &setup) else { return };
    let options = Options::new(&server.address("postgres")).unwrap();
    conformance::run_reopened(PostgresStore::open(&options).unwrap(), |store| {
        server.stop(Stop::Crash);
        server.start_again();
        store
    });
}
