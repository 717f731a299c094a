//! A server lives as long as its handle, and then leaves nothing behind.

use std::net::TcpStream;

use abide_postgres_fixture::{Setup, Stop, start_for_test};

#[test]
fn a_server_that_is_dropped_is_gone() {
    let test = "a_server_that_is_dropped_is_gone";
    let Some(server) = start_for_test(test, &Setup::default()) else { return };
    let folder = server.query("postgres", "SHOW data_directory");
    let port = server.port();
    assert!(TcpStream::connect(("127.0.0.1", port)).is_ok());
    drop(server);
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
    assert!(!std::path::Path::new(&folder).exists());
}

#[test]
fn what_was_written_is_there_after_a_crash() {
    let test = "what_was_written_is_there_after_a_crash";
    let Some(server) = start_for_test(test, &Setup::default()) else { return };
    server.query("postgres", "CREATE TABLE things AS SELECT 7 AS number");
    server.stop(Stop::Crash);
    assert!(server.try_query("postgres", "SELECT 1").is_err());
    server.start_again();
    assert_eq!(server.query("postgres", "SELECT number FROM things"), "7");
}

#[test]
fn a_standby_has_what_its_primary_has_and_takes_over() {
    let test = "a_standby_has_what_its_primary_has_and_takes_over";
    let Some(primary) = start_for_test(test, &Setup::default()) else { return };
    let standby = primary.standby();
    primary.wait_for_standby();
    primary.query("postgres", "CREATE TABLE things AS SELECT 7 AS number");
    assert_eq!(standby.query("postgres", "SHOW transaction_read_only"), "on");
    primary.stop(Stop::Crash);
    standby.promote();
    assert_eq!(standby.query("postgres", "UPDATE things SET number = 8 RETURNING number"), "8");
}
