//! Search attributes from the start of a run to lists: set by clients and by code, refused if they are not
//! registered, and found at once.

use abide::{
    ClientError, Context,
    client::TaskFailureCause,
    list::{RunFilter, RunStatus},
    search::SearchAttribute,
    workflow,
};
use abide_embedded::Embedded;

use crate::world::Running;

const AMOUNT: SearchAttribute<i64> = SearchAttribute::int("Amount");
const REGION: SearchAttribute<String> = SearchAttribute::keyword("Region");
const LABELS: SearchAttribute<Vec<String>> = SearchAttribute::keyword_list("Labels");

/// Doubles its amount, takes a label, and waits to be shipped.
#[derive(Default)]
struct Order;

#[workflow]
impl Order {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<()> {
        let amount = ctx.search_attribute(AMOUNT)?.unwrap_or_default();
        let labels = ["new".to_owned(), "eu".to_owned()];
        ctx.upsert_search_attributes([AMOUNT.set(2 * amount), LABELS.set(labels)])?;
        ctx.upsert_memo("stage", &"packed".to_owned())?;
        ctx.receive(Self::SHIP).await?;
        ctx.upsert_search_attributes([LABELS.unset()])?;
        Ok(())
    }

    #[signal]
    fn ship();
}

async fn found(client: &abide::Client, query: &str) -> Vec<String> {
    let rows = client.runs(RunFilter::new().query(query)).take(100).await.unwrap();
    rows.into_iter().map(|row| row.workflow.to_string()).collect()
}

#[tokio::test]
async fn runs_are_found_by_what_clients_and_code_set() {
    let engine = Embedded::in_memory().await;
    let client = engine.client();
    client.create_search_attribute(AMOUNT).await.unwrap();
    client.create_search_attribute(REGION).await.unwrap();
    client.create_search_attribute(LABELS).await.unwrap();
    let worker = Running::start(engine.worker().workflow::<Order>());
    let mut orders = Vec::new();
    for (id, amount, region) in [("order-1", 60, "eu"), ("order-2", 30, "us")] {
        let start = client.start::<Order>(id, ());
        let start = start.search_attribute(AMOUNT.set(amount));
        orders.push(start.search_attribute(REGION.set(region)).await.unwrap());
        assert_eq!(found(&client, &format!("Region = '{region}'")).await, [id], "at once");
    }
    for order in &orders {
        while order.describe().await.unwrap().search_attribute(LABELS).is_none() {
            tokio::task::yield_now().await;
        }
    }
    assert_eq!(found(&client, "Amount > 100").await, ["order-1"]);
    assert_eq!(
        found(&client, "Labels = 'new' ORDER BY StartTime ASC").await,
        ["order-1", "order-2"]
    );
    assert_eq!(found(&client, "WaitKind = 'Signal' AND WaitName = 'ship'").await.len(), 2);
    let described = orders[0].describe().await.unwrap();
    assert_eq!(described.search_attribute(AMOUNT), Some(Ok(120)));
    assert_eq!(described.memo::<String>("stage"), Some(Ok("packed".to_owned())));
    let counts =
        client.count_runs_by_field(RunFilter::new().query("GROUP BY Region")).await.unwrap();
    assert_eq!((counts.groups.len(), counts.more), (2, false));
    orders[0].ship().await.unwrap();
    orders[0].result().await.unwrap();
    assert_eq!(found(&client, "Labels = 'new'").await, ["order-2"]);
    let closed = RunFilter::new().query("Amount = 120").status(RunStatus::Completed);
    assert_eq!(client.count_runs(closed).await, Ok(1));
    worker.stop().await;
}

#[tokio::test]
async fn what_is_not_registered_is_refused_with_a_reason() {
    let engine = Embedded::in_memory().await;
    let client = engine.client();
    client.create_search_attribute(AMOUNT).await.unwrap();
    let refused = |answer: Result<_, ClientError>| answer.map(drop).unwrap_err().to_string();
    let start = client.start::<Order>("order", ()).search_attribute(REGION.set("eu"));
    let said = refused(start.await.map(|_| ()));
    assert!(said.contains("Region is not registered in the namespace"), "{said}");
    let runs = client.runs(RunFilter::new().query("Amout > 5")).take(1).await;
    let said = refused(runs.map(|_| ()));
    assert!(said.contains("column 1: there is no field Amout; did you mean Amount?"), "{said}");
    assert_eq!(client.count_runs(RunFilter::new()).await, Ok(0), "nothing was started");

    // Code that sets an attribute which is not registered yet waits until it is.
    let worker = Running::start(engine.worker().workflow::<Order>());
    let order = client.start::<Order>("order", ()).await.unwrap();
    let trouble = loop {
        match order.describe().await.unwrap().trouble {
            Some(trouble) => break trouble,
            None => tokio::task::yield_now().await,
        }
    };
    assert_eq!(trouble.cause, TaskFailureCause::BadCommand);
    let said = trouble.failure.message();
    assert!(said.contains("search attribute Labels is not registered"), "{said}");
    client.create_search_attribute(LABELS).await.unwrap();
    order.ship().await.unwrap();
    order.result().await.unwrap();
    let again = client.create_search_attribute(SearchAttribute::keyword("Amount")).await;
    let said = refused(again);
    assert!(said.contains("Amount is registered as int already"), "{said}");
    client.delete_search_attribute("Labels").await.unwrap();
    assert!(!client.search_attributes().await.unwrap().contains_key("Labels"));
    worker.stop().await;
}
