//! Key and fingerprint of a condition, wherever a wait is shown, and both of them when code changes.

use abide::{Client, prelude::*};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::{
    harness::{Engine, fresh},
    people::{People, QUEUE},
};

#[derive(Default)]
struct Order {
    paid: bool,
}

#[workflow(name = "order")]
impl Order {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<()> {
        ctx.wait_until(condition!("order.paid", |order| order.paid)).await
    }

    #[signal(name = "paid")]
    fn paid(&mut self) {
        self.paid = true;
    }
}

/// The same workflow after a change of its condition.
#[derive(Default)]
struct Changed {
    paid: bool,
    packed: bool,
}

#[workflow(name = "order")]
impl Changed {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<()> {
        ctx.wait_until(condition!("order.paid", |order| order.paid && order.packed)).await
    }

    #[signal(name = "paid")]
    fn paid(&mut self) {
        self.paid = true;
        self.packed = true;
    }
}

/// What the last event of this name says.
fn facts(engine: &Engine, event: &str) -> Value {
    let history = engine.json("workflow history order");
    let last = history.iter().rfind(|row| row["event"] == event);
    last.unwrap_or_else(|| panic!("{event}: {history:?}"))["facts"].clone()
}

#[test]
fn fingerprints_are_shown_and_a_changed_condition_is_told_by_fields() {
    let (engine, _folder) = fresh();
    let people = People::work::<Order>(&engine.address, "first");
    engine.run(&format!("workflow start --type order --id order --queue {QUEUE}")).good();
    Runtime::new().unwrap().block_on(async {
        let client = Client::connect(&*engine.address).await.unwrap();
        let mut waits = client.handle_untyped("order").follow_waits();
        while waits.next().await.unwrap().is_some_and(|waits| waits.is_empty()) {}
    });
    let opened = facts(&engine, "WaitOpened");
    assert_eq!(opened["condition"], "order.paid");
    let fingerprint = opened["fingerprint"].clone();
    assert!(fingerprint.as_str().is_some_and(|text| !text.is_empty()), "{opened}");
    let shown = &engine.json("waits show order")[0];
    let described = &engine.json("workflow describe order")[0]["waits"][0];
    for wait in [shown, described] {
        assert_eq!(
            [&wait["condition"], &wait["fingerprint"]],
            [&json!("order.paid"), &fingerprint]
        );
    }
    people.leave();

    let changed = People::work::<Changed>(&engine.address, "second");
    engine.run("workflow signal order paid").good();
    let refused = engine.run("workflow query order state").bad(1);
    assert!(refused.contains("the run is blocked"), "{refused}");
    let blocked = facts(&engine, "TaskFailed")["blocked"].clone();
    assert_eq!(
        [&blocked["reason"], &blocked["recorded_fingerprint"]],
        [&json!("condition_definition"), &fingerprint]
    );
    assert_eq!([&blocked["expected_key"], &blocked["recorded_key"]], ["order.paid"; 2]);
    assert!(blocked["expected_fingerprint"].is_string(), "{blocked}");
    assert_ne!(blocked["expected_fingerprint"], fingerprint);
    let described = &engine.json("workflow describe order")[0];
    assert_eq!(described["trouble"]["blocked"], blocked);
    changed.leave();
}
