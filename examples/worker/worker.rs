//! Worker: a process that runs workflows and activities for a server. Start as many as you like;
//! kill any of them at any time.
//!
//! `cargo run -p abide-examples --bin worker -- --address http://127.0.0.1:7233`

mod address;
mod order;

use abide::{Client, Worker};

use crate::order::{charge, place_order};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // Only the address must be right: the server may start later, stop and restart. The worker
    // waits for it, and reconnects.
    let client = Client::connect_lazy(address::from_arguments())?;

    // The queue connects starts and workers: this worker takes what is started on the queue
    // `orders`.
    let worker = Worker::new(&client).queue("orders").workflow::<place_order>().activity(charge);

    // Ctrl-C first lets work in flight finish.
    worker.run_until(tokio::signal::ctrl_c()).await?;
    println!("the worker has left");
    Ok(())
}
