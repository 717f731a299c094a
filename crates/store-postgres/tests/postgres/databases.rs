//! Which schemas are opened and which refused: new, older, newer, foreign and damaged ones.

use std::{net::TcpListener, thread};

use abide_postgres_fixture::for_test;
use abide_store::CommitError;
use abide_store_postgres::{OpenError, Options, PostgresStore};

use crate::support::{batch, commit, impatient, sequences};

fn open(address: &str) -> Result<PostgresStore, OpenError> {
    PostgresStore::open(&impatient(address))
}

fn refused(address: &str) -> OpenError {
    match open(address) {
        Ok(_) => panic!("the store was opened"),
        Err(error) => error,
    }
}

#[test]
fn eight_nodes_may_start_at_once() {
    let Some(server) = for_test("eight_nodes_may_start_at_once") else { return };
    let address = server.database("eight");
    let options = Options::new(&address).unwrap();
    let opened = thread::scope(|scope| {
        let openers = [(); 8].map(|()| scope.spawn(|| PostgresStore::open(&options)));
        openers.map(|opener| opener.join().unwrap())
    });
    for (number, store) in (1..).zip(opened) {
        assert_eq!(commit(&store.unwrap(), batch(number, 0, 1)), Ok(()));
    }
    assert_eq!(server.query("eight", "SELECT version FROM abide.abide_schema"), "2");
    assert_eq!(server.query("eight", "SELECT count(*), sum(epoch) FROM abide.shards"), "64|0");
}

#[test]
fn a_newer_schema_is_refused_and_left_alone() {
    let Some(server) = for_test("a_newer_schema_is_refused_and_left_alone") else { return };
    let address = server.database("newer");
    drop(open(&address).unwrap());
    server.query("newer", "UPDATE abide.abide_schema SET version = 99, oldest = 98");
    let error = refused(&address);
    assert!(matches!(error, OpenError::Newer { found: 99, oldest: 98, known: 2, .. }), "{error}");
    assert!(error.to_string().contains("use a newer one"), "{error}");
    assert_eq!(server.query("newer", "SELECT version FROM abide.abide_schema"), "99");
}

#[test]
fn tables_of_another_program_are_left_alone() {
    let Some(server) = for_test("tables_of_another_program_are_left_alone") else { return };
    let address = server.database("foreign");
    server.query("foreign", "CREATE SCHEMA abide; CREATE TABLE abide.log (theirs text)");
    let error = refused(&address);
    assert!(matches!(error, OpenError::Foreign { .. }), "{error}");
    let tables = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'abide'";
    assert_eq!(server.query("foreign", tables), "log");
}

#[test]
fn a_damaged_schema_is_refused() {
    let Some(server) = for_test("a_damaged_schema_is_refused") else { return };
    let damages = [
        ("DROP TABLE abide.due", "due"),
        ("ALTER TABLE abide.runs RENAME COLUMN details TO lost", "details"),
        ("DELETE FROM abide.abide_schema", "abide_schema"),
        ("DELETE FROM abide.shards WHERE shard = 7", "shard"),
    ];
    for (number, (damage, named)) in damages.into_iter().enumerate() {
        let name = format!("damaged {number}");
        let address = server.database(&name);
        drop(open(&address).unwrap());
        server.query(&name, damage);
        let error = refused(&address);
        assert!(matches!(error, OpenError::Corrupt { .. }), "{damage}: {error}");
        assert!(error.to_string().contains(named), "{damage}: {error}");
    }
}

#[test]
fn a_database_of_another_encoding_is_refused() {
    let Some(server) = for_test("a_database_of_another_encoding_is_refused") else { return };
    let make = "CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0 LOCALE 'C'";
    server.query("postgres", make);
    let error = refused(&server.address("latin"));
    assert!(error.to_string().contains("LATIN1"), "{error}");
}

#[test]
fn a_store_whose_tables_vanish_stops() {
    let Some(server) = for_test("a_store_whose_tables_vanish_stops") else { return };
    let store = open(&server.database("vanish")).unwrap();
    assert_eq!(commit(&store, batch(1, 0, 1)), Ok(()));
    server.query("vanish", "ALTER TABLE abide.log RENAME TO gone");
    for _ in 0..2 {
        let stopped = commit(&store, batch(1, 0, 2));
        assert!(matches!(stopped, Err(CommitError::Stopped(_))), "{stopped:?}");
    }
    drop(store);
    server.query("vanish", "ALTER TABLE abide.gone RENAME TO log");
    let store = open(&server.address("vanish")).unwrap();
    assert_eq!(sequences(&store, 1), [1]);
}

#[test]
fn what_cannot_be_reached_says_where_and_not_the_password() {
    let error = refused("postgres://user:secret@127.0.0.1:1/things").to_string();
    assert!(error.contains("127.0.0.1:1/things"), "{error}");
    assert!(!error.contains("secret"), "{error}");
}

#[test]
fn what_listens_and_never_answers_is_given_up() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let error = refused(&format!("postgres://user@{}/things", silent.local_addr().unwrap()));
    assert!(matches!(error, OpenError::Unavailable { .. }), "{error}");
    assert!(error.to_string().contains("did not answer"), "{error}");
}

#[test]
fn a_database_that_is_not_there_is_named() {
    let Some(server) = for_test("a_database_that_is_not_there_is_named") else { return };
    let error = refused(&server.address("nowhere")).to_string();
    assert!(error.contains("\"nowhere\" does not exist"), "{error}");
}
