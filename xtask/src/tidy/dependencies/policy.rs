//! `deny.toml`, as far as it can be checked without a network.

use serde::Deserialize;

/// What is allowed.
pub(super) struct Policy {
    /// Names of licences.
    pub(super) allowed: Vec<String>,
    pub(super) skip: Vec<Skipped>,
}

/// A second version of a crate that is known and has a reason.
pub(super) struct Skipped {
    pub(super) name: String,
    /// The beginning of a version, up to a dot.
    pub(super) version: String,
}

#[derive(Deserialize)]
struct Document {
    licenses: Licenses,
    bans: Bans,
}

#[derive(Deserialize)]
struct Licenses {
    allow: Vec<String>,
}

#[derive(Deserialize)]
struct Bans {
    skip: Vec<Skip>,
}

#[derive(Deserialize)]
struct Skip {
    #[serde(rename = "crate")]
    spec: String,
    reason: String,
}

impl Policy {
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let document: Document = toml::from_str(text).map_err(|error| error.to_string())?;
        let skip = document.bans.skip.into_iter().map(Skipped::read).collect::<Result<_, _>>()?;
        Ok(Self { allowed: document.licenses.allow, skip })
    }
}

impl Skipped {
    fn read(skip: Skip) -> Result<Self, String> {
        if skip.reason.is_empty() {
            return Err(format!("skips {} without a reason", skip.spec));
        }
        let (name, version) = skip
            .spec
            .split_once('@')
            .ok_or_else(|| format!("skips every version of {}: write name@version", skip.spec))?;
        Ok(Self { name: name.to_owned(), version: version.to_owned() })
    }

    pub(super) fn matches(&self, name: &str, version: &str) -> bool {
        let rest = version.strip_prefix(self.version.as_str());
        self.name == name && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skipped_crate_has_a_version_and_a_reason() {
        let read = |spec: &str, reason: &str| {
            Skipped::read(Skip { spec: spec.to_owned(), reason: reason.to_owned() })
        };
        let skipped = read("syn@2", "macros").unwrap();
        assert!(skipped.matches("syn", "2.0.1") && !skipped.matches("syn", "20.0.0"));
        assert!(!skipped.matches("synstructure", "2.0.1"));
        assert!(read("syn", "macros").is_err_and(|why| why.contains("write name@version")));
        assert!(read("syn@2", "").is_err_and(|why| why.contains("without a reason")));
    }
}
