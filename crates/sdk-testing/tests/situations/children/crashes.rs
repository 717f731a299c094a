//! Parent and child on different shards of an engine on a file, which crashes after every event of the
//! parent, and whose workers die with it. (The shard's own tests crash at every single step.)

use abide::Worker;

use super::{Kid, Parent, charge};
use crate::site::{Site, count, key, names};

fn set_up(worker: Worker) -> Worker {
    worker.workflow::<Parent>().workflow::<Kid>().activity(charge)
}

/// Lets a parent run to its end, with a crash after every event that is seen; gives the names of its
/// events.
async fn crash_through(plan: &str) -> (Site, Vec<&'static str>) {
    assert_ne!(key("parent").slot().shard(), key("kid").slot().shard());
    let mut site = Site::open().await;
    let parent = site.client().start::<Parent>("parent", plan.to_owned()).await.unwrap();
    let (run, mut seen, mut crashes) = (parent.run_id().unwrap(), 0, 0);
    loop {
        let worker = site.work(set_up);
        let mut follower = site.client().handle::<Parent>("parent").run(run).follow_history();
        let mut history = Vec::new();
        while history.len() <= seen {
            match follower.next().await.unwrap() {
                Some(events) => history.extend(events),
                None => return (site, names(&history)),
            }
        }
        seen = history.len();
        worker.kill().await;
        site.reopen().await;
        crashes += 1;
        assert!(crashes < 100, "no end: {:?}", names(&history));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_completes_once() {
    let (site, parent) = crash_through("7").await;
    let expected =
        ["RunStarted", "ChildInitiated", "ChildStarted", "ChildCompleted", "RunCompleted"];
    assert_eq!(parent, expected);
    let kid = site.client().handle::<Kid>("kid").history().await.unwrap();
    assert_eq!(names(&kid), ["RunStarted", "RunCompleted"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_that_continues_as_new_is_followed() {
    let (site, parent) = crash_through("go on").await;
    assert_eq!(parent.iter().filter(|name| **name == "ChildStarted").count(), 1);
    assert_eq!(parent.last(), Some(&"RunCompleted"));
    let kid = site.client().handle::<Kid>("kid");
    assert_eq!(kid.result().await.unwrap(), 8);
    assert_eq!(names(&kid.history().await.unwrap()), ["RunStarted", "RunCompleted"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_failure_of_a_grandchild_comes_up_whole() {
    let (site, parent) = crash_through("buy").await;
    assert_eq!(parent[3..], ["ChildFailed", "RunFailed"]);
    let kid = site.client().handle::<Kid>("kid").history().await.unwrap();
    assert_eq!(count(&kid, "ChildStarted"), 1);
    let till = site.client().handle::<Kid>("till").history().await.unwrap();
    assert_eq!(count(&till, "ActivityScheduled"), 1);
}
