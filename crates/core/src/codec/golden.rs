//! Golden files: the bytes of one example of everything that is stored, with all fields set,
//! followed by their readable form. A file is a promise to existing data and never changes. When a
//! type grows, its example no longer matches the newest file and another file is added; the older
//! ones must still decode completely. `ABIDE_WRITE_GOLDEN=1` writes missing files.

use std::{collections::BTreeSet, fmt::Write, fs, path::PathBuf};

use bytes::Bytes;

use super::examples::{self, Example};

const WRITE: &str = "ABIDE_WRITE_GOLDEN";

#[test]
fn golden_files_hold() {
    let examples = examples::all();
    for example in &examples {
        check(example);
    }
    let names: BTreeSet<_> = examples.iter().map(|example| example.name.as_str()).collect();
    assert_eq!(names.len(), examples.len(), "two examples have the same name");
    for entry in fs::read_dir(folder()).unwrap() {
        let file = entry.unwrap().file_name().into_string().unwrap();
        let name = file.split('.').next().unwrap();
        assert!(names.contains(name), "{file} has no example: what was stored must stay readable");
    }
}

/// Checks that every file survives a round trip, and that the newest equals the example.
fn check(example: &Example) {
    let name = &example.name;
    let mut newest = None;
    let mut version = 1;
    while let Ok(text) = fs::read_to_string(file(name, version)) {
        let (bytes, said) = parse(&text);
        let (again, says) = (example.reread)(bytes.clone());
        assert_eq!(again, bytes, "{name}.{version} is not written as it was; it now says\n{says}");
        newest = Some((bytes, contains_lines(&says, said)));
        version += 1;
    }
    match newest {
        Some((bytes, _)) if bytes == example.bytes => {}
        Some((_, false)) => write(example, version, "renamed"),
        Some((_, true)) | None => write(example, version, "1"),
    }
}

/// Writes a missing file, if `ABIDE_WRITE_GOLDEN` is set. It requires another value if the newest
/// file now decodes differently, which is right for a renamed type and wrong for a changed tag.
fn write(example: &Example, version: u32, word: &str) {
    let path = file(&example.name, version);
    let wanted = std::env::var(WRITE).is_ok_and(|value| value == word);
    assert!(
        wanted,
        "golden file {} is missing: either the type has grown or has new names, then write it with \
         {WRITE}={word}, or its encoding has changed by mistake",
        path.display(),
    );
    fs::write(path, print(example)).unwrap();
}

/// Whether every line of `part` is in `whole`, in order.
fn contains_lines(whole: &str, part: &str) -> bool {
    let mut whole = whole.lines();
    part.lines().all(|line| whole.any(|candidate| candidate == line))
}

fn folder() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "golden", "codec"].iter().collect()
}

fn file(name: &str, version: u32) -> PathBuf {
    folder().join(format!("{name}.{version}.txt"))
}

/// Hexadecimal digits, 32 bytes per line, then an empty line, then the readable form.
fn print(example: &Example) -> String {
    let mut text = String::new();
    for line in example.bytes.chunks(32) {
        for byte in line {
            write!(text, "{byte:02x}").unwrap();
        }
        text.push('\n');
    }
    text + "\n" + &example.says
}

fn parse(text: &str) -> (Bytes, &str) {
    let (digits, said) = text.split_once("\n\n").unwrap();
    let digits: Vec<_> = digits.chars().filter_map(|digit| digit.to_digit(16)).collect();
    let byte = |pair: &[u32]| u8::try_from(pair[0] * 16 + pair[1]).unwrap();
    (digits.chunks(2).map(byte).collect::<Vec<_>>().into(), said)
}
