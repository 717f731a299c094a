//! Runs the suite that every backend runs.

use abide_store::conformance;
use abide_store_sqlite::{Options, SqliteStore};

#[test]
fn conforms() {
    let directory = tempfile::tempdir().unwrap();
    let mut paths = (0..).map(|number: u32| directory.path().join(format!("{number}.db")));
    conformance::run(|| SqliteStore::open(&Options::new(paths.next().unwrap())).unwrap());
}
