//! Child: a workflow starts other workflows and waits for their results.

use abide::{Workflow as _, embedded::Embedded, prelude::*};

/// A part of an order, sent separately. It has its own history and can fail on its own.
#[derive(Default)]
struct Shipment;

#[workflow]
impl Shipment {
    #[run]
    async fn run(ctx: &Context<Self>, item: String) -> abide::Result<String> {
        if item == "piano" {
            return Err(Error::new("too heavy"));
        }
        ctx.receive(Self::COLLECTED).await?;
        Ok(format!("{item} was sent"))
    }

    #[signal]
    fn collected();
}

#[workflow]
async fn order(ctx: &Context, items: Vec<String>) -> abide::Result<Vec<String>> {
    let mut report = Vec::new();
    for item in items {
        // The id of a child is an ordinary workflow id, so choose a meaningful one.
        let id = format!("{}/{item}", ctx.workflow_id());
        // `start()` returns a handle once the child has started; awaiting the call itself waits
        // for the result.
        let shipment = Shipment::child(ctx, id, item).start().await?;
        shipment.collected().await.ok();
        report.push(match shipment.result().await {
            Ok(sent) => sent,
            // A child that fails does not fail its parent: the parent decides.
            Err(Error::Child(failed)) => {
                format!("{}: {}", failed.workflow, failed.failure)
            }
            Err(error) => return Err(error),
        });
    }
    Ok(report)
}

#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    let engine = Embedded::in_memory().await;
    engine.worker().workflow::<order>().workflow::<Shipment>().spawn();

    let items = vec!["lamp".to_owned(), "piano".to_owned()];
    let order = order::start(&engine.client(), "order-1", items).await?;
    for line in order.result().await? {
        println!("{line}");
    }
    println!("by workflows of the types {} and {}", order::NAME, Shipment::NAME);
    Ok(())
}
