//! The licences of everything that is linked into the binary: a table of crates, then each text once with the
//! crates that it is for.

use std::{collections::BTreeMap, fmt::Write as _, fs, path::Path};

use crate::{problem::Problem, tidy::dependencies::graph::Crate};

/// How files with licences and notices begin, in capitals.
const NAMES: &[&str] = &["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE"];

/// The list for these crates.
pub(super) fn list(crates: &[&Crate]) -> Result<String, Problem> {
    let mut table = String::new();
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for found in crates.iter().filter(|found| found.source.is_some()) {
        let licence = found.license.as_deref().unwrap_or("see below");
        let _ = writeln!(table, "{found}: {licence}");
        for text in texts_of(found)? {
            texts.entry(text).or_default().push(found.to_string());
        }
    }
    let mut list = format!(
        "Abide contains these crates, each under its licence. Where a licence offers a choice, Abide takes\n\
         Apache-2.0 or else MIT.\n\n{table}"
    );
    for (text, users) in texts {
        let _ = write!(list, "\n{}\n{}\n\n{text}\n", "=".repeat(80), users.join(", "));
    }
    Ok(list)
}

/// The files of a crate's folder that are licences or notices.
fn texts_of(found: &Crate) -> Result<Vec<String>, Problem> {
    let folder = found.manifest_path.parent().unwrap_or(Path::new("."));
    let unreadable = |error: std::io::Error| {
        Problem::new(folder.display().to_string(), error.to_string(), "run `cargo fetch --locked`")
    };
    let mut texts = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let name = entry.file_name().to_string_lossy().to_uppercase();
        if NAMES.iter().any(|start| name.starts_with(start)) && entry.path().is_file() {
            let text = fs::read(entry.path()).map_err(unreadable)?;
            texts.push(String::from_utf8_lossy(&text).replace("\r\n", "\n").trim().to_owned());
        }
    }
    texts.sort();
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_text_is_there_once_with_its_crates() {
        let folder = tempfile::tempdir().unwrap();
        let krate = |name: &str, ours: bool| {
            let own = folder.path().join(name);
            fs::create_dir(&own).unwrap();
            fs::write(own.join("LICENSE-MIT"), "Do as you like.\r\n").unwrap();
            fs::write(own.join("README.md"), "not a licence").unwrap();
            Crate {
                name: name.to_owned(),
                version: "1.0.0".to_owned(),
                license: Some("MIT".to_owned()),
                source: (!ours).then(|| "registry+somewhere".to_owned()),
                manifest_path: own.join("Cargo.toml"),
                ..Crate::default()
            }
        };
        let (one, two, ours) = (krate("one", false), krate("two", false), krate("ours", true));
        let list = list(&[&one, &two, &ours]).unwrap();
        assert!(list.contains("one 1.0.0: MIT\ntwo 1.0.0: MIT\n"), "{list}");
        assert!(list.contains("\none 1.0.0, two 1.0.0\n\nDo as you like.\n"), "{list}");
        assert!(!list.contains("ours") && !list.contains("not a licence"), "{list}");
    }
}
