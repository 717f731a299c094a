//! What the macro gives to clients: handles whose methods are the messages of the workflow, and
//! functions that start it.

use abide::{ClientError, ConflictPolicy, Context, client::WorkflowHandle};
use abide_embedded::Embedded;
use abide_sdk::workflow;

use crate::world::Running;

/// In a module, so that other code sees only what is public.
mod library {
    use abide::Context;
    use abide_sdk::workflow;
    use serde::{Deserialize, Serialize};

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    pub(super) struct Item {
        pub(super) name: String,
        pub(super) count: u32,
    }

    #[derive(Default)]
    pub(super) struct Basket {
        items: Vec<Item>,
    }

    #[workflow]
    impl Basket {
        // The names of the arguments are also those that the generated function would choose.
        #[run]
        async fn run(ctx: &Context<Self>, client: String, id: u32) -> abide::Result<String> {
            ctx.receive(Self::PAY).await?;
            Ok(ctx.read(|basket| format!("{client} {id}: {}", basket.items.len())))
        }

        /// Puts something in.
        #[signal]
        pub(crate) fn put(&mut self, name: String, count: u32) {
            self.items.push(Item { name, count });
        }

        #[signal]
        pub(crate) fn pay();

        #[query]
        pub(crate) fn first(&self) -> Option<Item> {
            self.items.first().cloned()
        }

        #[update]
        pub(crate) fn exchange(&mut self, item: Item) -> Result<Item, String> {
            let first = self.items.first_mut().ok_or("the basket is empty")?;
            Ok(std::mem::replace(first, item))
        }
    }
}

use library::{Basket, BasketHandle, Item};

async fn fill(basket: &BasketHandle) -> Result<(), ClientError> {
    basket.put("pear", 2).key("pears").await?;
    basket.put("pear", 2).key("pears").await
}

#[tokio::test]
async fn messages_are_methods_of_the_handle() {
    let engine = Embedded::in_memory().await;
    let running = Running::start(engine.worker().workflow::<Basket>());
    let client = engine.client();
    let basket = Basket::start(&client, "basket-1", "Ada", 7).await.unwrap();
    assert!(basket.exchange(Item { name: "fig".into(), count: 1 }).await.is_err());
    fill(&basket).await.unwrap();

    let again = client.handle::<Basket>("basket-1");
    let fig = Item { name: "fig".into(), count: 9 };
    let pear = again.exchange(&fig).id("exchange-1").await.unwrap();
    assert_eq!(pear, Item { name: "pear".into(), count: 2 });
    let bound = again.run(basket.run_id().unwrap()).clone();
    assert_eq!(bound.first().await.unwrap(), Some(fig));

    basket.pay().await.unwrap();
    assert_eq!(basket.result().await.unwrap(), "Ada 7: 1");
    running.stop().await;
}

#[derive(Default)]
struct Timer;

#[workflow]
impl Timer {
    #[run]
    async fn run(_ctx: &Context<Self>, seconds: u64) -> abide::Result<u64> {
        Ok(seconds)
    }

    /// Its own function; the generated one gives way.
    fn start(client: &abide::Client) -> abide::client::Start<Self> {
        client.start::<Self>("the-timer", 60).on_conflict(ConflictPolicy::UseExisting)
    }
}

#[tokio::test]
async fn a_start_of_the_block_takes_precedence() {
    let engine = Embedded::in_memory().await;
    let running = Running::start(engine.worker().workflow::<Timer>());
    let client = engine.client();
    let own: WorkflowHandle<Timer> = Timer::start(&client).await.unwrap();
    assert_eq!((own.id().as_str(), own.result().await.unwrap()), ("the-timer", 60));
    let drawn = Timer::start_new(&client, 5).await.unwrap();
    assert!(drawn.id().as_str().starts_with("Timer-"), "{}", drawn.id());
    assert_eq!(drawn.result().await.unwrap(), 5);
    running.stop().await;
}

#[workflow]
async fn echo(_ctx: &Context, text: String) -> String {
    text
}

#[tokio::test]
async fn a_function_workflow_is_started_by_its_name() {
    let engine = Embedded::in_memory().await;
    let running = Running::start(engine.worker().workflow::<echo>());
    let client = engine.client();
    assert_eq!(echo::start(&client, "echo-1", "a").await.unwrap().result().await.unwrap(), "a");
    assert_eq!(echo::start_new(&client, "b").await.unwrap().result().await.unwrap(), "b");
    let typed = client.start::<echo>("echo-3", "c").await.unwrap();
    assert_eq!(typed.result().await.unwrap(), "c");
    running.stop().await;
}

/// The last one stays by value, so that `collect()` gets its type from the definition.
#[workflow]
async fn parcel(_ctx: &Context, item: Item, to: String, weights: Vec<u8>) -> Item {
    assert!(!to.is_empty() && !weights.is_empty());
    item
}

#[tokio::test]
async fn what_is_needed_again_is_passed_by_reference() {
    let engine = Embedded::in_memory().await;
    let running = Running::start(engine.worker().workflow::<parcel>());
    let (client, item, to) =
        (engine.client(), Item { name: "fig".into(), count: 1 }, "Ada".to_owned());
    let weights = (1..=3).map(|number| number * 10);
    let sent = parcel::start(&client, "parcel-1", &item, &to, weights.collect()).await.unwrap();
    assert_eq!(sent.result().await.unwrap(), item);
    running.stop().await;
}
