//! Signals, alone and together with a start, and queries.

use abide::{ConflictPolicy, client::ClientError, prelude::*};
use abide_core::run::Refusal;
use abide_sdk_testing::TestEnvironment;

use crate::table::page;

page!("signals-queries-updates.md", "messages.rs");

/// Collects items until it is asked to close.
#[derive(Default)]
struct List {
    items: Vec<String>,
}

#[workflow]
impl List {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<Vec<String>> {
        ctx.receive(Self::CLOSE).await?;
        Ok(ctx.read(|list| list.items.clone()))
    }

    #[signal]
    fn close();

    #[signal]
    fn add(&mut self, item: String) {
        self.items.push(item);
    }

    #[signal]
    async fn add_later(ctx: &Context<Self>, item: String) {
        if ctx.sleep(hours(1)).await.is_ok() {
            ctx.write(|list| list.items.push(item));
        }
    }

    #[query]
    fn len(&self) -> usize {
        self.items.len()
    }

    #[query]
    fn first(&self) -> String {
        self.items[0].clone()
    }
}

async fn environment() -> TestEnvironment {
    let env = TestEnvironment::new().await;
    env.worker(|worker| worker.workflow::<List>()).await.unwrap();
    env
}

/// A signal with a start, under this key.
async fn add(env: &TestEnvironment, item: &str, key: &str) -> (ListHandle, bool) {
    let start = env.client().start::<List>("list", ()).key(key);
    let start = start.on_conflict(ConflictPolicy::UseExisting);
    start.with_signal(List::ADD, item).started().await.unwrap()
}

/// An answer shows everything that was acknowledged before: code has dealt with it.
async fn settled(handle: &ListHandle) {
    handle.query(List::LEN, ()).await.unwrap();
}

async fn check(situation: &str, handle: &ListHandle) {
    settled(handle).await;
    PAGE.check(situation, &handle.history().await.unwrap());
}

#[tokio::test]
async fn a_signal_comes_with_the_start() {
    let env = environment().await;
    let (first, started) = add(&env, "bread", "one").await;
    assert!(started);
    check("with the start, and there is no run", &first).await;
    let (list, started) = add(&env, "milk", "two").await;
    assert_eq!((list.run_id(), started), (first.run_id(), false));
    check("with the start, and a run is open", &list).await;
    let (_, started) = add(&env, "milk", "two").await;
    assert!(!started);
    check("with the start and a key that was used, and the run is open", &list).await;

    first.signal(List::CLOSE, ()).await.unwrap();
    assert_eq!(first.result().await.unwrap(), ["bread", "milk"]);
    let (same, started) = add(&env, "milk", "two").await;
    assert_eq!((same.run_id(), started), (first.run_id(), false));
    check("with the start and a key that was used, and the run is closed", &same).await;
    let (next, started) = add(&env, "eggs", "three").await;
    assert!(started && next.run_id() != first.run_id());
    check("with the start, and the last run is closed", &next).await;
    let refused = env.client().start::<List>("list", ()).with_signal(List::ADD, "tea");
    assert!(matches!(refused.await, Err(ClientError::AlreadyExists { .. })));
    check("with the start, and the start is refused", &next).await;
}

#[tokio::test]
async fn signals_cannot_stop_a_run() {
    let env = environment().await;
    let list = env.client().start::<List>("list", ()).await.unwrap();
    settled(&list).await;
    list.signal_untyped("ad", Vec::new()).await.unwrap();
    check("a signal of a name that the workflow does not have", &list).await;
    let number = abide::payload::encode(&7).unwrap();
    list.signal_untyped("add", number).await.unwrap();
    check("a signal whose data cannot be read", &list).await;
    list.signal(List::CLOSE, ()).await.unwrap();
    assert!(list.result().await.unwrap().is_empty());
    let late = list.signal(List::ADD, "milk").await.unwrap_err();
    assert_eq!(late, ClientError::Refused(Refusal::RunClosed.into()));
    check("a signal to a closed run", &list).await;
}

#[tokio::test]
async fn a_run_waits_for_the_handlers_of_signals() {
    let env = environment().await;
    let list = env.client().start::<List>("list", ()).await.unwrap();
    settled(&list).await;
    list.signal(List::ADD_LATER, "bread").await.unwrap();
    settled(&list).await;
    list.signal(List::CLOSE, ()).await.unwrap();
    assert!(list.result().await.unwrap().is_empty());
    check("the run returns while the handler of a signal runs", &list).await;
}

#[tokio::test]
async fn queries_leave_no_trace_whatever_they_do() {
    let env = environment().await;
    let list = env.client().start::<List>("list", ()).await.unwrap();
    settled(&list).await;
    let message = |error| match error {
        ClientError::QueryFailed(failure) => failure.to_string(),
        other => panic!("{other:?}"),
    };
    let panicked = message(list.query(List::FIRST, ()).await.unwrap_err());
    assert!(panicked.starts_with("query first panicked: index out of bounds"), "{panicked}");
    check("a query panics", &list).await;
    let unknown = message(list.query_untyped("last", Vec::new()).await.unwrap_err());
    assert_eq!(unknown, "workflow List has no query last; it has: len, first");
    check("there is no such query", &list).await;
}
