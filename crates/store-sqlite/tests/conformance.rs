//! Runs the suite that every backend runs.

use abide_sqlite_disk::{Disk, Power};
use abide_store::conformance;
use abide_store_sqlite::{Options, SqliteStore};

#[test]
fn conforms() {
    let directory = tempfile::tempdir().unwrap();
    let mut paths = (0..).map(|number: u32| directory.path().join(format!("{number}.db")));
    conformance::run(|| SqliteStore::open(&Options::new(paths.next().unwrap())).unwrap());
}

#[test]
fn survives_closing() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options::new(directory.path().join("store"));
    conformance::run_reopened(SqliteStore::open(&options).unwrap(), |store| {
        drop(store);
        SqliteStore::open(&options).unwrap()
    });
}

#[test]
fn survives_a_power_cut() {
    let disk = Disk::register("conformance");
    let directory = tempfile::tempdir().unwrap();
    let mut options = Options::new(directory.path().join("store"));
    options.file_layer = Some("conformance".to_owned());
    options.checkpoint_bytes = 400 << 10;
    conformance::run_reopened(SqliteStore::open(&options).unwrap(), |store| {
        disk.set_power(Power::Off);
        drop(store);
        disk.restart(|| false);
        SqliteStore::open(&options).unwrap()
    });
}
