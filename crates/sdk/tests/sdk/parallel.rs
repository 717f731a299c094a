//! Many things at once: fail fast, first success, bounds, windows and trees.

use abide::{Context, Error, Window, first_success, try_join, try_join_all};
use abide_core::{event::Fact, failure::Failure};
use abide_sdk_macros::{activity, workflow};

use crate::world::{World, seconds};

#[activity]
async fn work(item: u32) -> u32 {
    item
}

/// What the run of a test does at once.
#[derive(serde::Serialize, serde::Deserialize)]
enum Way {
    TryJoin,
    TryJoinAll,
    FirstSuccess,
    Map(usize),
    TryMap(usize),
    Window(usize),
    Tree,
}

#[derive(Default)]
struct Many;

#[workflow]
impl Many {
    #[run]
    async fn run(ctx: &Context<Self>, way: Way) -> abide::Result<String> {
        let call = |item| ctx.activity(work, item);
        let told = match way {
            Way::TryJoin => {
                let slow = async {
                    ctx.sleep(seconds(60)).await?;
                    abide::Result::Ok("slept")
                };
                let joined = try_join!(call(1), slow, call(2));
                tell(joined)
            }
            Way::TryJoinAll => tell(try_join_all((1..=4).map(call)).await),
            Way::FirstSuccess => {
                let first = first_success((1..=3).map(call)).await;
                let tell = |failures: Vec<Error>| failures.iter().map(Error::to_string).collect();
                format!("{:?}", first.map_err(|failures| -> Vec<String> { tell(failures) }))
            }
            Way::Map(limit) => {
                let all = ctx.map_bounded(limit, 1..=4, call).await;
                format!("{:?}", all.into_iter().map(tell).collect::<Vec<_>>())
            }
            Way::TryMap(limit) => tell(ctx.try_map_bounded(limit, 1..=4, call).await),
            Way::Window(limit) => {
                let (mut window, mut ended) = (Window::new(limit), Vec::new());
                for item in 1..=4 {
                    ended.extend(window.push(call(item)).await);
                    assert!(window.len() <= limit);
                }
                while let Some(next) = window.next().await {
                    ended.push(next);
                }
                assert!(window.is_empty());
                format!("{:?}", ended.into_iter().map(tell).collect::<Vec<_>>())
            }
            Way::Tree => {
                let add = |group: Vec<u32>| call(group.iter().sum());
                tell(ctx.reduce_tree(2, 2, 1..=5, add).await)
            }
        };
        if ctx.is_cancel_requested() {
            return Err(Error::new(told));
        }
        Ok(told)
    }
}

fn tell<T: std::fmt::Debug>(result: abide::Result<T>) -> String {
    result.map_or_else(|error| error.to_string(), |value| format!("{value:?}"))
}

/// The items of all calls so far.
fn called(world: &World<Many>) -> Vec<u32> {
    let item = |input| abide::payload::decode(input).unwrap();
    let calls = world.events.iter().filter_map(|event| match &event.body.fact {
        Fact::ActivityScheduled(scheduled) => Some(item(&scheduled.spec.input)),
        _ => None,
    });
    calls.collect()
}

fn boom(message: &str) -> Failure {
    Failure { message: message.into(), non_retryable: true, ..Failure::default() }
}

fn cancels(world: &World<Many>) -> usize {
    let cancel = |name: &&&str| ["ActivityCancelRequested", "TimerCancelled"].contains(*name);
    world.history().iter().filter(cancel).count()
}

#[test]
fn with_the_first_failure_the_others_are_cancelled() {
    for (way, cancelled) in [(Way::TryJoin, 2), (Way::TryJoinAll, 3)] {
        let mut world = World::<Many>::start(way);
        world.fail(work, boom("one"));
        assert_eq!(world.result().unwrap(), "activity work failed: one");
        assert_eq!(cancels(&world), cancelled);
        world.check();
    }
}

#[test]
fn without_failure_all_values_are_given_in_order() {
    let mut world = World::<Many>::start(Way::TryJoinAll);
    (1..=4).for_each(|item| world.complete(work, item * 10));
    assert_eq!(world.result().unwrap(), "[10, 20, 30, 40]");
    world.check();
    let mut world = World::<Many>::start(Way::TryJoin);
    (1..=2).for_each(|item| world.complete(work, item * 10));
    world.pass(seconds(60));
    assert_eq!(world.result().unwrap(), "(10, \"slept\", 20)");
    world.check();
}

#[test]
fn the_first_success_wins_and_the_others_are_cancelled() {
    let mut world = World::<Many>::start(Way::FirstSuccess);
    world.fail(work, boom("one"));
    world.complete(work, 20);
    assert_eq!(world.result().unwrap(), "Ok(20)");
    assert_eq!(cancels(&world), 1);
    world.check();
}

#[test]
fn without_success_all_failures_are_told_in_order() {
    let mut world = World::<Many>::start(Way::FirstSuccess);
    for message in ["one", "two", "three"] {
        world.fail(work, boom(message));
    }
    let told = ["one", "two", "three"].map(|message| format!("activity work failed: {message}"));
    assert_eq!(world.result().unwrap(), format!("Err({told:?})"));
    world.check();
}

#[test]
fn at_most_so_many_are_under_way_and_the_next_begins_when_any_ends() {
    for way in [Way::Map(2), Way::TryMap(2), Way::Window(2)] {
        let mut world = World::<Many>::start(way);
        assert_eq!(called(&world), [1, 2]);
        world.complete(work, 10);
        assert_eq!(called(&world), [1, 2, 3]);
        for result in [20, 30, 40] {
            assert!(world.run.activities.len() <= 2);
            world.evict();
            world.complete(work, result);
        }
        let numbers = world.result().unwrap().replace('"', "");
        assert_eq!(numbers, "[10, 20, 30, 40]");
        world.check();
    }
}

#[test]
fn a_failure_ends_a_map_that_fails_fast_and_no_other() {
    let mut world = World::<Many>::start(Way::TryMap(2));
    world.fail(work, boom("one"));
    assert_eq!(world.result().unwrap(), "activity work failed: one");
    assert_eq!((called(&world), cancels(&world)), (vec![1, 2], 1));
    world.check();

    let mut world = World::<Many>::start(Way::Map(0));
    world.fail(work, boom("one"));
    (2..=4).for_each(|item| world.complete(work, item));
    assert_eq!(
        world.result().unwrap(),
        r#"["activity work failed: one", "2", "3", "4"]"#,
        "a limit of zero is one"
    );
    world.check();
}

#[test]
fn after_a_cancel_request_the_rest_never_begins() {
    let mut world = World::<Many>::start(Way::Map(2));
    world.complete(work, 10);
    world.cancel();
    assert_eq!(called(&world), [1, 2, 3]);
    let told = r#"["10", "cancelled", "cancelled", "cancelled"]"#;
    assert_eq!(world.failure().unwrap().message, told);
    world.check();
}

#[test]
fn a_tree_reduces_neighbours_level_by_level() {
    let mut world = World::<Many>::start(Way::Tree);
    // (1 2) (3 4) 5, then (3 7) 5, then (10 5).
    assert_eq!(called(&world), [3, 7]);
    for sum in [3, 7, 10] {
        world.complete(work, sum);
    }
    assert_eq!(called(&world), [3, 7, 10, 15]);
    world.complete(work, 15);
    assert_eq!(world.result().unwrap(), "Some(15)");
    world.check();
}
