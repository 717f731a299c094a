//! The first node of a new version migrates the tables while nodes of the old one use them, and what a
//! migration that was interrupted has left undone is done by the next node.

use std::thread;

use abide_postgres_fixture::{Server, for_test};
use abide_store::{RunFilter, Store as _, rows::ListLimit};
use abide_store_postgres::PostgresStore;
use tokio::runtime;
use tokio_postgres::NoTls;

use crate::support::{batch, commit, impatient};

/// Makes a database with the first version of the schema, and returns its address.
fn old_database(server: &Server, name: &str) -> String {
    let address = server.database(name);
    let tables = include_str!("../../src/migrations/0001_tables.sql");
    server.query(
        name,
        &format!(
            "CREATE SCHEMA abide; SET search_path = abide; {tables}; \
             CREATE TABLE abide_schema (only_row boolean PRIMARY KEY, version bigint, oldest bigint); \
             INSERT INTO abide_schema VALUES (true, 1, 1)"
        ),
    );
    address
}

/// Writes a run as a node of the first version does, which fails if a lock makes it wait.
fn write_as_before(server: &Server, name: &str, number: u8) {
    server.query(
        name,
        &format!(
            "SET lock_timeout = 1000; INSERT INTO abide.runs (shard, run, namespace, workflow, ordinal, \
             workflow_type, status, started_at, details) VALUES (1, \
             '00000000-0000-0000-0000-0000000000{number:02}', 'default', 'old', {number}, 'any', 1, \
             decode('800000000000000100000000', 'hex'), '')"
        ),
    );
}

/// Names of the indexes of runs that can be used.
fn indexes(server: &Server, name: &str) -> String {
    let names = "SELECT string_agg(c.relname, ' ' ORDER BY c.relname) FROM pg_index \
        JOIN pg_class AS c ON c.oid = indexrelid \
        WHERE indrelid = 'abide.runs'::regclass AND indisvalid";
    server.query(name, names)
}

const ALL_INDEXES: &str = "runs_by_close runs_by_parent runs_by_start runs_by_status runs_by_type \
    runs_by_workflow runs_open runs_open_by_start runs_pkey";

fn listed(store: &PostgresStore) -> usize {
    let limit = ListLimit { rows: 10, examined: 10, bytes: usize::MAX };
    pollster::block_on(store.runs(RunFilter::default(), limit)).unwrap().found.len()
}

/// A transaction that began before an index is built keeps the build waiting to its end.
#[test]
fn nodes_of_the_old_version_write_while_indexes_are_built() {
    const NAME: &str = "build_indexes";
    let Some(server) = for_test("nodes_of_the_old_version_write_while_indexes_are_built") else {
        return;
    };
    let address = old_database(server, NAME);
    write_as_before(server, NAME, 1);
    let runtime = runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.unwrap();
    let (other, connection) =
        runtime.block_on(tokio_postgres::connect(&address, NoTls)).expect("it can be reached");
    runtime.spawn(connection);
    let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1";
    runtime.block_on(other.batch_execute(begin)).unwrap();
    let building = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
        AND query LIKE 'CREATE INDEX%' AND wait_event_type = 'Lock'";
    let store = thread::scope(|scope| {
        let nodes = [(); 2].map(|()| scope.spawn(|| PostgresStore::open(&impatient(&address))));
        while server.query(NAME, building) != "1" {
            assert!(nodes.iter().all(|node| !node.is_finished()), "no index was built meanwhile");
        }
        write_as_before(server, NAME, 2);
        assert!(nodes.iter().all(|node| !node.is_finished()), "they wait for the indexes");
        runtime.block_on(other.batch_execute("COMMIT")).unwrap();
        let [first, second] = nodes.map(|node| node.join().unwrap());
        drop(second.unwrap());
        first.unwrap()
    });
    assert_eq!(indexes(server, NAME), ALL_INDEXES);
    assert_eq!(listed(&store), 2);
    write_as_before(server, NAME, 3);
    assert_eq!(listed(&store), 3);
}

#[test]
fn the_next_node_completes_a_migration_that_was_interrupted() {
    const NAME: &str = "interrupted";
    let Some(server) = for_test("the_next_node_completes_a_migration_that_was_interrupted") else {
        return;
    };
    let address = old_database(server, NAME);
    write_as_before(server, NAME, 1);
    // What an interrupted build leaves behind is an index that cannot be used.
    let broken = "UPDATE pg_index SET indisvalid = false \
        WHERE indexrelid = 'abide.runs_by_close'::regclass";
    let none = "DROP INDEX abide.runs_by_type, abide.runs_open_by_start, abide.runs_by_close, \
        abide.runs_by_status, abide.runs_by_parent";
    let one = "DROP INDEX abide.runs_by_parent";
    for (number, interrupted) in (1..).zip(["SELECT 1", none, one, broken]) {
        server.query(NAME, interrupted);
        let store = PostgresStore::open(&impatient(&address)).unwrap();
        assert_eq!(indexes(server, NAME), ALL_INDEXES, "after {interrupted}");
        assert_eq!(listed(&store), 1, "after {interrupted}");
        assert_eq!(commit(&store, batch(1, 0, number)), Ok(()), "after {interrupted}");
    }
}
