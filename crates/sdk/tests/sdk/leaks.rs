//! Nothing of a run stays in memory when its machine is dropped.

use std::{
    cell::RefCell,
    rc::{Rc, Weak},
};

use abide::Context;
use abide_sdk_macros::workflow;

use crate::world::{World, seconds};

thread_local! {
    /// What spawned futures of this test's runs own.
    static OWNED: RefCell<Vec<Weak<()>>> = const { RefCell::new(Vec::new()) };
}

/// Spawns a task that is never polled: the run ends, or panics, in the same poll.
#[derive(Default)]
struct Hasty;

#[workflow]
impl Hasty {
    #[run]
    async fn run(ctx: &Context<Self>, panics: bool) -> abide::Result<()> {
        let owned = Rc::new(());
        OWNED.with_borrow_mut(|all| all.push(Rc::downgrade(&owned)));
        let own = ctx.clone();
        ctx.spawn(async move {
            let slept = own.sleep(seconds(1)).await;
            drop(owned);
            slept
        });
        assert!(!panics, "as asked");
        Ok(())
    }
}

#[test]
fn a_task_that_was_spawned_at_the_very_end_is_dropped() {
    for panics in [false, true] {
        drop(World::<Hasty>::start(panics));
        let owned = OWNED.take();
        assert!(!owned.is_empty());
        assert!(owned.iter().all(|owned| owned.upgrade().is_none()), "panics: {panics}");
    }
}
