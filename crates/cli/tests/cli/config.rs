//! How an engine is set up, and what it says when it cannot start.

use std::{fs, net::TcpListener, path::Path};

use crate::harness::{Engine, Ran, Talking, abide, compare, fresh};

fn serve(folder: &Path, words: &[&str]) -> Ran {
    Ran::of(abide().current_dir(folder).arg("serve").args(words))
}

#[test]
fn a_flag_wins_over_the_environment_that_over_the_file_that_over_the_default() {
    let folder = tempfile::tempdir().unwrap();
    let file = "grpc_address = \"127.0.0.1:1\"\nhttp_address = \"127.0.0.1:2\"\ndata = \"there\"\n";
    fs::write(folder.path().join("abide.toml"), file).unwrap();
    let mut command = abide();
    command.current_dir(folder.path()).env("ABIDE_HTTP", "127.0.0.1:3").env("ABIDE_DATA", "env");
    command.args(["serve", "--config", "abide.toml", "--print-config", "--data", "flag"]);
    let printed = Ran::of(&mut command).good();
    for line in [
        "grpc_address = \"127.0.0.1:1\"",
        "http_address = \"127.0.0.1:3\"",
        "data = \"flag\"",
        "namespaces = [\"default\"]",
    ] {
        assert!(printed.lines().any(|printed| printed == line), "{line} is not in {printed}");
    }
    // What is printed can be read again.
    fs::write(folder.path().join("again.toml"), &printed).unwrap();
    let again = serve(folder.path(), &["--config", "again.toml", "--print-config"]).good();
    assert_eq!(again, printed);
}

#[test]
fn the_engine_of_clients_does_not_say_where_to_listen() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = abide();
    command.current_dir(folder.path()).args(["serve", "--print-config"]);
    command.env("ABIDE_ADDRESS", "http://127.0.0.1:1");
    let printed = Ran::of(&mut command).good();
    assert!(printed.contains("grpc_address = \"127.0.0.1:7233\""), "{printed}");
    let printed = Ran::of(command.env("ABIDE_LISTEN", "127.0.0.1:2")).good();
    assert!(printed.contains("grpc_address = \"127.0.0.1:2\""), "{printed}");
}

#[test]
fn a_lease_has_a_unit_or_is_in_seconds() {
    let lease = |text: &str| {
        let mut command = abide();
        Ran::of(command.args(["serve", "--print-config", "--lease", text]))
    };
    for (text, millis) in [("500ms", 500), ("15s", 15_000), ("1m", 60_000), ("3", 3_000)] {
        let printed = lease(text).good();
        assert!(printed.contains(&format!("lease_ms = {millis}\n")), "{text}: {printed}");
    }
    let told = lease("soon").bad(2);
    assert!(told.contains("soon") && told.contains("90s"), "{told}");
}

#[test]
fn a_printed_configuration_has_no_password() {
    for more in [&[][..], &["--json"]] {
        let mut command = abide();
        command.env("ABIDE_STORE", "postgres://abide:hush@db.example.org/abide");
        let printed = Ran::of(command.args(["serve", "--print-config"]).args(more)).good();
        assert!(printed.contains("postgres://…@db.example.org:5432/abide"), "{printed}");
        assert!(!printed.contains("hush"), "{printed}");
    }
}

#[test]
fn a_bad_file_is_named_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("abide.toml"), "data = \"x\"\nport = 7233\n").unwrap();
    compare("bad_config", &serve(folder.path(), &["--config", "abide.toml"]).bad(2));
    fs::write(folder.path().join("abide.toml"), "data = [\n").unwrap();
    compare("broken_config", &serve(folder.path(), &["--config", "abide.toml"]).bad(2));
    compare("no_config", &serve(folder.path(), &["--config", "nope.toml"]).bad(2));
    compare("bad_address", &serve(folder.path(), &["--address", "7233"]).bad(2));
}

#[test]
fn a_server_has_the_namespaces_that_it_was_given() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().to_str().unwrap();
    let engine = Engine::start(["serve", "--data", data, "--namespaces", "default,orders"]);
    assert_eq!(engine.ready["data"], data);
    engine.run("workflow start --type t --id a --namespace orders").good();
    assert_eq!(engine.run("workflow count --namespace orders").good(), "1\n");
    assert_eq!(engine.run("workflow count").good(), "0\n");
    assert_eq!(engine.terminate(), Some(0));
}

#[test]
fn a_setting_that_no_server_can_run_with_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |file: &str, more: &[&str], told: &str| {
        fs::write(folder.path().join("abide.toml"), file).unwrap();
        let words = ["--config", "abide.toml", "--address", "127.0.0.1:0", "--http", "127.0.0.1:0"];
        let said = serve(folder.path(), &[&words, more].concat()).bad(2);
        assert!(said.contains(told), "{said}");
    };
    refused("[bounds]\nstreams = 9000000000000000000", &[], "bounds.streams");
    refused("[bounds]\nconnections = 0", &[], "bounds.connections");
    refused("", &["--namespaces", ""], "is not a valid name");
    refused("", &["--namespaces", "a, a"], "twice");
    refused("[namespace.x]", &[], "\"x\"");
    let store = ["--store", "postgres://db/abide"];
    refused("[node]\nsecret = 'short'", &store, "the minimum is");
    refused("[node]\nlease_ms = 1", &store, "invalid lease");
    refused("", &["--store", "nonsense"], "postgres://user:password@host:5432/database");
}

#[test]
fn a_port_that_is_taken_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = taken.local_addr().unwrap().to_string();
    let dev = |address: &str, http: &str| {
        let mut command = abide();
        command.arg("dev").arg("--data").arg(folder.path());
        Ran::of(command.args(["--address", address, "--http", http])).bad(1)
    };
    compare("grpc_port_taken", &dev(&place, "127.0.0.1:0"));
    compare("http_port_taken", &dev("127.0.0.1:0", &place));
}

#[test]
fn a_folder_in_use_is_named() {
    let (_engine, folder) = fresh();
    let mut command = abide();
    command.current_dir(folder.path().parent().unwrap());
    command.args(["dev", "--address", "127.0.0.1:0", "--http", "127.0.0.1:0", "--data"]);
    let said = Ran::of(command.arg(folder.path().file_name().unwrap())).bad(1);
    let name = folder.path().file_name().unwrap().to_str().unwrap();
    compare("folder_in_use", &said.replace(name, "<folder>"));
}

#[test]
fn dev_welcomes_people() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = abide();
    command.args(["dev", "--address", "127.0.0.1:0", "--http", "127.0.0.1:0", "--data"]);
    let dev = Talking::spawn(command.arg(folder.path()));
    let mut welcome = String::new();
    for line in dev {
        welcome.push_str(&format!("{line}\n"));
        // The last of the commands to try.
        if line.contains("decide") {
            break;
        }
    }
    let data = folder.path().canonicalize().unwrap();
    let welcome = welcome.replace(data.to_str().unwrap(), "<folder>");
    compare("welcome", &welcome.replace(env!("CARGO_BIN_EXE_abide"), "abide"));
}

#[test]
fn dev_tells_programs_where_it_is() {
    let (engine, folder) = fresh();
    assert_eq!(engine.ready["ready"], true);
    assert_eq!(engine.ready["demo"], true);
    assert_eq!(engine.ready["data"], folder.path().canonicalize().unwrap().to_str().unwrap());
    let bare = tempfile::tempdir().unwrap();
    let engine = Engine::start(["dev", "--no-demo", "--data", bare.path().to_str().unwrap()]);
    assert_eq!(engine.ready["demo"], false);
}
