//! The rows by which lists find runs, also of runs that an older version began.

use abide_store::{Batch, RunFilter, Write, rows::RunRow};

use crate::harness::{World, shard_of};

/// The row of the only run.
fn row(world: &World) -> RunRow {
    let mut rows = world.tables.runs(&RunFilter::default(), 2);
    assert_eq!(rows.len(), 1);
    rows.remove(0)
}

#[test]
fn a_row_of_an_older_version_is_completed_when_its_run_changes() {
    let mut world = World::new();
    world.start("w");
    let whole = row(&world);
    assert_eq!(whole.queue, "queue");
    let old = RunRow { queue: String::new(), parent: None, ..whole.clone() };
    let shard = shard_of("w");
    let epoch = world.tables.shard(shard).epoch;
    let put = Batch { shard, epoch, writes: vec![Write::PutRun(old.clone())] };
    world.tables.apply(&put).expect("it is written");
    world.crash();
    world.describe("w");
    assert_eq!(row(&world), old, "who only reads changes nothing");
    world.signal("w", "once").expect("it is taken");
    assert_eq!(row(&world), whole);
    world.crash();
    world.signal("w", "again").expect("it is taken");
    assert_eq!(row(&world), whole);
}
