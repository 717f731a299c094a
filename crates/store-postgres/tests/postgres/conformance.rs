//! Runs the suite that every backend runs.

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

#[test]
fn survives_closing() {
    let Some(server) = for_test("survives_closing") else { return };
    let options = Options::new(&server.database("survives_closing")).unwrap();
    conformance::run_reopened(PostgresStore::open(&options).unwrap(), |store| {
        drop(store);
        PostgresStore::open(&options).unwrap()
    });
}

/// The store stays open; the database crashes and comes back under it.
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
