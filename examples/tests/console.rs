//! Runs the blocks of a page that are marked `console`, in order, in one shell and one empty
//! folder. A line `$ command` is a command, and the lines below it are its expected output. There,
//! `…` stands for any text, and on its own line for any lines; ids, times and addresses may differ.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    os::unix::fs::symlink,
    path::PathBuf,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use tempfile::TempDir;

use crate::repository;

/// Read-only commands. Their output may take a moment to become true, so they are repeated until it
/// is.
const READERS: [&str; 7] = [
    "cat ",
    "abide waits ",
    "abide workflow list",
    "abide workflow describe",
    "abide workflow query",
    "abide workflow count",
    "abide schedule describe",
];

/// How long an output may take to become true.
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs a page and compares what is printed.
pub(crate) fn run_page(page: &str) {
    let text = repository::read(page);
    let mut shell = Shell::start();
    let steps = steps(&text);
    assert!(!steps.is_empty(), "{page} has no console block");
    for step in steps {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let printed = shell.run(&step.command);
            if matches(&step.expected, &printed) {
                break;
            }
            let reads = READERS.iter().any(|reader| step.command.starts_with(reader));
            assert!(
                reads && Instant::now() < deadline,
                "{page}: `{}` should print:\n{}\nand printed:\n{printed}",
                step.command,
                step.expected.join("\n")
            );
        }
    }
}

/// A command and what it prints.
#[derive(Debug, PartialEq)]
struct Step {
    command: String,
    expected: Vec<String>,
}

fn steps(page: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut inside = false;
    for line in page.lines() {
        if line.starts_with("```") {
            inside = line == "```console";
        } else if inside {
            match line.strip_prefix("$ ") {
                Some(command) => {
                    steps.push(Step { command: command.to_owned(), expected: Vec::new() })
                }
                None => steps.last_mut().expect("a command first").expected.push(line.to_owned()),
            }
        }
    }
    steps
}

/// A shell in its own folder, with the program `abide` and free ports for it.
struct Shell {
    bash: Child,
    input: ChildStdin,
    codes: BufReader<ChildStdout>,
    output: PathBuf,
    _folder: TempDir,
}

impl Shell {
    fn start() -> Self {
        let folder = TempDir::new().unwrap();
        let (programs, work) = (folder.path().join("bin"), folder.path().join("work"));
        fs::create_dir_all(&programs).unwrap();
        fs::create_dir_all(&work).unwrap();
        symlink(repository::abide(), programs.join("abide")).unwrap();
        let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
        let address = free_address();
        let mut bash = Command::new("bash")
            .args(["--noprofile", "--norc"])
            .current_dir(&work)
            .env("PATH", path)
            .env("ABIDE_ADDRESS", format!("http://{address}"))
            .env("ABIDE_LISTEN", &address)
            .env("ABIDE_HTTP", free_address())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut input = bash.stdin.take().unwrap();
        let codes = BufReader::new(bash.stdout.take().unwrap());
        // Jobs have numbers, as in a terminal.
        writeln!(input, "set -m").unwrap();
        Self { bash, input, codes, output: folder.path().join("output"), _folder: folder }
    }

    /// What the command prints, on both outputs.
    fn run(&mut self, command: &str) -> String {
        let output = self.output.display();
        writeln!(self.input, "{{ {command}\n}} > {output} 2>&1; echo $?").unwrap();
        let mut code = String::new();
        self.codes.read_line(&mut code).unwrap();
        fs::read_to_string(&self.output).unwrap()
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        // Ends whatever the page left running, however the test ends.
        let _ = writeln!(self.input, "kill -9 $(jobs -p); exit");
        let _ = self.bash.wait();
    }
}

/// An address that was free a moment ago.
fn free_address() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

fn matches(expected: &[String], printed: &str) -> bool {
    let expected: Vec<String> =
        expected.iter().map(|line| masked(line)).filter(|line| !line.is_empty()).collect();
    let printed: Vec<String> =
        printed.lines().map(masked).filter(|line| !line.is_empty()).collect();
    match_lines(&expected, &printed)
}

fn match_lines(expected: &[String], printed: &[String]) -> bool {
    match expected.split_first() {
        None => printed.is_empty(),
        Some((line, rest)) if line == "…" => {
            (0..=printed.len()).any(|skipped| match_lines(rest, &printed[skipped..]))
        }
        Some((line, rest)) => printed
            .split_first()
            .is_some_and(|(first, others)| match_line(line, first) && match_lines(rest, others)),
    }
}

/// `…` within a line stands for any text.
fn match_line(expected: &str, printed: &str) -> bool {
    let mut pieces = expected.split('…');
    let first = pieces.next().unwrap_or_default();
    let Some(mut left) = printed.strip_prefix(first) else { return false };
    let mut last = None;
    for piece in pieces {
        let Some(at) = left.find(piece) else { return false };
        left = &left[at + piece.len()..];
        last = Some(piece);
    }
    match last {
        None => left.is_empty(),
        Some(piece) => left.is_empty() || piece.is_empty() || printed.ends_with(piece),
    }
}

/// The line with single spaces, and placeholders for what differs each time.
fn masked(line: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    for word in line.split_whitespace() {
        words.push(masked_word(word));
        // `now`, `3 s ago` and `in 23 h` are all relative times.
        if let [.., number, unit, "ago"] = &*words.iter().map(String::as_str).collect::<Vec<_>>()
            && is_number(number)
            && is_unit(unit)
        {
            words.truncate(words.len() - 3);
            words.push("‹when›".into());
        } else if let [.., "in", number, unit] =
            &*words.iter().map(String::as_str).collect::<Vec<_>>()
            && is_number(number)
            && is_unit(unit)
        {
            words.truncate(words.len() - 3);
            words.push("‹when›".into());
        }
    }
    words.join(" ")
}

fn masked_word(word: &str) -> String {
    let core = word.trim_matches(|c| "(),".contains(c));
    let shape: String = core.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    let hexadecimal = |c: char| c.is_ascii_hexdigit() || c == '-';
    let mark = if core == "now" {
        "‹when›"
    } else if core.len() == 36 && core.chars().all(hexadecimal) {
        "‹id›"
    } else if shape == "0000-00-00" || shape == "00:00:00Z" || shape.starts_with("0000-00-00T") {
        "‹time›"
    } else if core.starts_with("http://127.0.0.1:") {
        "‹address›"
    } else {
        return word.to_owned();
    };
    word.replace(core, mark)
}

fn is_number(word: &str) -> bool {
    word.chars().all(|c| c.is_ascii_digit())
}

fn is_unit(word: &str) -> bool {
    ["ms", "s", "min", "h", "d"].contains(&word)
}

#[test]
fn a_page_is_read_as_commands_and_what_they_print() {
    let page = "text\n```console\n$ a b\none\ntwo\n$ c\n```\n```\n$ not this\n```\n";
    let step = |command: &str, expected: &[&str]| Step {
        command: command.into(),
        expected: expected.iter().map(|line| (*line).to_owned()).collect(),
    };
    assert_eq!(steps(page), [step("a b", &["one", "two"]), step("c", &[])]);
}

#[test]
fn what_differs_each_time_is_masked_and_the_rest_is_not() {
    let check = |expected: &str, printed: &str| {
        let expected: Vec<String> = expected.lines().map(str::to_owned).collect();
        matches(&expected, printed)
    };
    assert!(check(
        "started a (run 01a1e18d-abf0-7028-82d5-81fa56ac8771)",
        "started a (run 01a1e18d-0000-7028-82d5-81fa56ac8771)\n"
    ));
    assert!(check(
        "x  now  in 23 h (2026-11-16 23:32:00Z)",
        "x 3 s ago in 2 min (2027-01-01 00:00:00Z)"
    ));
    assert!(check("one\n…\nfour", "one\ntwo\nthree\nfour\n"));
    assert!(check("at … by …", "at noon by Ada"));
    assert!(!check("at … by Ada", "at noon by Bob"));
    assert!(!check("one", "one\ntwo"));
    assert!(!check("one\ntwo", "one"));
}
