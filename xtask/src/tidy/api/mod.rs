//! The public API of the crate `abide`, pinned as text: what users can name, with all signatures. A
//! change that is not recorded is a problem, so that it cannot happen unseen.
//!
//! The text is made from the source alone, with no compiler: the re-exports of the facade are followed
//! to their definitions (`sources`), which are printed with their methods and trait impls (`print`).
//! Every type of ours in a signature must be exported too, or users could not name it; what is not for
//! users is `#[doc(hidden)]`. What is exported must be able to grow (`growth`).

mod growth;
mod print;
mod sources;

use std::fs;

use crate::{
    files::{self, File},
    output,
    problem::Problem,
    workspace::Workspace,
};

use self::{
    print::Printer,
    sources::{Definition, Sources},
};

/// The pinned text.
const PINNED: &str = "crates/abide/public-api.txt";

/// The crate whose API is pinned.
const FACADE: &str = "abide";

/// Compares the API with the pinned text, and looks for types that users cannot name.
pub(crate) fn check(files: &[File]) -> Vec<Problem> {
    let sources = match Sources::read(files) {
        Ok(sources) => sources,
        Err(problem) => return problem.into(),
    };
    let printer = Printer::new(&sources, FACADE);
    let pinned = files::find(files, PINNED).and_then(File::text).unwrap_or_default();
    let mut problems = differences(pinned, &printer.text());
    problems.extend(unnamed(&printer));
    problems.extend(closed(&sources, &printer));
    problems
}

/// Writes the API of today.
pub(crate) fn record(workspace: &Workspace) -> Result<(), Vec<Problem>> {
    let sources = Sources::read(&files::read(&workspace.root)?)?;
    let api = Printer::new(&sources, FACADE).text();
    fs::write(workspace.root.join(PINNED), &api).map_err(|error| {
        Problem::new(PINNED, format!("cannot write: {error}"), "make it writable")
    })?;
    output::line(&format!("api: {} lines in {PINNED}", api.lines().count()));
    Ok(())
}

fn unnamed(printer: &Printer<'_>) -> Vec<Problem> {
    let fix = "export the type from the crate abide, or hide what mentions it by #[doc(hidden)]";
    let problem = |(name, place)| {
        Problem::new(PINNED, format!("{place} mentions {name}, which users cannot name"), fix)
    };
    printer.unnamed().map(problem).collect()
}

/// What could not grow without breaking programs.
fn closed(sources: &Sources, printer: &Printer<'_>) -> Vec<Problem> {
    let fix = "make it #[non_exhaustive], or export a view of the SDK; what is complete by its meaning is in the list \
               of xtask/src/tidy/api/growth.rs";
    let fault = |definition: &Definition| {
        let fault = growth::fault(sources, definition)?;
        Some(Problem::new(PINNED, format!("{} {fault}", definition.name), fix))
    };
    printer.exported().filter_map(fault).collect()
}

/// The first lines in which the two differ.
fn differences(pinned: &str, api: &str) -> Vec<Problem> {
    const SHOWN: usize = 5;
    let fix = "if the change is meant, run `cargo xtask api` and commit the file; say it in docs/migrating.md \
               if it breaks programs";
    let new = |lines: &str, than: &str, what: &str| -> Vec<Problem> {
        let than: std::collections::BTreeSet<&str> = than.lines().collect();
        let lines = lines.lines().filter(|line| !than.contains(line)).take(SHOWN);
        lines.map(|line| Problem::new(PINNED, format!("{what}: {}", line.trim()), fix)).collect()
    };
    let mut problems = new(pinned, api, "no longer in the API");
    problems.extend(new(api, pinned, "new in the API"));
    if problems.is_empty() && pinned != api {
        problems.push(Problem::new(PINNED, "the lines have another order", fix));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    const FACADE_SOURCE: &str = "//! Front.
        pub mod calls { pub use abide_sdk::deep::{Call, Way}; }
        pub use abide_sdk::{Shape, greet as hello, Both};
        #[doc(hidden)] pub use abide_sdk::Secret;";

    const SDK_SOURCE: &str = "
        mod inner;
        pub mod deep { pub use super::inner::*; }
        pub use self::inner::{Shape, Both};
        pub struct Secret;
        pub fn greet(name: &str) -> String { name.into() }
        impl Shape { pub fn area(&self) -> u32 { 1 } fn hidden(&self) {} #[doc(hidden)] pub fn no(&self) {} }
        #[cfg(test)] mod tests { impl super::Shape { pub fn of_test(&self) {} } }
        macro_rules! limited { ($t:ty) => { impl $t { pub fn limit(self, rows: usize) -> Self { self } } } }
        limited!(Shape);";

    const INNER_SOURCE: &str = "
        #[derive(Clone)] pub struct Shape { pub width: u32, height: u32 }
        pub struct Call<T>(T);
        impl<T> IntoFuture for Call<T> { type Output = T; fn into_future(self) {} }
        pub enum Way { Back(u8), To { at: u64 }, None }
        pub trait Both { type Out; fn both(&self) -> Self::Out { todo() } }";

    fn api_of(sdk: &str, inner: &str) -> String {
        let files = [
            File::new("crates/abide/src/lib.rs", FACADE_SOURCE),
            File::new("crates/sdk/src/lib.rs", sdk),
            File::new("crates/sdk/src/inner.rs", inner),
        ];
        Printer::new(&Sources::read(&files).unwrap(), FACADE).text()
    }

    #[test]
    fn exported_items_have_their_signatures_and_others_are_left_out() {
        let api = api_of(SDK_SOURCE, INNER_SOURCE);
        for expected in [
            "abide::Shape\n",
            "pub struct Shape {",
            "derive(Clone)",
            "pub width: u32",
            "pub fn area(&self) -> u32",
            "by limited!",
            "pub fn limit(self, rows: usize) -> Self",
            "abide::hello\n",
            "pub fn greet(name: &str) -> String",
            "abide::calls::Call\n",
            "impl<T> IntoFuture for Call<T>",
            "type Output = T",
            "Back(u8)\n",
            "To { at: u64 }\n",
            "fn both(&self) -> Self::Out",
        ] {
            assert!(api.contains(expected), "{expected} is not in:\n{api}");
        }
        for hidden in ["height", "hidden", "no(&self)", "Secret", "of_test", "todo"] {
            assert!(!api.contains(hidden), "{hidden} is in:\n{api}");
        }
    }

    #[test]
    fn a_changed_signature_is_noticed() {
        let before = api_of(SDK_SOURCE, INNER_SOURCE);
        assert_eq!(differences(&before, &before), []);
        let changed = [
            (SDK_SOURCE.replace("-> u32 { 1 }", "-> u64 { 1 }"), INNER_SOURCE.to_owned()),
            (SDK_SOURCE.replace("rows: usize", "rows: u32"), INNER_SOURCE.to_owned()),
            (SDK_SOURCE.to_owned(), INNER_SOURCE.replace("pub width: u32", "pub width: u64")),
            (SDK_SOURCE.to_owned(), INNER_SOURCE.replace("type Output = T", "type Output = u8")),
        ];
        for (sdk, inner) in changed {
            let problems = differences(&before, &api_of(&sdk, &inner));
            assert_eq!(problems.len(), 2, "{problems:?}");
        }
    }

    #[test]
    fn a_type_that_users_cannot_name_is_found() {
        let unnamed_in = |inner: &str| {
            let files = [
                File::new("crates/abide/src/lib.rs", FACADE_SOURCE),
                File::new("crates/sdk/src/lib.rs", SDK_SOURCE),
                File::new("crates/sdk/src/inner.rs", inner),
            ];
            unnamed(&Printer::new(&Sources::read(&files).unwrap(), FACADE)).len()
        };
        assert_eq!(unnamed_in(INNER_SOURCE), 0);
        let private = format!("pub struct Inside; {INNER_SOURCE}");
        assert_eq!(unnamed_in(&private), 0);
        for (from, to) in [
            ("pub width: u32", "pub width: Option<Inside>"),
            ("Back(u8)", "Back(Inside)"),
            ("type Output = T", "type Output = Inside"),
            ("both(&self)", "both(&self, inside: &Inside)"),
        ] {
            assert_eq!(unnamed_in(&private.replace(from, to)), 1, "{to}");
        }
    }
}
