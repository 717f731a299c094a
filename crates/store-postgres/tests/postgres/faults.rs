//! What callers get when the database is slow, full, busy or restarting.

use std::{
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

use abide_postgres_fixture::{Server, Setup, Stop, for_test, start_for_test};
use abide_store::{Batch, CommitError, Store as _, Write};
use abide_store_postgres::{OpenError, Options, PostgresStore};

use crate::support::{batch, commit, impatient, own, sequences};

/// Installs a trigger that runs before every row that is inserted into a log.
fn before_each_log_row(server: &Server, database: &str, does: &str) {
    let sql = format!(
        "CREATE FUNCTION abide.trouble() RETURNS trigger AS $$ BEGIN {does}; RETURN NEW; END $$ \
         LANGUAGE plpgsql; CREATE TRIGGER trouble BEFORE INSERT ON abide.log FOR EACH ROW \
         EXECUTE FUNCTION abide.trouble()"
    );
    server.query(database, &sql);
}

fn no_more_trouble(server: &Server, database: &str) {
    server.query(database, "DROP TRIGGER trouble ON abide.log");
}

/// The trouble makes a commit fail in this way, and the store continues once it is over.
fn check_trouble(
    server: &Server,
    database: &str,
    does: &str,
    refused: impl Fn(&CommitError) -> bool,
) {
    let store = PostgresStore::open(&impatient(&server.database(database))).unwrap();
    before_each_log_row(server, database, does);
    let error = commit(&store, batch(1, 0, 1)).expect_err("there is trouble");
    assert!(refused(&error), "{error:?}");
    no_more_trouble(server, database);
    assert_eq!(sequences(&store, 1), [0_u64; 0]);
    assert_eq!(commit(&store, batch(1, 0, 1)), Ok(()), "the store goes on");
}

#[test]
fn a_statement_that_takes_too_long_writes_nothing() {
    let Some(server) = for_test("a_statement_that_takes_too_long_writes_nothing") else { return };
    check_trouble(
        server,
        "slow",
        "PERFORM pg_sleep(60)",
        |error| matches!(error, CommitError::Unavailable(reason) if reason.contains("statement timeout")),
    );
}

#[test]
fn a_full_disk_writes_nothing_and_the_store_goes_on() {
    let Some(server) = for_test("a_full_disk_writes_nothing_and_the_store_goes_on") else { return };
    let full = "RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'";
    check_trouble(
        server,
        "full",
        full,
        |error| matches!(error, CommitError::Full(reason) if reason.contains("53100")),
    );
}

#[test]
fn transactions_that_met_are_tried_again() {
    let Some(server) = for_test("transactions_that_met_are_tried_again") else { return };
    let store = PostgresStore::open(&impatient(&server.database("met"))).unwrap();
    server.query("met", "CREATE SEQUENCE abide.tries");
    let met = "IF nextval('abide.tries') <= 2 THEN \
        RAISE EXCEPTION 'restart transaction' USING ERRCODE = '40001'; END IF";
    before_each_log_row(server, "met", met);
    assert_eq!(commit(&store, batch(1, 0, 1)), Ok(()));
    assert_eq!(sequences(&store, 1), [1]);
    assert_eq!(server.query("met", "SELECT last_value FROM abide.tries"), "3");
}

#[test]
fn only_the_guilty_batch_of_a_group_is_refused() {
    let Some(server) = for_test("only_the_guilty_batch_of_a_group_is_refused") else { return };
    let store = PostgresStore::open(&impatient(&server.database("guilty"))).unwrap();
    let rule = "IF NEW.shard = 3 THEN RAISE EXCEPTION 'no' USING ERRCODE = '23514'; END IF";
    before_each_log_row(server, "guilty", rule);
    let pending: Vec<_> = (1..=5).map(|number| store.commit(batch(number, 0, 1))).collect();
    for (number, answer) in (1..).zip(pending.into_iter().map(pollster::block_on)) {
        assert_eq!(answer.is_ok(), number != 3, "shard {number}: {answer:?}");
    }
}

/// Like a primary that has become a standby.
#[test]
fn a_database_that_only_reads_is_not_written_to_and_waited_for() {
    let test = "a_database_that_only_reads_is_not_written_to_and_waited_for";
    let Some(server) = for_test(test) else { return };
    let store = PostgresStore::open(&impatient(&server.database("only_reads"))).unwrap();
    assert_eq!(commit(&store, batch(1, 0, 1)), Ok(()));
    let end_sessions = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
        WHERE datname = 'only_reads'";
    server.query("postgres", "ALTER DATABASE only_reads SET default_transaction_read_only = on");
    server.query("postgres", end_sessions);
    // A connection that ends under a commit leaves open whether it took effect.
    let cut = commit(&store, batch(1, 0, 2));
    let known = matches!(cut, Err(CommitError::Unavailable(_) | CommitError::Unknown(_)));
    assert!(known, "{cut:?}");
    let refused = commit(&store, batch(1, 0, 2));
    assert!(matches!(refused, Err(CommitError::Unavailable(_))), "{refused:?}");
    server.query("postgres", "ALTER DATABASE only_reads RESET default_transaction_read_only");
    assert_eq!(commit(&store, batch(1, 0, 2)), Ok(()));
    assert_eq!(sequences(&store, 1), [1, 2]);
}

#[test]
fn too_many_connections_are_said_to_be_too_many() {
    let test = "too_many_connections_are_said_to_be_too_many";
    let setup = Setup::default()
        .setting("max_connections", "2")
        .setting("superuser_reserved_connections", "0");
    let Some(server) = start_for_test(test, &setup) else { return };
    let mut options = impatient(&server.address("postgres"));
    (options.writers, options.readers) = (1, 1);
    let store = PostgresStore::open(&options).unwrap();
    assert_eq!(commit(&store, batch(1, 0, 1)), Ok(()));
    assert_eq!(sequences(&store, 1), [1]);
    let Err(OpenError::Unavailable { reason, .. }) = PostgresStore::open(&options) else {
        panic!("a third connection was made");
    };
    assert!(reason.contains("too many clients"), "{reason}");
    let list = pollster::block_on(store.count_runs(abide_store::RunFilter::default(), 10));
    assert!(list.unwrap_err().to_string().contains("too many clients"));
    drop(store);
    // The server takes a moment to notice closed connections.
    options.retry_for = Duration::from_secs(20);
    let store = PostgresStore::open(&options).unwrap();
    assert_eq!(sequences(&store, 1), [1]);
}

/// Eight owners write while the database restarts.
#[test]
fn acknowledged_batches_survive_restarts_under_load() {
    let test = "acknowledged_batches_survive_restarts_under_load";
    let Some(server) = start_for_test(test, &Setup::default()) else { return };
    let store = PostgresStore::open(&Options::new(&server.address("postgres")).unwrap()).unwrap();
    let acknowledged = AtomicUsize::new(0);
    let restarts = AtomicUsize::new(0);
    let wait_for = |more: usize| {
        let goal = acknowledged.load(Relaxed) + more;
        while acknowledged.load(Relaxed) < goal {
            thread::yield_now();
        }
    };
    thread::scope(|scope| {
        for number in 0..8 {
            let (store, acknowledged, restarts) = (&store, &acknowledged, &restarts);
            scope.spawn(move || own(store, number, acknowledged, || restarts.load(Relaxed) < 4));
        }
        for how in [Stop::Crash, Stop::Fast, Stop::Crash] {
            wait_for(200);
            server.stop(how);
            server.start_again();
            restarts.fetch_add(1, Relaxed);
        }
        wait_for(200);
        restarts.fetch_add(1, Relaxed);
    });
}

/// Shard 3 is refused. After some rows, every further row exceeds the statement timeout: one by
/// one, the batches would take minutes.
#[test]
fn a_refused_group_does_not_try_each_of_its_batches_on_a_database_that_is_down() {
    let test = "a_refused_group_does_not_try_each_of_its_batches_on_a_database_that_is_down";
    let Some(server) = for_test(test) else { return };
    let mut options = impatient(&server.database("refused_group"));
    options.writers = 1;
    let store = PostgresStore::open(&options).unwrap();
    server.query("refused_group", "CREATE SEQUENCE abide.tries");
    let rule = "IF nextval('abide.tries') > 20 THEN PERFORM pg_sleep(60); \
        ELSIF NEW.shard = 3 THEN RAISE EXCEPTION 'no' USING ERRCODE = '23514'; END IF";
    before_each_log_row(server, "refused_group", rule);
    let begun = Instant::now();
    let pending: Vec<_> = (0..60).map(|number| store.commit(batch(number, 0, 1))).collect();
    let answers: Vec<_> = pending.into_iter().map(pollster::block_on).collect();
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    assert!(matches!(answers[59], Err(CommitError::Unavailable(_))), "{:?}", answers[59]);
    no_more_trouble(server, "refused_group");
    for (number, answer) in (0..).zip(&answers) {
        assert_eq!(answer.is_ok(), sequences(&store, number) == [1], "{number}: {answer:?}");
    }
}

/// A disk that is really full, not an error that claims so.
#[test]
fn a_disk_that_is_full_loses_nothing_and_the_store_goes_on() {
    let test = "a_disk_that_is_full_loses_nothing_and_the_store_goes_on";
    let Some(server) = start_for_test(test, &Setup::default().small_disk(24)) else { return };
    server.query("postgres", "CREATE DATABASE small TABLESPACE small");
    let store = PostgresStore::open(&impatient(&server.address("small"))).unwrap();
    let ballast = "CREATE TABLE ballast AS SELECT repeat('x', 1000) FROM generate_series(1, 4000)";
    server.query("small", ballast);
    let mut written = Vec::new();
    let reason = loop {
        let next = written.len() as u64 + 1;
        match commit(&store, large_batch(1, next)) {
            Ok(()) => written.push(next),
            Err(CommitError::Full(reason)) => break reason,
            Err(error) => panic!("{error}"),
        }
    };
    assert!(reason.contains("53100"), "{reason}");
    assert_eq!(sequences(&store, 1), written);
    server.query("small", "DROP TABLE ballast");
    let next = written.len() as u64 + 1;
    assert_eq!(commit(&store, large_batch(1, next)), Ok(()));
    assert_eq!(sequences(&store, 1).last(), Some(&next));
}

/// Half a megabyte of incompressible data.
fn large_batch(number: u8, sequence: u64) -> Batch {
    let mut state = sequence;
    let mut noise = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        state.to_be_bytes()
    };
    let events: Vec<u8> = (0..1 << 16).flat_map(|_| noise()).collect();
    let mut large = batch(number, 0, sequence);
    if let Some(Write::AppendLog(row)) = large.writes.first_mut() {
        row.events = events.into();
    }
    large
}
