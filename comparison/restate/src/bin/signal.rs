//! Signal or timeout: an order waits for its payment for a week, else a step reminds the customer.

use std::time::Duration;

use restate_sdk::{ingress::ReqwestClient, prelude::*};

struct Order;

#[workflow]
impl Order {
    #[handler]
    async fn run(&self, ctx: WorkflowContext<'_>, customer: String) -> HandlerResult<String> {
        restate_sdk::select! {
            cents = ctx.promise::<u64>("paid") => Ok(format!("{customer} paid {} cents", cents?)),
            _ = ctx.sleep(Duration::from_secs(7 * 24 * 3600)) => {
                ctx.run(|| remind(customer.clone())).await?;
                Ok(format!("{customer} has not paid"))
            },
        }
    }

    #[handler]
    async fn pay(&self, ctx: SharedWorkflowContext<'_>, cents: u64) -> HandlerResult<()> {
        ctx.resolve_promise("paid", cents);
        Ok(())
    }
}

async fn remind(customer: String) -> HandlerResult<()> {
    println!("{customer}, please remember to pay");
    Ok(())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let endpoint = Endpoint::builder().bind(Order).build();
    tokio::spawn(HttpServer::new(endpoint).listen_and_serve("0.0.0.0:9080".parse()?));
    let client = ReqwestClient::connect("http://localhost:8080".parse()?)?;
    let order = OrderIngressClient::from_client(client, "order-1");
    order.run("Ada".to_owned()).send().await?;
    order.pay(4200).call().await?.into_body()?;
    println!("{}", order.handle().await?.attach().await?.into_body());
    Ok(())
}
