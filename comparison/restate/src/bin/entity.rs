//! Entity: a customer's points, for years; they are added to, asked for, and outlive a run's history.

use restate_sdk::{ingress::ReqwestClient, prelude::*};

struct Customer;

#[object]
impl Customer {
    #[handler]
    async fn earn(&self, ctx: ObjectContext<'_>, points: u64) -> HandlerResult<()> {
        let before: u64 = ctx.get("points").await?.unwrap_or_default();
        ctx.set("points", before + points);
        Ok(())
    }

    #[handler]
    async fn leave(&self, ctx: ObjectContext<'_>) -> HandlerResult<()> {
        ctx.clear_all();
        Ok(())
    }

    #[handler]
    async fn level(&self, ctx: SharedObjectContext<'_>) -> HandlerResult<String> {
        let points: u64 = ctx.get("points").await?.unwrap_or_default();
        Ok(if points >= 100 { "gold" } else { "basic" }.to_owned())
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let endpoint = Endpoint::builder().bind(Customer).build();
    tokio::spawn(HttpServer::new(endpoint).listen_and_serve("0.0.0.0:9080".parse()?));
    let client = ReqwestClient::connect("http://localhost:8080".parse()?)?;
    let ada = CustomerIngressClient::from_client(client, "ada");
    ada.earn(120).call().await?.into_body()?;
    println!("{}", ada.level().call().await?.into_body()?);
    ada.leave().call().await?.into_body()?;
    Ok(())
}
