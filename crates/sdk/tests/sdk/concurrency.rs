//! Several things at once: select, join, spawn, and wakes within the run.

use abide::{Context, join, join_all, select};
use abide_core::{event::Fact, failure::Failure};
use abide_sdk_macros::{activity, workflow};
use futures_channel::oneshot;

use crate::world::{World, seconds};

#[activity]
async fn fetch(what: String) -> String {
    what
}

#[derive(Default)]
struct Race;

#[workflow]
impl Race {
    #[run]
    async fn run(ctx: &Context<Self>, both_ready: bool) -> abide::Result<String> {
        if both_ready {
            ctx.sleep(seconds(1)).await?;
        }
        let winner = select! {
            word = ctx.receive(Self::WORD) => format!("word {}", word?),
            fetched = ctx.activity(fetch, "x") => { fetched? }
            slept = ctx.sleep(seconds(60)) => {
                slept?;
                return Ok("nobody".into());
            },
        };
        ctx.sleep(seconds(1)).await?;
        Ok(winner)
    }

    #[signal]
    fn word(word: String);
}

#[test]
fn the_losers_of_a_select_are_given_up() {
    let mut world = World::<Race>::start(false);
    world.signal(Race::WORD, "hi");
    assert_eq!(
        world.history()[1..],
        [
            "TimerStarted",
            "ActivityScheduled",
            "TimerStarted",
            "SignalReceived",
            "TimerCancelled",
            "TimerCancelled",
            "ActivityCancelRequested",
            "TimerStarted",
            "ActivityCancelled"
        ]
    );
    world.pass(seconds(1));
    assert_eq!(world.result().unwrap(), "word hi");
    world.check();
}

#[test]
fn a_branch_may_return_from_the_run() {
    let mut world = World::<Race>::start(false);
    world.pass(seconds(60));
    assert_eq!(world.result().unwrap(), "nobody");
    world.check();
}

#[test]
fn the_first_branch_that_is_ready_wins_and_the_others_never_begin() {
    let mut world = World::<Race>::start(true);
    world.signal(Race::WORD, "early");
    world.pass(seconds(2));
    assert_eq!(world.result().unwrap(), "word early");
    assert!(!world.history().contains(&"ActivityScheduled"));
    world.check();
}

/// The activity ends in the very task that cancels it: the cancel is withdrawn.
#[test]
fn a_cancel_that_comes_too_late_is_withdrawn() {
    let mut world = World::<Race>::start(false);
    world.signal_raw("word", abide::payload::encode(&"hi".to_owned()).unwrap());
    world.complete(fetch, "fetched".into());
    assert!(!world.history().contains(&"ActivityCancelRequested"));
    world.pass(seconds(1));
    assert_eq!(world.result().unwrap(), "word hi");
    world.check();
}

#[derive(Default)]
struct Together;

#[workflow]
impl Together {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<Vec<String>> {
        let fetch_one = |what: &str| ctx.activity(fetch, what.to_owned());
        let (a, b) = join!(fetch_one("a"), async {
            ctx.sleep(seconds(1)).await?;
            fetch_one("b").await
        });
        let mut all = vec![a?, b?];
        for fetched in join_all(["c", "d", "e"].map(fetch_one)).await {
            all.push(fetched?);
        }
        Ok(all)
    }
}

#[test]
fn joined_futures_begin_in_the_order_in_which_they_are_written() {
    let mut world = World::<Together>::start(());
    world.pass(seconds(1));
    world.complete(fetch, "A".into());
    world.complete(fetch, "B".into());
    for result in ["C", "D", "E"] {
        world.evict();
        world.complete(fetch, result.into());
    }
    assert_eq!(world.result().unwrap(), ["A", "B", "C", "D", "E"]);
    let inputs = world.events.iter().filter_map(|event| match &event.body.fact {
        Fact::ActivityScheduled(scheduled) => Some(scheduled.spec.input[0].data.clone()),
        _ => None,
    });
    let expected = [&b"\"a\""[..], b"\"b\"", b"\"c\"", b"\"d\"", b"\"e\""];
    assert_eq!(inputs.collect::<Vec<_>>(), expected);
    world.check();
}

/// Waits for its own task, and for an update by a channel within the run.
#[derive(Default)]
struct Inner {
    finish: Option<oneshot::Sender<u32>>,
}

#[workflow]
impl Inner {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<(u32, u32)> {
        let (sender, receiver) = oneshot::channel();
        ctx.write(|state| state.finish = Some(sender));
        let own = ctx.clone();
        let task = ctx.spawn(async move {
            own.sleep(seconds(1)).await?;
            abide::Result::<u32>::Ok(1)
        });
        let (first, second) = join!(task, receiver);
        Ok((first?, second.map_err(abide::Error::from_source)?))
    }

    #[update]
    async fn finish(ctx: &Context<Self>, number: u32) -> Result<String, String> {
        let sender = ctx.write(|state| state.finish.take()).ok_or("finished already")?;
        sender.send(number).map_err(|_| "nobody listens")?;
        Ok("done".into())
    }
}

#[test]
fn spawned_tasks_and_wakes_within_the_run_are_deterministic() {
    let mut world = World::<Inner>::start(());
    world.update_raw("finish", abide::payload::encode(&2).unwrap());
    assert!(world.run.open());
    world.pass(seconds(1));
    assert_eq!(world.result(), Some((1, 2)));
    world.check();
}

#[test]
fn a_run_may_wait_for_nothing_but_its_handlers() {
    #[derive(Default)]
    struct Counter {
        added: u32,
        full: Option<oneshot::Sender<()>>,
    }

    #[workflow]
    impl Counter {
        #[run]
        async fn run(ctx: &Context<Self>) -> abide::Result<u32> {
            let (sender, receiver) = oneshot::channel();
            ctx.write(|state| state.full = Some(sender));
            receiver.await.map_err(abide::Error::from_source)?;
            Ok(ctx.read(|state| state.added))
        }

        #[signal]
        fn add(&mut self, number: u32) {
            self.added += number;
            if self.added >= 3 {
                self.full.take().map(|full| full.send(()));
            }
        }
    }

    let mut world = World::<Counter>::start(());
    world.signal(Counter::ADD, 1);
    assert!(world.faults.is_empty(), "{:?}", world.faults);
    world.signal(Counter::ADD, 2);
    assert_eq!(world.result(), Some(3));
    world.check();
}

/// An async update that does not wait has its outcome although it lets the run close.
#[test]
fn a_handler_is_polled_before_the_run_hears_of_it() {
    #[derive(Default)]
    struct Quick(Option<oneshot::Sender<()>>);

    #[workflow]
    impl Quick {
        #[run]
        async fn run(ctx: &Context<Self>) -> abide::Result<()> {
            let (sender, receiver) = oneshot::channel();
            ctx.write(|state| state.0 = Some(sender));
            select! {
                _ = receiver => Ok(()),
                slept = ctx.sleep(seconds(60)) => slept,
            }
        }

        #[update]
        async fn stop(ctx: &Context<Self>) {
            ctx.write(|state| state.0.take());
        }
    }

    let mut world = World::<Quick>::start(());
    assert_eq!(world.update(Quick::STOP, ()), Some(Ok(())));
    assert_eq!(
        world.history()[2..],
        ["UpdateAccepted", "UpdateCompleted", "TimerCancelled", "RunCompleted"]
    );
    world.check();
}

#[derive(Default)]
struct Dropped;

#[workflow]
impl Dropped {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<()> {
        let begun = ctx.activity(fetch, "begun").start();
        let never_begun = ctx.activity(fetch, "never begun");
        let nap = ctx.sleep(seconds(60)).start();
        drop((nap, never_begun, begun));
        ctx.activity(fetch, "awaited").await.map(drop)
    }
}

#[test]
fn what_is_dropped_is_cancelled_if_it_was_begun() {
    let mut world = World::<Dropped>::start(());
    assert_eq!(
        world.history()[1..],
        [
            "ActivityScheduled",
            "TimerStarted",
            "TimerCancelled",
            "ActivityCancelRequested",
            "ActivityScheduled",
            "ActivityCancelled"
        ]
    );
    world.fail(fetch, Failure { non_retryable: true, ..Failure::default() });
    world.check();
}
