//! The guide to production shows files for a server. The real program must understand them.

use std::{fs, path::Path};

use crate::harness::{Ran, abide};

/// The blocks of this kind on the page.
fn blocks(kind: &str) -> Vec<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/production.md");
    let text = fs::read_to_string(page).expect("the page is there");
    let fence = format!("```{kind}\n");
    let blocks = text.split(&fence).skip(1).map(|rest| rest.split("```").next());
    blocks.map(|block| block.expect("the block ends").to_owned()).collect()
}

/// What the server makes of these words, in a folder with the configuration of the page.
#[track_caller]
fn printed(words: &[String], environment: &[(String, String)]) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let [config] = blocks("toml").try_into().expect("one configuration");
    let file = folder.path().join("abide.toml");
    fs::write(&file, config).expect("a file");
    let file = file.to_str().expect("a path in UTF-8");
    let words = words.iter().map(|word| word.replace("/etc/abide/abide.toml", file));
    let mut command = abide();
    command.envs(environment.iter().map(|(name, value)| (name, value)));
    Ran::of(command.args(words).arg("--print-config")).good()
}

#[test]
fn the_unit_starts_a_server_with_the_configuration() {
    let [unit] = blocks("ini").try_into().expect("one unit");
    let start = unit.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/local/bin/abide "));
    let words: Vec<_> = start.expect("it starts the program").split(' ').map(Into::into).collect();
    let printed = printed(&words, &[]);
    for line in ["grpc_address = \"0.0.0.0:7233\"", "name = \"one\"", "lease_ms = 5000"] {
        assert!(printed.lines().any(|printed| printed == line), "{line} is not in {printed}");
    }
}

#[test]
fn the_containers_start_two_servers_on_one_database() {
    let [services] = blocks("yaml").try_into().expect("one set of containers");
    let (mut environment, mut names) = (Vec::new(), Vec::new());
    for line in services.lines().map(str::trim) {
        if let Some((name, value)) = line.split_once(": ")
            && name.starts_with("ABIDE_")
        {
            environment.push((name.to_owned(), value.to_owned()));
        }
        let Some(command) = line.strip_prefix("command: ") else { continue };
        let words: Vec<String> = serde_json::from_str(command).expect("a list of words");
        let ("abide", words) = words.split_first().map(|(it, rest)| (it.as_str(), rest)).unwrap()
        else {
            continue;
        };
        let printed = printed(words, &std::mem::take(&mut environment));
        assert!(printed.contains("store = \"postgres://…@postgres:5432/abide"), "{printed}");
        let name = printed.lines().find(|line| line.starts_with("name = "));
        names.push(name.expect("it has a name").to_owned());
    }
    assert_eq!(names, ["name = \"one\"", "name = \"two\""]);
}
