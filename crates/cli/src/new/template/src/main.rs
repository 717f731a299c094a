//! Without an argument, the engine is inside this program and an order is tried out. With `worker`, this is a
//! worker of the server at `ABIDE_ADDRESS`: start as many as you like, and stop any of them at any time.

use abide::{Client, Worker, embedded::Embedded};
use tokio::signal::unix::{SignalKind, signal};

use my_orders::{Order, register};

/// Workflows allocate on one thread and free on another: this allocator is up to a third faster at that.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    match std::env::args().nth(1).as_deref() {
        None => try_it().await,
        Some("worker") => work().await,
        Some(other) => anyhow::bail!("unknown command {other:?}: use none, or `worker`"),
    }
}

async fn try_it() -> anyhow::Result<()> {
    let engine = Embedded::open("my-orders.db").await?;
    register(engine.worker()).spawn();
    let order = Order::start_new(&engine.client(), "Ada", 4200).await?;
    order.pay(4200).await?;
    println!("{}", order.result().await?);
    engine.shutdown().await;
    Ok(())
}

async fn work() -> anyhow::Result<()> {
    let address =
        std::env::var("ABIDE_ADDRESS").unwrap_or_else(|_| "http://127.0.0.1:7233".to_owned());
    // The server may start later, stop and restart: the worker waits for it, and reconnects.
    let client = Client::connect_lazy(&address)?;
    // Ctrl-C, or the signal by which containers are stopped. Work in flight finishes first.
    let mut terminate = signal(SignalKind::terminate())?;
    let stop = async move {
        tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            _ = terminate.recv() => {}
        }
    };
    println!("A worker of {address}. Stop it with Ctrl-C.");
    register(Worker::new(&client)).run_until(stop).await?;
    Ok(())
}
