//! Saga: a trip of three bookings; when the last one fails, the others are undone, newest first.

use restate_sdk::{ingress::ReqwestClient, prelude::*};

struct Trip;

#[workflow]
impl Trip {
    #[handler]
    async fn run(&self, ctx: WorkflowContext<'_>) -> HandlerResult<String> {
        let mut undo = Vec::new();
        for what in ["hotel", "flight", "car"] {
            if let Err(error) = ctx.run(|| book(what)).await {
                for what in undo.into_iter().rev() {
                    ctx.run(|| cancel(what)).await?;
                }
                return Err(error.into());
            }
            undo.push(what);
        }
        Ok("booked".to_owned())
    }
}

async fn book(what: &str) -> HandlerResult<()> {
    if what == "car" {
        return Err(TerminalError::new("no car left").into());
    }
    println!("booked a {what}");
    Ok(())
}

async fn cancel(what: &str) -> HandlerResult<()> {
    println!("cancelled the {what}");
    Ok(())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let endpoint = Endpoint::builder().bind(Trip).build();
    tokio::spawn(HttpServer::new(endpoint).listen_and_serve("0.0.0.0:9080".parse()?));
    let client = ReqwestClient::connect("http://localhost:8080".parse()?)?;
    let trip = TripIngressClient::from_client(client, "trip-1");
    match trip.run().call().await?.into_body() {
        Ok(done) => println!("{done}"),
        Err(error) => println!("failed: {error}"),
    }
    Ok(())
}
