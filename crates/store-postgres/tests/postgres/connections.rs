//! What callers get when the connection is lost, and what the database then holds. A small proxy
//! cuts connections at chosen moments.

use std::time::{Duration, Instant};

use abide_postgres_fixture::{Server, for_test};
use abide_store::{CommitError, Store as _, Write, rows::RegistryRow};
use abide_store_postgres::{Options, PostgresStore};
use bytes::Bytes;

use crate::{
    proxy::{Fault, Proxy},
    support::{batch, claim, commit, impatient, sequences, shard},
};

/// A store behind a proxy.
fn behind_a_proxy(server: &Server, database: &str) -> (PostgresStore, Proxy) {
    server.database(database);
    let proxy = Proxy::to(server.port());
    let mut options = impatient(&proxy.address(database));
    options.writers = 1;
    (PostgresStore::open(&options).unwrap(), proxy)
}

#[test]
fn what_was_lost_before_anything_was_written_is_tried_again() {
    let Some(server) = for_test("what_was_lost_before_anything_was_written_is_tried_again") else {
        return;
    };
    let (store, proxy) = behind_a_proxy(server, "cut_at_begin");
    assert_eq!(commit(&store, batch(1, 0, 1)), Ok(()));
    proxy.prepare(Fault::CutAtBegin);
    assert_eq!(claim(&store, 1, 0, "the owner"), Ok(()));
    proxy.wait_until_struck();
    assert_eq!(commit(&store, batch(1, 1, 2)), Ok(()));
    assert_eq!(sequences(&store, 1), [1, 2]);
}

#[test]
fn a_commit_that_was_lost_is_unknown_and_wrote_nothing() {
    let Some(server) = for_test("a_commit_that_was_lost_is_unknown_and_wrote_nothing") else {
        return;
    };
    let (store, proxy) = behind_a_proxy(server, "cut_before_commit");
    proxy.prepare(Fault::CutBeforeCommit);
    let unknown = commit(&store, batch(1, 0, 1));
    assert!(matches!(unknown, Err(CommitError::Unknown(_))), "{unknown:?}");
    assert_eq!(claim(&store, 1, 0, "the owner again"), Ok(()));
    assert_eq!(sequences(&store, 1), [0_u64; 0]);
    assert_eq!(commit(&store, batch(1, 1, 1)), Ok(()));
}

#[test]
fn a_commit_whose_answer_was_lost_is_unknown_and_there() {
    let Some(server) = for_test("a_commit_whose_answer_was_lost_is_unknown_and_there") else {
        return;
    };
    let (store, proxy) = behind_a_proxy(server, "cut_after_commit");
    proxy.prepare(Fault::CutAfterCommit);
    let unknown = commit(&store, batch(1, 0, 1));
    assert!(matches!(unknown, Err(CommitError::Unknown(_))), "{unknown:?}");
    assert_eq!(claim(&store, 1, 0, "the owner again"), Ok(()));
    assert_eq!(sequences(&store, 1), [1]);
    assert_eq!(commit(&store, batch(1, 1, 2)), Ok(()));
}

/// The node stalls after its transaction has locked its epoch and written its rows. One with a claim
/// is more than one statement.
#[test]
fn a_node_that_stands_still_holds_up_a_claim_for_a_moment_only() {
    let Some(server) = for_test("a_node_that_stands_still_holds_up_a_claim_for_a_moment_only")
    else {
        return;
    };
    let (zombie, proxy) = behind_a_proxy(server, "freeze_at_commit");
    let heir = PostgresStore::open(&impatient(&server.address("freeze_at_commit"))).unwrap();
    proxy.prepare(Fault::FreezeAtCommit);
    let mut claiming = batch(1, 0, 1);
    claiming.writes.push(Write::Claim { epoch: 1, owner: "zombie".to_owned() });
    let frozen = zombie.commit(claiming);
    proxy.wait_until_struck();
    let begun = Instant::now();
    // A claim that waited longer than the statement timeout fails, and is retried.
    while let Err(error) = claim(&heir, 1, 0, "heir") {
        assert!(matches!(error, CommitError::Unavailable(_)), "{error:?}");
    }
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    assert_eq!(
        sequences(&heir, 1),
        [0_u64; 0],
        "the transaction of the stalled node is rolled back"
    );
    let unknown = pollster::block_on(frozen);
    assert!(matches!(unknown, Err(CommitError::Unknown(_))), "{unknown:?}");
    let stale = Err(CommitError::Stale { shard: shard(1), stored: 1, batch: 0 });
    assert_eq!(commit(&zombie, batch(1, 0, 1)), stale);
    assert_eq!(commit(&heir, batch(1, 1, 1)), Ok(()));
}

/// The connection dies silently. The lease is renewed on a new one before it expires.
#[test]
fn a_lease_survives_a_connection_that_dies_without_a_word() {
    let test = "a_lease_survives_a_connection_that_dies_without_a_word";
    let Some(server) = for_test(test) else { return };
    server.database("dead_registry");
    let proxy = Proxy::to(server.port());
    let lease = Duration::from_secs(2);
    let options = Options::new(&proxy.address("dead_registry")).unwrap().for_lease(lease);
    let store = PostgresStore::open(&options).unwrap();
    let put = |version| {
        let value = Bytes::from_static(b"node");
        let row = RegistryRow { name: "node".to_owned(), version, value };
        pollster::block_on(store.put_registry(row))
    };
    assert_eq!(put(1), Ok(true));
    proxy.freeze();
    let begun = Instant::now();
    let unknown = put(2);
    assert!(matches!(unknown, Err(CommitError::Unknown(_))), "{unknown:?}");
    assert_eq!(put(2), Ok(true));
    assert!(begun.elapsed() < lease, "{:?}", begun.elapsed());
}
