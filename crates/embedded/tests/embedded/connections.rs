//! Answers that are lost and streams that end: what was asked for happens once.

use std::sync::atomic::Ordering;

use abide::{Client, ClientError, Context, Worker};
use abide_core::run::Refusal;
use abide_embedded::Embedded;
use abide_sdk::{activities, workflow};

use crate::{
    unsteady::Unsteady,
    world::{Gate, Running},
};

struct Gated(Gate);

#[activities]
impl Gated {
    #[activity]
    async fn pass(&self) {
        self.0.pass().await;
    }
}

#[derive(Default)]
struct Tally {
    sum: u32,
}

#[workflow]
impl Tally {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<u32> {
        ctx.activity(Gated::pass, ()).await?;
        ctx.receive(Self::close).await?;
        Ok(ctx.read(|tally| tally.sum))
    }

    #[signal]
    fn add(&mut self, number: u32) {
        self.sum += number;
    }

    #[update]
    fn double(&mut self) -> u32 {
        self.sum *= 2;
        self.sum
    }

    #[signal]
    fn close();
}

fn worker(client: &Client, gate: &Gate) -> Worker {
    Worker::new(client).workflow::<Tally>().activities(Gated(gate.clone()))
}

#[tokio::test]
async fn an_unanswered_call_is_repeated_and_takes_effect_once() {
    let engine = Embedded::in_memory().await;
    let gate = Gate::new();
    gate.open();
    let running = Running::start(worker(&engine.client(), &gate));
    let unsteady = Unsteady::new(&engine);
    let client = unsteady.client();
    let handle = client.start::<Tally>("tally", ()).await.unwrap();
    handle.signal(Tally::add, 10).await.unwrap();
    handle.signal(Tally::add, 11).await.unwrap();
    assert_eq!(handle.update(Tally::double, ()).await.unwrap(), 42);
    handle.signal(Tally::close, ()).await.unwrap();
    assert_eq!(handle.result().await.unwrap(), 42);
    assert_eq!(unsteady.lost.load(Ordering::SeqCst), 6, "every first answer was lost");

    gate.open();
    let handle = client.start::<Tally>("another", ()).await.unwrap();
    handle.terminate("enough").await.unwrap();
    let other = handle.terminate("of something else").await.unwrap_err();
    assert_eq!(other, ClientError::Refused(Refusal::RunClosed));
    running.stop().await;
}

#[tokio::test]
async fn an_attempt_outlives_the_stream_that_brought_it() {
    let engine = Embedded::in_memory().await;
    let unsteady = Unsteady::new(&engine);
    let gate = Gate::new();
    let running = Running::start(worker(&unsteady.client(), &gate));
    let handle = engine.client().start::<Tally>("tally", ()).await.unwrap();
    gate.visitor().await;
    unsteady.cut.notify_one();
    gate.open();
    handle.signal(Tally::close, ()).await.unwrap();
    assert_eq!(handle.result().await.unwrap(), 0);
    assert_eq!(gate.visits(), 1, "the attempt was kept");
    assert_eq!(unsteady.streams.load(Ordering::SeqCst), 2);
    running.stop().await;
}
