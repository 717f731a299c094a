//! Worker: a process that runs workflows and activities of a server. Start as many as you like; kill
//! any of them at any time.
//!
//! `cargo run -p abide-examples --bin worker -- --address http://127.0.0.1:7233`

mod address;
mod order;

use abide::{Client, Worker};

use crate::order::{Order, charge};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // Only the address must be right: the server may come later, go, and come back. The worker waits for
    // it, and connects again.
    let client = Client::connect(address::from_arguments())?;

    // The queue ties starts to workers: this worker takes what is started on the queue `orders`.
    let worker = Worker::new(&client).queue("orders").workflow::<Order>().activity(charge);

    // Ctrl-C lets what is under way end first.
    worker.run_until(tokio::signal::ctrl_c()).await??;
    println!("the worker has left");
    Ok(())
}
