//! Waits as clients in other languages see them: listed by every filter, shown one by one, moved by their
//! names, and followed as they change.

use std::{sync::Arc, time::Duration};

use abide::{Client, Context, Deadline, Timestamp, Worker};
use abide_core::{codec::Wire, event::Condition, ids::RunId, operation::RunTarget};
use abide_engine::{Engine, Options};
use abide_program::Node;
use abide_proto::generated::{self as wire, abide_client::AbideClient};
use abide_sdk::workflow;
use abide_server::Server;
use tonic::{Code, Status, Streaming, transport::Channel};

use crate::{
    observed::ObservedStore,
    support::{
        client, config, programs, server, server_with_clock, spawn_worker, start, target, transport,
    },
};

/// Waits until two signals have come, for at most an hour, and then for one more.
fn patient() -> Vec<Node> {
    let condition = Condition { key: Some("paid.twice".into()), fingerprint: Some("f".into()) };
    let until = Node::WaitUntil {
        condition,
        signal: "paid".into(),
        at_least: 2,
        timeout: Some(Duration::from_secs(3600)),
    };
    vec![until, Node::signal("ship")]
}

async fn list(
    client: &mut AbideClient<Channel>,
    filter: wire::WaitFilter,
) -> Vec<(String, wire::WaitKind)> {
    let request = wire::ListWaitsRequest { filter: Some(filter), ..Default::default() };
    let page = client.list_waits(request).await.expect("a page").into_inner();
    let of = |wait: &wire::WaitSummary| wait.workflow.clone().unwrap_or_default().workflow;
    page.waits.iter().map(|wait| (of(wait), wait.kind())).collect()
}

async fn follow(client: &mut AbideClient<Channel>, id: &str) -> Streaming<wire::RunWaits> {
    let request = wire::FollowWaitsRequest { target: Some(target(id).into()), after: 0 };
    client.follow_waits(request).await.expect("it is followed").into_inner()
}

/// The next change.
async fn next(stream: &mut Streaming<wire::RunWaits>) -> wire::RunWaits {
    stream.message().await.expect("the stream goes on").expect("a change")
}

/// The next change that leaves the run waiting for something.
async fn next_wait(stream: &mut Streaming<wire::RunWaits>) -> wire::ShownWait {
    loop {
        let mut change = next(stream).await;
        if let Some(wait) = change.waits.pop() {
            assert!(change.waits.is_empty(), "the run waits for one thing at a time");
            return wait;
        }
    }
}

async fn signal(client: &mut AbideClient<Channel>, id: &str, name: &str) {
    try_signal(client, id, name).await.expect("it is taken");
}

async fn try_signal(client: &mut AbideClient<Channel>, id: &str, name: &str) -> Result<(), Status> {
    let signal = wire::Signal { name: name.into(), ..Default::default() };
    let target = Some(target(id).into());
    let request = wire::SignalRunRequest { target, signal: Some(signal), ..Default::default() };
    client.signal_run(request).await.map(drop)
}

#[tokio::test]
async fn the_waits_of_a_run_are_pushed_as_they_change() {
    let (server, clock) = server_with_clock(config()).await;
    let transport = transport(&server);
    let mut client = client(&server).await;
    start(&*transport, "order", "patient").await;
    let mut changes = follow(&mut client, "order").await;
    assert!(next(&mut changes).await.waits.is_empty(), "its code has not run");
    let worker = spawn_worker(&transport, "one", &programs([("patient", patient())])).await;

    let wait = next_wait(&mut changes).await;
    assert_eq!((wait.kind(), wait.name.as_str()), (wire::WaitKind::Condition, "paid.twice"));
    let ends: Vec<_> = wait.ended_by().collect();
    assert_eq!(ends, [wire::WaitEnd::Condition, wire::WaitEnd::Deadline]);

    let later = server.engine().now().saturating_add(Duration::from_secs(7200));
    let reschedule = wire::RescheduleTimerRequest {
        target: Some(target("order").into()),
        wait: Some(wait.wait.clone()),
        fire_at: Some(later.to_wire()),
        identity: "anna".into(),
        ..Default::default()
    };
    client.reschedule_timer(reschedule).await.expect("it is moved");
    let moved = next_wait(&mut changes).await;
    assert_eq!((moved.until, moved.moves), (Some(later.to_wire()), 1));
    let request = wire::GetWaitRequest { target: Some(target("order").into()), wait: wait.wait };
    let shown = client.get_wait(request.clone()).await.expect("it is open").into_inner();
    assert_eq!(shown, moved);

    clock.move_to(later);
    let wait = next_wait(&mut changes).await;
    assert_eq!((wait.until, wait.timer), (Some(later.to_wire()), None), "its deadline has come");
    let wait = next_wait(&mut changes).await;
    assert_eq!((wait.kind(), wait.name.as_str()), (wire::WaitKind::Signal, "ship"));
    let gone = client.get_wait(request).await.expect_err("it has ended");
    assert_eq!(gone.code(), Code::NotFound);

    signal(&mut client, "order", "ship").await;
    let last = next(&mut changes).await;
    assert!(last.waits.is_empty() && last.closed);
    assert!(changes.message().await.expect("a clean end").is_none());
    worker.abort();
}

/// The shard forgets all and is opened anew. Who follows is told nothing twice, and misses nothing.
#[tokio::test]
async fn a_follower_outlives_its_shard() {
    let store = Arc::new(ObservedStore::default());
    let engine = Engine::start(store.clone(), Options::default());
    let server = Server::serve(config(), Arc::new(engine)).await.expect("it starts");
    server.ready().await;
    let transport = transport(&server);
    let mut client = client(&server).await;
    start(&*transport, "order", "patient").await;
    let worker = spawn_worker(&transport, "one", &programs([("patient", patient())])).await;
    let mut changes = follow(&mut client, "order").await;
    let wait = next_wait(&mut changes).await;
    assert_eq!(wait.name, "paid.twice");

    store.lose_next_answer();
    let forgotten = try_signal(&mut client, "order", "paid").await.expect_err("nobody knows");
    assert_eq!(forgotten.code(), Code::Aborted);
    while try_signal(&mut client, "order", "paid").await.is_err() {}
    let wait = next_wait(&mut changes).await;
    assert_eq!(wait.name, "ship", "the first signal was written, too");
    worker.abort();
}

#[tokio::test]
async fn who_lost_the_stream_goes_on_where_it_was() {
    let (server, _) = server_with_clock(config()).await;
    let transport = transport(&server);
    let mut client = client(&server).await;
    start(&*transport, "order", "patient").await;
    let worker = spawn_worker(&transport, "one", &programs([("patient", patient())])).await;
    let mut changes = follow(&mut client, "order").await;
    let mut last = next(&mut changes).await;
    while last.waits.is_empty() {
        last = next(&mut changes).await;
    }
    drop(changes);

    let run = RunId::from_slice(&last.run);
    let on = |run, after| {
        let target = RunTarget { run, ..target("order") };
        wire::FollowWaitsRequest { target: Some(target.into()), after }
    };
    let unnamed = client.follow_waits(on(None, 1)).await.expect_err("a row of which run?");
    assert_eq!(unnamed.code(), Code::InvalidArgument);
    let again = client.follow_waits(on(run, last.log_row)).await;
    let mut changes = again.expect("it is followed").into_inner();
    signal(&mut client, "order", "paid").await;
    signal(&mut client, "order", "paid").await;
    let wait = next_wait(&mut changes).await;
    assert_eq!(wait.name, "ship", "what was known is not told again");
    worker.abort();
}

#[tokio::test]
async fn a_move_names_a_timer_or_a_wait() {
    let (server, _) = server_with_clock(config()).await;
    let mut client = client(&server).await;
    let both = wire::RescheduleTimerRequest {
        target: Some(target("order").into()),
        timer: "1".into(),
        wait: Some("t2".into()),
        fire_at: Some(server.engine().now().to_wire()),
        ..Default::default()
    };
    let refused = client.reschedule_timer(both).await.expect_err("which one?");
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert!(refused.message().contains("excludes a timer"), "{}", refused.message());
}

#[tokio::test]
async fn waits_are_listed_by_workflow_type_kind_name_and_age() {
    let (server, clock) = server_with_clock(config()).await;
    let transport = transport(&server);
    let mut client = client(&server).await;
    let programs = programs([("patient", patient()), ("sleeper", vec![Node::sleep(60)])]);
    let worker = spawn_worker(&transport, "one", &programs).await;
    start(&*transport, "order", "patient").await;
    next_wait(&mut follow(&mut client, "order").await).await;
    let before = server.engine().now().saturating_add(Duration::from_secs(1));
    clock.move_to(before);
    start(&*transport, "nap", "sleeper").await;
    next_wait(&mut follow(&mut client, "nap").await).await;

    let order = [("order".to_owned(), wire::WaitKind::Condition)];
    let nap = [("nap".to_owned(), wire::WaitKind::Timer)];
    let of = |change: fn(&mut wire::WaitFilter)| {
        let mut filter = wire::WaitFilter::default();
        change(&mut filter);
        filter
    };
    let by_type = of(|filter| filter.workflow_type = Some("sleeper".into()));
    assert_eq!(list(&mut client, by_type).await, nap);
    let by_workflow = of(|filter| {
        filter.namespace = Some("default".into());
        filter.workflow = Some("order".into());
    });
    assert_eq!(list(&mut client, by_workflow).await, order);
    let by_name = of(|filter| {
        filter.set_kind(wire::WaitKind::Condition);
        filter.name = Some("paid.twice".into());
    });
    assert_eq!(list(&mut client, by_name).await, order);
    let old = wire::WaitFilter { since_before: Some(before.to_wire()), ..Default::default() };
    assert_eq!(list(&mut client, old).await, order);
    let soon = before.saturating_add(Duration::from_secs(60));
    let due = wire::WaitFilter { until: Some(soon.to_wire()), ..Default::default() };
    assert_eq!(list(&mut client, due).await, nap);
    worker.abort();
}

#[tokio::test]
async fn a_name_that_no_list_shows_is_refused() {
    let (server, _) = server_with_clock(config()).await;
    start(&*transport(&server), "order", "patient").await;
    let mut client = client(&server).await;
    let target = Some(target("order").into());
    let bad = wire::GetWaitRequest { target, wait: "zzz".into() };
    let refused = client.get_wait(bad).await.expect_err("no such name");
    assert_eq!(refused.code(), Code::InvalidArgument);
    let target = Some(crate::support::target("order").into());
    let long = wire::GetWaitRequest { target, wait: format!("t{}", "x".repeat(1001)).into() };
    let refused = client.get_wait(long).await.expect_err("it is too long");
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert!(refused.message().contains("has 1001 bytes"), "{}", refused.message());
    let nowhere = Some(crate::support::target("none").into());
    let nowhere = wire::FollowWaitsRequest { target: nowhere, after: 0 };
    let mut stream = client.follow_waits(nowhere).await.expect("a stream").into_inner();
    let ended = stream.message().await.expect_err("there is no such run");
    assert_eq!(ended.code(), Code::NotFound);
}

/// Tells the deadline that it waits for.
#[derive(Default)]
struct Offer {
    deadline: Deadline,
}

#[workflow]
impl Offer {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<()> {
        let wait = ctx.sleep(Duration::from_secs(3600)).start();
        ctx.write(|offer| offer.deadline = wait.deadline());
        wait.await
    }

    #[query]
    fn deadline(&self) -> Option<Timestamp> {
        self.deadline.at()
    }
}

#[tokio::test]
async fn a_query_tells_the_deadline_that_a_client_has_moved_before_any_task() {
    let server = server(config()).await;
    let client = Client::new(transport(&server));
    let worker = Worker::new(&client).build_id("test").workflow::<Offer>();
    let test = async {
        let offer = client.start::<Offer>("offer", ()).await.expect("it starts");
        let deadline = || async { offer.query(Offer::DEADLINE, ()).await.expect("an answer") };
        let first = deadline().await.expect("it waits");
        let moved = first + Duration::from_secs(3600);
        offer.reschedule_timer("timer-1", moved).await.expect("it is moved");
        assert_eq!(deadline().await, Some(moved));
        offer.terminate("enough").await.expect("it ends");
    };
    worker.run_until(test).await.expect("it works");
    server.shutdown().await.expect("it stops");
}
