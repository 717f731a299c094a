//! An engine in this process whose state is in a PostgreSQL database.

// The macros name the crate as its users know it.
extern crate abide_sdk as abide;

use abide::prelude::*;
use abide_embedded::{Embedded, OpenError};
use abide_postgres_fixture::for_test;

#[derive(Default)]
struct Order;

#[workflow]
impl Order {
    #[run]
    async fn run(ctx: &Context<Self>, who: String) -> abide::Result<String> {
        ctx.receive(Self::PAID).await?;
        Ok(format!("{who} has paid"))
    }

    #[signal]
    fn paid();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_continues_when_the_database_is_opened_again() {
    let Some(server) = for_test("a_run_continues_when_the_database_is_opened_again") else {
        return;
    };
    let address = server.database("embedded_again");
    let engine = Embedded::open(&address).await.unwrap();
    engine.client().start::<Order>("order", "Ada").await.unwrap();
    engine.shutdown().await;

    let engine = Embedded::open(&address).await.unwrap();
    let worker = engine.worker().workflow::<Order>().spawn();
    let order = engine.client().handle::<Order>("order");
    order.paid().await.unwrap();
    assert_eq!(order.result().await.unwrap(), "Ada has paid");
    worker.stop().await.unwrap();
    engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_engine_on_a_database_is_refused() {
    let Some(server) = for_test("a_second_engine_on_a_database_is_refused") else { return };
    let address = server.database("embedded_twice");
    let first = Embedded::open(&address).await.unwrap();
    let refused = Embedded::open(&address).await.err();
    assert!(matches!(&refused, Some(OpenError::InUse { .. })), "{refused:?}");
    let message = refused.unwrap().to_string();
    assert!(message.contains("embedded_twice (schema abide) is in use"), "{message}");
    first.client().start::<Order>("order", "Ada").await.unwrap();
    first.shutdown().await;
}

#[tokio::test]
async fn an_address_that_cannot_be_read_is_refused_at_once() {
    let refused = Embedded::open("postgres://host:no-port/database").await.err();
    assert!(matches!(refused, Some(OpenError::Database(_))), "{refused:?}");
}
