//! An engine whose clock is set forward and back again.

use std::{sync::Arc, time::Duration};

use abide_core::run::Close;
use abide_engine::{
    Engine, Options,
    clock::{AheadClock, Clock, SystemClock},
};
use abide_program::Node;
use abide_store::memory::MemoryStore;
use tokio::time::timeout;

use crate::support::{closed, connect, history, programs, start, work, workflow};

const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_starts_after_the_clock_was_set_back_has_the_true_time_and_sleeps_no_longer() {
    let clock = Arc::new(AheadClock::default());
    let options = Options { clock: Arc::clone(&clock) as Arc<dyn Clock>, ..Options::default() };
    let engine = Arc::new(Engine::start(Arc::new(MemoryStore::default()), options));
    let programs = programs([("nap", vec![Node::Sleep(Duration::from_millis(300))])]);
    let worker = tokio::spawn(work(Arc::clone(&engine), connect(&engine, "worker"), programs));
    let nap = async |id: &str| {
        let run = start(&engine, id, "nap").await;
        let ended = timeout(Duration::from_secs(60), closed(&engine, id)).await;
        assert_eq!(ended.expect("it ends in time"), (run, Close::Completed));
        let times = history(&engine, &workflow(id), run).await;
        let times: Vec<_> = times.into_iter().map(|event| event.time).collect();
        assert!(times.is_sorted(), "{times:?}");
        times
    };
    let set = async |ahead, expected: &str| {
        clock.set_ahead(ahead);
        // Idle shards notice the step, too.
        while engine
            .health()
            .clock
            .is_none_or(|clock| !clock.step.to_string().starts_with(expected))
        {
            tokio::task::yield_now().await;
        }
    };
    nap("before").await;
    set(HOUR, "+3").await;
    let ahead = nap("meanwhile").await;
    set(Duration::ZERO, "-3").await;
    assert_eq!(engine.figures().clock_steps, 2, "all shards saw it, and it counts once");
    let begun = SystemClock.now();
    for number in 0..10 {
        let times = nap(&format!("after-{number}")).await;
        assert!(begun <= times[0] && times[0] < ahead[0], "{times:?}");
    }
    worker.abort();
}
