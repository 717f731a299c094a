//! The search for stranded runs in large tables.

use abide_postgres_fixture::for_test;
use abide_store::Store as _;
use abide_store_postgres::{Options, PostgresStore};

use crate::support::shard;

/// Runs with a delayed start have an entry in the due index and no wait. The examined runs come
/// last in the index, which is too large for the working memory of one statement.
#[test]
fn many_delayed_runs_are_looked_at_before_the_statement_times_out() {
    let test = "many_delayed_runs_are_looked_at_before_the_statement_times_out";
    let Some(server) = for_test(test) else { return };
    let address = server.database("delayed");
    server.query("postgres", "ALTER DATABASE delayed SET work_mem = '1MB'");
    let store = PostgresStore::open(&Options::new(&address).unwrap()).unwrap();
    let run = "lpad(to_hex(n), 32, '0')::uuid";
    let started_at = "decode(rpad('8', 24, '0'), 'hex')";
    let due = "decode(lpad(to_hex(100000 - n), 24, '0'), 'hex')";
    let fill = format!(
        "INSERT INTO abide.runs SELECT 1, {run}, 'default', 'w' || n, 1, 't', 1, NULL, \
         {started_at}, NULL, '' FROM generate_series(1, 100000) AS n; \
         INSERT INTO abide.due SELECT 1, {due}, {run}, '\\x01', 'w' || n, 'default' \
         FROM generate_series(2, 100000) AS n; ANALYZE abide.runs, abide.due"
    );
    server.query("delayed", &fill);
    let swept = pollster::block_on(store.stranded(shard(1), None, 4096)).unwrap();
    let first = swept.stranded.iter().map(|run| u128::from_be_bytes(*run.as_bytes()));
    assert_eq!(first.collect::<Vec<_>>(), [1], "the one that nothing would resume");
}
