//! Starter: a client of a server. It starts a workflow on the queue of the workers and waits for the
//! result.
//!
//! `cargo run -p abide-examples --bin starter -- --address http://127.0.0.1:7233`

mod address;
mod order;

use abide::{Client, ConflictPolicy};

use crate::order::place_order;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let client = Client::connect(address::from_arguments()).await?;

    let order = place_order::start(&client, "order-1", "Ada", 4200)
        .queue("orders")
        // If this program runs twice at the same time, both wait for the same run.
        .on_conflict(ConflictPolicy::UseExisting)
        .await?;

    // Waits as long as it takes: for a worker to start, or for a server to restart.
    println!("{}", order.result().await?);
    Ok(())
}
