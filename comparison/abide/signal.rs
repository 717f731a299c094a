//! Signal or timeout: an order waits for its payment for a week, else a step reminds the customer.

use abide::{embedded::Embedded, prelude::*};

#[activity]
async fn remind(customer: String) {
    println!("{customer}, please remember to pay");
}

#[derive(Default)]
struct Order;

#[workflow]
impl Order {
    #[run]
    async fn run(ctx: &Context<Self>, customer: String) -> abide::Result<String> {
        match ctx.receive(Self::PAY).timeout(weeks(1)).await? {
            Outcome::InTime(cents) => Ok(format!("{customer} paid {cents} cents")),
            Outcome::TimedOut => {
                ctx.activity(remind, &customer).await?;
                Ok(format!("{customer} has not paid"))
            }
        }
    }

    #[signal]
    fn pay(cents: u64);
}

#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    let engine = Embedded::open("signal.db").await?;
    engine.worker().workflow::<Order>().activity(remind).spawn();
    let order = Order::start(&engine.client(), "order-1", "Ada").await?;
    order.pay(4200).await?;
    println!("{}", order.result().await?);
    Ok(())
}
