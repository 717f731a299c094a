//! Entity workflow: one run per customer, for as long as the customer exists. Its state is the
//! customer's state, and everything that happens to the customer is a message to the run.

use abide::{ClientError, ConflictPolicy, embedded::Embedded, prelude::*};
use serde::{Deserialize, Serialize};

/// What is known about a customer. It is also the input, so that a new run can continue from it.
#[derive(Clone, Default, Serialize, Deserialize)]
struct Customer {
    points: u32,
    level: Level,
    card: Option<String>,
    closed: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
enum Level {
    #[default]
    Basic,
    Gold,
}

#[activity]
async fn send_card(customer: String, level: Level) -> String {
    format!("{level:?} card of {customer}")
}

#[workflow]
impl Customer {
    #[init]
    fn new(before: &Self) -> Self {
        before.clone()
    }

    /// Waits for something to do, does it, and continues as new before its history grows too long.
    #[run]
    async fn run(ctx: &Context<Self>, _before: Self) -> abide::Result<String> {
        while !ctx.suggests_continue_as_new() {
            ctx.wait_until(condition!("customer.changed", |customer| {
                customer.closed || customer.earned_level() != customer.level
            }))
            .await?;
            if ctx.read(|customer| customer.closed) {
                return Ok(ctx.read(Self::farewell));
            }
            let level = ctx.write(|customer| {
                customer.level = customer.earned_level();
                customer.level
            });
            let card = ctx.activity(send_card, (ctx.workflow_id().to_string(), level)).await?;
            ctx.write(|customer| customer.card = Some(card));
        }
        Err(ctx.continue_as_new(ctx.read(Self::clone)))
    }

    fn earned_level(&self) -> Level {
        if self.points >= 100 { Level::Gold } else { self.level }
    }

    fn farewell(&self) -> String {
        format!("{} points, {}", self.points, self.card.as_deref().unwrap_or("no card"))
    }

    /// Messages to one customer are handled one after the other, so nothing needs a lock.
    #[signal]
    fn earn(&mut self, points: u32) {
        self.points += points;
    }

    #[update(validate = check_spend)]
    fn spend(&mut self, points: u32) -> u32 {
        self.points -= points;
        self.points
    }

    fn check_spend(&self, points: &u32) -> Result<(), String> {
        if *points > self.points { Err(format!("only {} points", self.points)) } else { Ok(()) }
    }

    #[query]
    fn level(&self) -> Level {
        self.level
    }

    #[signal]
    fn close(&mut self) {
        self.closed = true;
    }
}

#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    let engine = Embedded::in_memory().await;
    engine.worker().workflow::<Customer>().activity(send_card).spawn();
    let client = engine.client();

    // The id is the customer's, so that every caller finds the same single run.
    for points in [60, 50] {
        let start = Customer::start(&client, "ada", Customer::default());
        start.with_signal(Customer::EARN, points).on_conflict(ConflictPolicy::UseExisting).await?;
    }
    let ada = client.handle::<Customer>("ada");
    println!("after the invoice: {} points", ada.spend(30).await?);
    println!("level: {:?}", ada.level().await?);
    match ada.spend(500).await {
        Err(ClientError::UpdateRejected(failure)) => println!("refused: {failure}"),
        other => println!("unexpected: {other:?}"),
    }
    ada.close().await?;
    println!("closed: {}", ada.result().await?);
    Ok(())
}
