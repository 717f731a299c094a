//! Approval with a deadline: a purchase waits for a decision for three days, and the deadline can move.

use std::time::Duration;

use restate_sdk::{ingress::ReqwestClient, prelude::*};

const DAY: Duration = Duration::from_secs(24 * 3600);

struct Purchase;

#[workflow]
impl Purchase {
    #[handler]
    async fn run(&self, ctx: WorkflowContext<'_>, item: String) -> HandlerResult<String> {
        let mut left = 3 * DAY;
        let mut moves = 0;
        loop {
            let moved = format!("extend-{moves}");
            restate_sdk::select! {
                approved = ctx.promise::<bool>("decision") => {
                    let verdict = if approved? { "approved" } else { "rejected" };
                    return Ok(format!("{item}: {verdict}"));
                },
                days = ctx.promise::<u32>(&moved) => {
                    left = days? * DAY;
                    moves += 1;
                },
                _ = ctx.sleep(left) => return Ok(format!("{item}: too late")),
            }
        }
    }

    #[handler]
    async fn decide(&self, ctx: SharedWorkflowContext<'_>, approved: bool) -> HandlerResult<()> {
        ctx.resolve_promise("decision", approved);
        Ok(())
    }

    #[handler]
    async fn extend(&self, ctx: SharedWorkflowContext<'_>, days: u32) -> HandlerResult<()> {
        let mut moves = 0;
        while ctx.peek_promise::<u32>(&format!("extend-{moves}")).await?.is_some() {
            moves += 1;
        }
        ctx.resolve_promise(&format!("extend-{moves}"), days);
        Ok(())
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let endpoint = Endpoint::builder().bind(Purchase).build();
    tokio::spawn(HttpServer::new(endpoint).listen_and_serve("0.0.0.0:9080".parse()?));
    let client = ReqwestClient::connect("http://localhost:8080".parse()?)?;
    let desk = PurchaseIngressClient::from_client(client, "desk");
    desk.run("a desk".to_owned()).send().await?;
    desk.extend(2).call().await?.into_body()?;
    desk.decide(true).call().await?.into_body()?;
    println!("{}", desk.handle().await?.attach().await?.into_body());
    Ok(())
}
