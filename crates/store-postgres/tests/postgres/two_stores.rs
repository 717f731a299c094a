//! Two stores on one database, as on two nodes: epochs and versions keep them apart.

use std::{sync::Barrier, thread};

use abide_postgres_fixture::for_test;
use abide_store::{CommitError, Store as _, rows::RegistryRow};
use abide_store_postgres::{Options, PostgresStore};
use bytes::Bytes;

use crate::support::{batch, claim, commit, sequences, shard};

fn two(address: &str) -> [PostgresStore; 2] {
    [(); 2].map(|()| PostgresStore::open(&Options::new(address).unwrap()).unwrap())
}

#[test]
fn a_shard_has_one_writer() {
    let Some(server) = for_test("a_shard_has_one_writer") else { return };
    let [first, second] = two(&server.database("one_writer"));
    assert_eq!(claim(&first, 1, 0, "first"), Ok(()));
    assert_eq!(commit(&first, batch(1, 1, 1)), Ok(()));
    assert_eq!(claim(&second, 1, 1, "second"), Ok(()));
    let stale = Err(CommitError::Stale { shard: shard(1), stored: 2, batch: 1 });
    assert_eq!(commit(&first, batch(1, 1, 2)), stale);
    assert_eq!(commit(&second, batch(1, 2, 2)), Ok(()));
    for store in [&first, &second] {
        assert_eq!(sequences(store, 1), [1, 2]);
        assert_eq!(pollster::block_on(store.shard(shard(1))).unwrap().owner, "second");
    }
}

/// In each round both claim the shard, and the winner writes a row.
#[test]
fn of_those_who_claim_at_one_time_one_succeeds() {
    let Some(server) = for_test("of_those_who_claim_at_one_time_one_succeeds") else { return };
    let stores = two(&server.database("claims"));
    let barrier = Barrier::new(2);
    let won: Vec<Vec<bool>> = thread::scope(|scope| {
        let contend = |store, name: &'static str| {
            let barrier = &barrier;
            scope.spawn(move || {
                let contend = |epoch| {
                    barrier.wait();
                    let won = claim(store, 1, epoch, name).is_ok();
                    if won {
                        commit(store, batch(1, epoch + 1, epoch + 1)).unwrap();
                    }
                    barrier.wait();
                    won
                };
                (0..30).map(contend).collect()
            })
        };
        let contenders = [contend(&stores[0], "first"), contend(&stores[1], "second")];
        contenders.map(|contender| contender.join().unwrap()).into()
    });
    for (round, (first, second)) in won[0].iter().zip(&won[1]).enumerate() {
        assert!(first != second, "round {round}: {first} and {second}");
    }
    assert_eq!(sequences(&stores[0], 1).len(), 30);
}

#[test]
fn of_those_who_write_a_version_at_one_time_one_succeeds() {
    let Some(server) = for_test("of_those_who_write_a_version_at_one_time_one_succeeds") else {
        return;
    };
    let stores = two(&server.database("versions"));
    let barrier = Barrier::new(2);
    let written: Vec<Vec<bool>> = thread::scope(|scope| {
        let contend = |store, value: &'static str| {
            let barrier = &barrier;
            scope.spawn(move || {
                let put = |version| {
                    barrier.wait();
                    let value = Bytes::from_static(value.as_bytes());
                    let row = RegistryRow { name: "node/lease".to_owned(), version, value };
                    pollster::block_on(PostgresStore::put_registry(store, row)).unwrap()
                };
                (1..=50).map(put).collect()
            })
        };
        let contenders = [contend(&stores[0], "first"), contend(&stores[1], "second")];
        contenders.map(|contender| contender.join().unwrap()).into()
    });
    for (version, (first, second)) in (1..).zip(written[0].iter().zip(&written[1])) {
        assert!(first != second, "version {version}: {first} and {second}");
    }
    let rows = pollster::block_on(stores[0].registry("node/".to_owned())).unwrap();
    let last = if written[0][49] { "first" } else { "second" };
    assert_eq!((rows[0].version, &rows[0].value[..]), (50, last.as_bytes()));
}
