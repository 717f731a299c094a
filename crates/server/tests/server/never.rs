//! The time that stands for "never" over the network: nobody may lose a nanosecond of it, because only
//! the exact value is recognised.

use abide::{Client, Context, Timestamp, Worker, list::WaitFilter};
use abide_core::event::Fact;
use abide_sdk::workflow;

use crate::support::{config, server, transport};

#[derive(Default)]
struct Waiter;

#[workflow]
impl Waiter {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<String> {
        ctx.receive(Self::GO).await
    }

    #[signal]
    fn go(text: String);
}

#[tokio::test]
async fn the_end_of_a_wait_without_deadline_survives_the_wire_exactly() {
    let never: Timestamp = "9999-12-31T23:59:59.999999999Z".parse().unwrap();
    let server = server(config()).await;
    let client = Client::new(transport(&server));
    let worker = Worker::new(&client).build_id("test").workflow::<Waiter>().max_cached_runs(0);
    let worker = tokio::spawn(worker.run());
    let waiter = client.start::<Waiter>("waiter", ()).await.unwrap();

    let mut follower = waiter.follow_history();
    let fire_at = loop {
        let events = follower.next().await.unwrap().unwrap();
        let timer = events.iter().find_map(|event| match event.fact() {
            Fact::TimerStarted(started) => Some(started.spec.clone()),
            _ => None,
        });
        if let Some(timer) = timer {
            assert!(timer.optional(), "the command went over the wire, and the event came back");
            break timer.fire_at;
        }
    };
    assert_eq!(fire_at, never);
    assert_eq!(waiter.describe().await.unwrap().waits[0].until, None);
    let waits = client.waits(WaitFilter::default()).take(10).await.unwrap();
    assert_eq!(waits[0].until, None);

    // The worker keeps no run, so it replays what it has read from the server.
    waiter.signal(Waiter::GO, "yes").await.unwrap();
    assert_eq!(waiter.result().await.unwrap(), "yes");
    worker.abort();
}
