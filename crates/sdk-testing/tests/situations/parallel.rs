//! Many things at once.

use std::sync::atomic::{AtomicU64, Ordering};

use abide::{client::ClientError, event::Fact, prelude::*};
use abide_sdk_testing::TestEnvironment;

use crate::{
    site::{Site, count, until, until_count},
    table::page,
};

page!("parallel.md", "parallel.rs");

/// Fails for odd numbers from 100 on.
#[activity]
async fn double(number: u32) -> Result<u32, ActivityError> {
    match number {
        100.. if number % 2 == 1 => {
            Err(ActivityError::new(format!("{number} is odd")).non_retryable())
        }
        _ => Ok(number * 2),
    }
}

#[activity]
async fn add(numbers: Vec<u32>) -> u32 {
    numbers.iter().sum()
}

/// Does what its input says, one thing of this page each.
#[derive(Default)]
struct Many;

#[workflow]
impl Many {
    #[run]
    async fn run(ctx: &Context<Self>, what: String) -> abide::Result<String> {
        let call = |number| ctx.activity(double, number);
        // For a worker that never comes.
        let stuck = |number| ctx.activity(double, number).queue("nowhere");
        Ok(match what.as_str() {
            "join" => {
                let slept = async {
                    ctx.sleep(hours(1)).await?;
                    Ok::<_, Error>("slept")
                };
                let (one, two, slept) = join!(call(1), call(101), slept);
                format!("{} | {} | {}", tell(one), tell(two), tell(slept))
            }
            "try join" => {
                let slept = async {
                    ctx.sleep(hours(1)).await?;
                    Ok::<_, Error>("slept")
                };
                tell(try_join!(slept, stuck(1), call(101)))
            }
            "first success" => {
                let first = first_success([call(101), stuck(1), call(2)]).await;
                format!("{:?}", first.ok())
            }
            "no success" => match first_success([call(101), call(103)]).await {
                Ok(value) => format!("{value}"),
                Err(failures) => {
                    failures.iter().map(Error::to_string).collect::<Vec<_>>().join(" | ")
                }
            },
            "bounded" => tell(ctx.try_map_bounded(2, 1..=4, call).await),
            "bounded, all" => {
                let all = ctx.map_bounded(1, 100..=102, call).await;
                all.into_iter().map(tell).collect::<Vec<_>>().join(" | ")
            }
            "bounded, fails" => tell(ctx.try_map_bounded(1, 101..200, call).await),
            "bounded, cancelled" => {
                let all = ctx.map_bounded(2, 1..=100, stuck).await;
                let cancelled = all.iter().filter(|it| matches!(it, Err(Error::Cancelled)));
                format!("{} were cancelled", cancelled.count())
            }
            _ => {
                let doubles = ctx.try_map_bounded(5, 1..=5, call).await?;
                let sum = ctx.reduce_tree(2, 2, doubles, |group| ctx.activity(add, group));
                format!("{:?}", sum.await?)
            }
        })
    }
}

fn tell<T: std::fmt::Debug>(result: abide::Result<T>) -> String {
    result.map_or_else(|error| error.to_string(), |value| format!("{value:?}"))
}

/// Plays a situation that needs nothing but time.
async fn play(what: &str, situation: &str) -> String {
    let env = TestEnvironment::new().await;
    env.worker(|worker| worker.workflow::<Many>().activity(double).activity(add)).await.unwrap();
    let many = env.client().start::<Many>("many", what).await.unwrap();
    let result = many.result().await.unwrap();
    PAGE.check(situation, &many.history().await.unwrap());
    result
}

#[tokio::test]
async fn results_of_any_kind_are_joined() {
    let told = play("join", "results of any kind are joined").await;
    assert_eq!(told, "2 | activity double failed: 101 is odd | \"slept\"");
}

#[tokio::test]
async fn with_the_first_failure_the_others_are_cancelled() {
    let told = play("try join", "one of several fails, and the others are not needed").await;
    assert_eq!(told, "activity double failed: 101 is odd");
}

#[tokio::test]
async fn the_first_success_wins() {
    assert_eq!(play("first success", "the first success is enough").await, "Some(4)");
}

#[tokio::test]
async fn without_success_all_failures_are_told_in_order() {
    let told = play("no success", "none succeeds").await;
    let failed = |number| format!("activity double failed: {number} is odd");
    assert_eq!(told, format!("{} | {}", failed(101), failed(103)));
}

#[tokio::test]
async fn items_are_done_so_many_at_a_time() {
    assert_eq!(play("bounded", "four items, two at a time").await, "[2, 4, 6, 8]");
}

#[tokio::test]
async fn every_item_has_its_own_result() {
    let told = play("bounded, all", "one item fails, and all results are wanted").await;
    assert_eq!(told, "200 | activity double failed: 101 is odd | 204");
}

#[tokio::test]
async fn the_first_failure_ends_it() {
    let told = play("bounded, fails", "one item fails, and the rest is not wanted").await;
    assert_eq!(told, "activity double failed: 101 is odd");
}

#[tokio::test]
async fn values_are_reduced_by_a_tree() {
    assert_eq!(play("tree", "five values are reduced in pairs").await, "Some(30)");
}

#[tokio::test]
async fn after_a_cancel_request_the_rest_never_begins() {
    let site = Site::open().await;
    site.work(|worker| worker.workflow::<Many>());
    let what = "bounded, cancelled".to_owned();
    let many = site.client().start::<Many>("many", what).await.unwrap();
    until(&many, |fact| matches!(fact, Fact::ActivityScheduled(_))).await;
    many.cancel().await.unwrap();
    assert_eq!(many.result().await.unwrap(), "100 were cancelled");
    PAGE.check("a hundred items are cancelled", &many.history().await.unwrap());
}

/// Works through pages of numbers, five at a time, a few pages per run.
#[derive(Default)]
struct Pages;

#[activity]
async fn page_of(page: u32) -> Vec<u32> {
    if page < 3 { (page * 3..page * 3 + 3).collect() } else { Vec::new() }
}

#[workflow]
impl Pages {
    #[run]
    async fn run(ctx: &Context<Self>, page: u32, sum: u32) -> abide::Result<u32> {
        let (mut window, mut sum) = (Window::new(2), sum);
        let items = ctx.activity(page_of, page).await?;
        let last = items.is_empty();
        for item in items {
            if let Some(done) = window.push(ctx.activity(double, item)).await {
                sum += done?;
            }
        }
        while let Some(done) = window.next().await {
            sum += done?;
        }
        if last { Ok(sum) } else { Err(ctx.continue_as_new((page + 1, sum))) }
    }
}

#[tokio::test]
async fn a_window_slides_over_pages_and_runs() {
    let env = TestEnvironment::new().await;
    env.worker(|worker| worker.workflow::<Pages>().activity(double).activity(page_of))
        .await
        .unwrap();
    let pages = env.client().start::<Pages>("pages", (0, 0)).await.unwrap();
    assert_eq!(pages.result().await.unwrap(), (0..9).map(|number| number * 2).sum::<u32>());
    let first = env.client().handle::<Pages>("pages").run(pages.run_id().unwrap());
    PAGE.check(
        "a window slides over a page, then the run goes on",
        &first.history().await.unwrap(),
    );
}

/// Adds up a range: splits it among children until it is small.
#[derive(Default)]
struct Sum;

#[workflow]
impl Sum {
    #[run]
    async fn run(ctx: &Context<Self>, from: u32, to: u32) -> abide::Result<u32> {
        if to - from <= 2 {
            return Ok((from..to).sum());
        }
        let middle = from.midpoint(to);
        let half = |from: u32, to: u32| {
            ctx.child::<Self>(format!("{}/{from}-{to}", ctx.workflow_id()), (from, to))
        };
        let (left, right) = try_join!(half(from, middle), half(middle, to))?;
        Ok(left + right)
    }
}

#[tokio::test]
async fn a_tree_of_children_has_a_history_for_each_part() {
    let env = TestEnvironment::new().await;
    env.worker(|worker| worker.workflow::<Sum>()).await.unwrap();
    let sum = env.client().start::<Sum>("sum", (0, 16)).await.unwrap();
    assert_eq!(sum.result().await.unwrap(), 120);
    let history = sum.history().await.unwrap();
    PAGE.check("halves are left to children", &history);
    assert_eq!(count(&history, "ChildInitiated"), 2);
}

/// The engine and all workers die in the middle.
#[tokio::test]
async fn what_is_done_is_not_done_again_after_a_crash() {
    let mut site = Site::open().await;
    let set_up = |worker: Worker| {
        worker.workflow::<Many>().activity(double).activity(add).max_concurrent_activities(1)
    };
    let worker = site.work(set_up);
    let many = site.client().start::<Many>("many", "bounded").await.unwrap();
    until_count(&many, 2, |fact| matches!(fact, Fact::ActivityCompleted(_))).await;
    worker.kill().await;
    site.reopen().await;
    site.work(set_up);
    let many = site.client().handle::<Many>("many");
    assert_eq!(many.result().await.unwrap(), "[2, 4, 6, 8]");
    let history = many.history().await.unwrap();
    assert_eq!(count(&history, "ActivityCompleted"), 4);
    PAGE.check("the engine crashes between two items", &history);
}

static POLLS: AtomicU64 = AtomicU64::new(0);

/// Sleeps ten thousand times, a thousand at a time.
#[derive(Default)]
struct Thousands;

#[workflow]
impl Thousands {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<usize> {
        let nap = |item: u64| async move {
            let mut nap = std::pin::pin!(ctx.sleep(seconds(1 + item % 7)).into_future());
            std::future::poll_fn(|cx| {
                POLLS.fetch_add(1, Ordering::Relaxed);
                nap.as_mut().poll(cx)
            })
            .await
        };
        Ok(ctx.try_map_bounded(1_000, 0..10_000, nap).await?.len())
    }
}

#[tokio::test]
async fn ten_thousand_items_cost_two_polls_each() {
    let env = TestEnvironment::new().await;
    env.worker(|worker| worker.workflow::<Thousands>()).await.unwrap();
    let thousands = env.client().start::<Thousands>("thousands", ()).await.unwrap();
    assert_eq!(thousands.result().await.unwrap(), 10_000);
    assert_eq!(POLLS.load(Ordering::Relaxed), 20_000, "once when it begins, once when it ends");
    let history = thousands.history().await.unwrap();
    assert_eq!((count(&history, "TimerStarted"), count(&history, "TimerFired")), (10_000, 10_000));
    PAGE.check("ten thousand items, a thousand at a time", &history);
}

/// The limit of the engine is reached before that of the run's code.
#[tokio::test]
async fn too_many_at_once_are_refused() {
    #[derive(Default)]
    struct Unbounded;

    #[workflow]
    impl Unbounded {
        #[run]
        async fn run(ctx: &Context<Self>) -> abide::Result<()> {
            try_join_all((0..10_001).map(|_| ctx.sleep(hours(1)))).await.map(drop)
        }
    }

    let site = Site::open().await;
    site.work(|worker| worker.workflow::<Unbounded>());
    let unbounded = site.client().start::<Unbounded>("unbounded", ()).await.unwrap();
    let history = until(&unbounded, |fact| matches!(fact, Fact::TaskFailed(_))).await;
    PAGE.check("more than ten thousand concurrently", &history);
    unbounded.terminate("enough").await.unwrap();
    assert!(matches!(unbounded.result().await, Err(ClientError::RunTerminated(_))));
}
