//! Signals, queries and updates.

use abide::{ClientError, ConflictPolicy, Context, client::Client};
use abide_core::{event::Fact, run::Refusal};
use abide_embedded::Embedded;
use abide_sdk::workflow;

use crate::world::Running;

#[derive(Default)]
struct Cart {
    items: Vec<String>,
}

#[workflow]
impl Cart {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<Vec<String>> {
        let code: u32 = ctx.receive(Self::PAY).await?;
        Ok(ctx.read(|cart| cart.items.iter().map(|item| format!("{item} {code}")).collect()))
    }

    #[signal]
    fn add(&mut self, item: String) {
        self.items.push(item);
    }

    #[signal]
    fn pay(code: u32);

    #[query]
    fn count(&self) -> usize {
        self.items.len()
    }

    #[update(validate = check_item)]
    fn replace(&mut self, place: usize, item: String) -> Result<String, String> {
        let old = self.items.get_mut(place).ok_or("there is no such item")?;
        Ok(std::mem::replace(old, item))
    }

    #[expect(clippy::ptr_arg, reason = "a validator gets a reference to each argument as it is")]
    fn check_item(&self, _place: &usize, item: &String) -> Result<(), String> {
        if item.is_empty() { Err("an item has a name".into()) } else { Ok(()) }
    }

    #[update]
    async fn wait_for(ctx: &Context<Self>, item: String) -> abide::Result<usize> {
        let added: String = ctx.receive(Self::ANNOUNCE).await?;
        ctx.write(|cart| cart.items.extend([item, added]));
        Ok(ctx.read(|cart| cart.items.len()))
    }

    #[signal]
    fn announce(item: String);
}

async fn shop() -> (Embedded, Client, Running) {
    let engine = Embedded::in_memory().await;
    let running = Running::start(engine.worker().workflow::<Cart>());
    let client = engine.client();
    (engine, client, running)
}

#[tokio::test]
async fn signals_change_the_state_and_queries_read_it() {
    let (_engine, client, running) = shop().await;
    let cart = client.start::<Cart>("cart", ()).await.unwrap();
    assert_eq!(cart.query(Cart::COUNT, ()).await.unwrap(), 0);
    cart.signal(Cart::ADD, "tea").await.unwrap();
    cart.signal(Cart::ADD, "milk").key("second").await.unwrap();
    cart.signal(Cart::ADD, "milk").key("second").await.unwrap();
    assert_eq!(cart.query(Cart::COUNT, ()).await.unwrap(), 2);
    cart.signal(Cart::PAY, 7).await.unwrap();
    assert_eq!(cart.result().await.unwrap(), ["tea 7", "milk 7"]);
    assert_eq!(cart.query(Cart::COUNT, ()).await.unwrap(), 2, "also of a closed run");
    running.stop().await;
}

#[tokio::test]
async fn an_unknown_query_is_told_the_known_ones() {
    let (_engine, client, running) = shop().await;
    let cart = client.start::<Cart>("cart", ()).await.unwrap();
    let error = cart.query_untyped("price", Vec::new()).await.unwrap_err();
    let ClientError::QueryFailed(failure) = error else { panic!("{error}") };
    assert!(failure.message().contains("price"), "{}", failure.message());
    assert!(failure.message().contains("count"), "{}", failure.message());
    running.stop().await;
}

#[tokio::test]
async fn updates_are_refused_or_have_an_outcome() {
    let (_engine, client, running) = shop().await;
    let start = client.start::<Cart>("cart", ()).with_signal(Cart::ADD, "tea");
    let cart = start.await.unwrap();
    assert_eq!(cart.update(Cart::REPLACE, (0, "cocoa")).await.unwrap(), "tea");
    let rejected = cart.update(Cart::REPLACE, (0, String::new())).await.unwrap_err();
    let ClientError::UpdateRejected(failure) = rejected else { panic!("{rejected}") };
    assert_eq!(failure.message(), "an item has a name");
    let failed = cart.update(Cart::REPLACE, (9, "x")).await.unwrap_err();
    let ClientError::UpdateFailed(failure) = failed else { panic!("{failed}") };
    assert_eq!(failure.message(), "there is no such item");
    running.stop().await;
}

#[tokio::test]
async fn an_update_is_accepted_first_and_completed_later() {
    let (_engine, client, running) = shop().await;
    let cart = client.start::<Cart>("cart", ()).await.unwrap();
    let update = cart.update(Cart::WAIT_FOR, "tea").id("one").start().await.unwrap();
    cart.signal(Cart::ANNOUNCE, "milk").await.unwrap();
    assert_eq!(update.result().await.unwrap(), 2);
    let again = cart.update(Cart::WAIT_FOR, "tea").id("one").await.unwrap();
    assert_eq!(again, 2, "a repeat has the outcome of the first");
    running.stop().await;
}

#[tokio::test]
async fn a_second_start_is_refused_or_finds_the_first() {
    let (_engine, client, running) = shop().await;
    let cart = client.start::<Cart>("cart", ()).await.unwrap();
    let run = cart.run_id().unwrap();
    let error = client.start::<Cart>("cart", ()).await.unwrap_err();
    let ClientError::AlreadyExists { run: existing, .. } = error else { panic!("{error}") };
    assert_eq!(existing, run);
    let start = client.start::<Cart>("cart", ()).on_conflict(ConflictPolicy::UseExisting);
    assert_eq!(start.await.unwrap().run_id(), Some(run));
    let start = client.start::<Cart>("cart", ()).on_conflict(ConflictPolicy::TerminateExisting);
    assert_ne!(start.await.unwrap().run_id(), Some(run));
    running.stop().await;
}

#[tokio::test]
async fn what_operators_do_takes_effect_once_per_key() {
    let (_engine, client, running) = shop().await;
    let cart = client.start::<Cart>("cart", ()).await.unwrap();
    cart.pause("lunch").key("lunch").await.unwrap();
    cart.unpause("lunch is over").await.unwrap();
    cart.pause("lunch").key("lunch").await.unwrap();
    assert_eq!(cart.query(Cart::COUNT, ()).await.unwrap(), 0, "it is not paused again");
    cart.terminate("closed").key("evening").await.unwrap();
    cart.terminate("closed").key("evening").await.unwrap();
    let error = cart.terminate("closed").await.unwrap_err();
    assert_eq!(error, ClientError::Refused(Refusal::RunClosed.into()));
    let paused = |fact: &Fact| matches!(fact, Fact::RunPaused(_));
    let history = cart.history().await.unwrap();
    assert_eq!(history.iter().filter(|event| paused(event.fact())).count(), 1);
    running.stop().await;
}

#[tokio::test]
async fn bad_requests_name_the_field() {
    let (_engine, client, running) = shop().await;
    let error = client.start::<Cart>("", ()).await.unwrap_err();
    let ClientError::Invalid { problem, .. } = &error else { panic!("{error}") };
    assert_eq!(problem, "is empty");
    let error = client.handle::<Cart>("nobody").signal(Cart::PAY, 1).await.unwrap_err();
    assert_eq!(error, ClientError::NotFound);
    let elsewhere = client.with_namespace("elsewhere");
    let error = elsewhere.start::<Cart>("cart", ()).await.unwrap_err();
    let ClientError::Invalid { field, .. } = &error else { panic!("{error}") };
    assert_eq!(field, "namespace");
    running.stop().await;
}
