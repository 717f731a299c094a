//! A primary and its standby: acknowledged batches survive the loss of the primary, and the store
//! finds the new primary.

use std::{
    net::TcpListener,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

use abide_postgres_fixture::{Server, Setup, Stop, for_test, start_for_test};
use abide_store::{CommitError, Store as _};
use abide_store_postgres::{Options, PostgresStore};

use crate::support::{batch, claim_again, commit, impatient, own, sequences};

/// Address with both hosts, in this order.
fn both(first: &Server, second: &Server) -> String {
    let (first, second) = (first.port(), second.port());
    format!("postgres://abide@127.0.0.1:{first},127.0.0.1:{second}/postgres")
}

/// A primary that waits for its standby on each commit.
fn pair(test: &str) -> Option<(Server, Server)> {
    let primary = start_for_test(test, &Setup::default())?;
    let standby = primary.standby();
    primary.wait_for_standby();
    Some((primary, standby))
}

/// Eight owners write while the primary is lost and the standby promoted.
#[test]
fn acknowledged_batches_survive_the_loss_of_the_primary_under_load() {
    let test = "acknowledged_batches_survive_the_loss_of_the_primary_under_load";
    let Some((primary, standby)) = pair(test) else { return };
    let store = PostgresStore::open(&Options::new(&both(&primary, &standby)).unwrap()).unwrap();
    let (acknowledged, over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let wait_for = |more: usize| {
        let goal = acknowledged.load(Relaxed) + more;
        while acknowledged.load(Relaxed) < goal {
            thread::yield_now();
        }
    };
    thread::scope(|scope| {
        for number in 0..8 {
            let (store, acknowledged, over) = (&store, &acknowledged, &over);
            scope.spawn(move || own(store, number, acknowledged, || !over.load(Relaxed)));
        }
        wait_for(200);
        primary.stop(Stop::Crash);
        standby.promote();
        let promoted_at = Instant::now();
        wait_for(200);
        assert!(promoted_at.elapsed() < Duration::from_secs(10), "{:?}", promoted_at.elapsed());
        over.store(true, Relaxed);
    });
}

#[test]
fn an_old_primary_that_comes_back_as_it_was_is_not_written_to() {
    let test = "an_old_primary_that_comes_back_as_it_was_is_not_written_to";
    let Some((primary, standby)) = pair(test) else { return };
    let store = PostgresStore::open(&impatient(&both(&primary, &standby))).unwrap();
    assert_eq!(commit(&store, batch(1, 0, 1)), Ok(()));
    primary.stop(Stop::Crash);
    standby.promote();
    while commit(&store, batch(2, 0, 1)).is_err() {}
    primary.start_again();
    let end_sessions = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
        WHERE application_name = 'abide'";
    standby.query("postgres", end_sessions);
    assert_eq!(commit(&store, batch(1, 0, 2)), Ok(()));
    assert_eq!(sequences(&store, 1), [1, 2]);
    // With the new primary down only the old one is left, and the error names it.
    standby.stop(Stop::Crash);
    let refused = loop {
        match commit(&store, batch(1, 0, 3)) {
            Err(CommitError::Unavailable(reason)) => break reason,
            Err(CommitError::Unknown(_)) => {}
            other => panic!("{other:?}"),
        }
    };
    assert!(refused.contains("old primary"), "{refused}");
    assert_eq!(primary.query("postgres", "SELECT count(*) FROM abide.log"), "1");
    standby.start_again();
    assert_eq!(sequences(&store, 1), [1, 2]);
}

#[test]
fn an_old_primary_that_comes_back_as_a_standby_can_take_over_again() {
    let test = "an_old_primary_that_comes_back_as_a_standby_can_take_over_again";
    let setup = Setup::default().setting("wal_log_hints", "on");
    let Some(primary) = start_for_test(test, &setup) else { return };
    let standby = primary.standby();
    primary.wait_for_standby();
    let store = PostgresStore::open(&impatient(&both(&primary, &standby))).unwrap();
    assert_eq!(commit(&store, batch(1, 0, 1)), Ok(()));
    primary.stop(Stop::Fast);
    standby.promote();
    let epoch = claim_again(&store, 1);
    assert_eq!(commit(&store, batch(1, epoch, 2)), Ok(()));
    primary.follow(&standby);
    standby.wait_for_standby();
    assert_eq!(commit(&store, batch(1, epoch, 3)), Ok(()));
    standby.stop(Stop::Crash);
    primary.promote();
    // It has no standby now, but is still configured to wait for one.
    primary.commit_with_standby("");
    claim_again(&store, 1);
    assert_eq!(sequences(&store, 1), [1, 2, 3]);
}

/// Like a machine that hangs: its system still accepts connections.
#[test]
fn a_host_that_accepts_and_says_nothing_does_not_hide_the_next() {
    let test = "a_host_that_accepts_and_says_nothing_does_not_hide_the_next";
    let Some(server) = for_test(test) else { return };
    server.database("behind_silence");
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent_port = silent.local_addr().unwrap().port();
    let hosts = format!("127.0.0.1:{silent_port},127.0.0.1:{}", server.port());
    let mut options = impatient(&format!("postgres://abide@{hosts}/behind_silence"));
    options.statement_timeout = Duration::from_secs(10);
    let store = PostgresStore::open(&options).unwrap();
    let begun = Instant::now();
    assert_eq!(commit(&store, batch(1, 0, 1)), Ok(()));
    assert!(begun.elapsed() < Duration::from_secs(2), "the good host is remembered");
}

/// An administrator cancels a commit that waits for its standby: it is written, but may be lost
/// with the primary.
#[test]
fn a_commit_that_no_standby_has_is_not_acknowledged() {
    let test = "a_commit_that_no_standby_has_is_not_acknowledged";
    let Some(server) = start_for_test(test, &Setup::default()) else { return };
    // The only sign of it is a warning, and a database may be configured not to send warnings.
    server.query("postgres", "ALTER DATABASE postgres SET client_min_messages = error");
    let store = PostgresStore::open(&Options::new(&server.address("postgres")).unwrap()).unwrap();
    assert_eq!(commit(&store, batch(1, 0, 1)), Ok(()));
    server.commit_with_standby("nobody");
    let pending = store.commit(batch(1, 0, 2));
    let cancel = "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity \
        WHERE wait_event = 'SyncRep'";
    while server.query("postgres", cancel) == "0" {}
    let unknown = pollster::block_on(pending);
    assert!(matches!(unknown, Err(CommitError::Unknown(_))), "{unknown:?}");
}
