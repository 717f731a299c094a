//! Signal with start: a message to a workflow that may not exist yet. The first caller starts it,
//! and no caller has to check first.

use abide::{Client, ClientError, ConflictPolicy, embedded::Embedded, prelude::*};

#[derive(Default)]
struct Cart;

#[workflow]
impl Cart {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<Vec<String>> {
        let mut items = Vec::new();
        // One wait for both kinds of signals, in the order of their arrival.
        loop {
            let signal = ctx.receive_any().await?;
            if let Some(item) = signal.read(Self::ADD) {
                items.push(item?);
            } else if signal.read(Self::CHECK_OUT).is_some() {
                return Ok(items);
            }
        }
    }

    #[signal]
    fn add(item: String);

    #[signal]
    fn check_out();
}

/// What a web server does for each click. Start and signal are atomic: there is no moment at which
/// only one of them has happened.
async fn click(client: &Client, customer: &str, item: &str, id: &str) -> Result<bool, ClientError> {
    let (_, started) = Cart::start(client, format!("cart-{customer}"))
        .with_signal(Cart::ADD, item)
        // An open cart gets the signal. Without this the second click would be refused.
        .on_conflict(ConflictPolicy::UseExisting)
        // A click that is sent twice, because the reply was lost, counts once.
        .key(id)
        .started()
        .await?;
    Ok(started)
}

#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    let engine = Embedded::in_memory().await;
    engine.worker().workflow::<Cart>().spawn();
    let client = engine.client();

    for (item, id) in [("lamp", "click-1"), ("chair", "click-2"), ("chair", "click-2")] {
        let started = click(&client, "ada", item, id).await?;
        println!("{item} ({id}): {}", if started { "a new cart" } else { "the open cart" });
    }

    let cart = client.handle::<Cart>("cart-ada");
    cart.check_out().await?;
    println!("bought: {}", cart.result().await?.join(", "));

    // The cart is closed, so the next click starts another.
    println!("desk (click-3): a new cart: {}", click(&client, "ada", "desk", "click-3").await?);
    Ok(())
}
