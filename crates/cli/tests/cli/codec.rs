//! A codec endpoint, and commands that encode and decode by it.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Child, Stdio},
};

use serde_json::Value;

use crate::harness::{Ran, abide, fresh};

/// A running `abide codec serve`. Killed when it is dropped.
struct Endpoint {
    child: Child,
    url: String,
}

impl Endpoint {
    fn start(folder: &Path) -> Self {
        let file = |name: &str| folder.join(name).display().to_string();
        let key = Ran::of(abide().args(["codec", "key", "2026-05"])).good();
        fs::write(file("keys"), key).expect("a file of keys");
        fs::write(file("token"), "a token for the tests\n").expect("a file with a token");
        let mut command = abide();
        command.args(["codec", "serve", "--json", "--listen", "127.0.0.1:0"]);
        command.args(["--keys", &file("keys"), "--token-file", &file("token")]);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the binary runs");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("its output");
        BufReader::new(stdout).read_line(&mut line).expect("it says where it listens");
        let ready: Value = serde_json::from_str(&line).expect("JSON");
        Self { child, url: ready["codec_endpoint"].as_str().expect("an address").to_owned() }
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn data_is_encoded_on_its_way_in_and_decoded_for_who_may_read_it() {
    let (engine, folder) = fresh();
    let endpoint = Endpoint::start(folder.path());
    let token = folder.path().join("token").display().to_string();
    let with = |command: &str| {
        let mut words = abide();
        words.args(command.split(' ')).args(["--address", &engine.address, "--json"]);
        words.args(["--codec-endpoint", &endpoint.url, "--codec-token-file", &token]);
        Ran::of(&mut words)
    };
    with(r#"workflow start --type hello --id sealed --input "Ada""#).good();
    let input = |history: &str| {
        let first: Value = serde_json::from_str(history.lines().next().unwrap()).unwrap();
        first["facts"]["spec"]["input"].clone()
    };
    let stored = engine.run("workflow history sealed --json").good();
    assert!(stored.contains("codec/aes-256-gcm") && !stored.contains("Ada"), "{stored}");
    assert_eq!(input(&with("workflow history sealed").good()), "Ada");
    // The worker of `abide dev` has no keys, so the run waits and does not fail.
    let run = loop {
        let run = engine.json("workflow describe sealed").remove(0);
        if !run["trouble"].is_null() {
            break run;
        }
    };
    assert!(run["trouble"].to_string().contains("this program has no codecs"), "{run}");
    assert_eq!(run["status"], "running");
}

#[test]
fn without_the_endpoint_or_its_token_data_is_shown_as_it_is() {
    let (engine, folder) = fresh();
    let endpoint = Endpoint::start(folder.path());
    let token = "a token for the tests";
    let with = |token: &str, command: &str| {
        let mut words = abide();
        words.args(command.split(' ')).args(["--address", &engine.address, "--json"]);
        words.env("ABIDE_CODEC_ENDPOINT", &endpoint.url).env("ABIDE_CODEC_TOKEN", token);
        Ran::of(&mut words)
    };
    with(token, r#"workflow start --type hello --id sealed --input "Ada""#).good();
    let shown = with("a wrong token for the tests", "workflow history sealed");
    assert!(shown.stderr.contains("answers 401"), "{}", shown.stderr);
    assert!(shown.good().contains("codec/aes-256-gcm"));
    let refused = with("wrong", r#"workflow start --type hello --id other --input "Ada""#);
    assert!(refused.bad(1).contains("answers 401"), "nothing is sent as it is");
}
