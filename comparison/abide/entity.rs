//! Entity: a customer's points, for years; they are added to, asked for, and outlive a run's history.

use abide::{embedded::Embedded, prelude::*};

struct Customer {
    points: u64,
    left: bool,
}

#[workflow]
impl Customer {
    #[init]
    fn new(points: &u64) -> Self {
        Self { points: *points, left: false }
    }

    #[run]
    async fn run(ctx: &Context<Self>, mut points: u64) -> abide::Result<u64> {
        while !ctx.suggests_continue_as_new() {
            let changed = condition!("customer.changed", |it| it.left || it.points != points);
            ctx.wait_until(changed).await?;
            points = ctx.read(|it| it.points);
            if ctx.read(|it| it.left) {
                return Ok(points);
            }
        }
        Err(ctx.continue_as_new(points))
    }

    #[signal]
    fn earn(&mut self, points: u64) {
        self.points += points;
    }

    #[signal]
    fn leave(&mut self) {
        self.left = true;
    }

    #[query]
    fn level(&self) -> String {
        if self.points >= 100 { "gold" } else { "basic" }.to_owned()
    }
}

#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    let engine = Embedded::open("entity.db").await?;
    engine.worker().workflow::<Customer>().spawn();
    let ada = Customer::start(&engine.client(), "ada", 0u64).await?;
    ada.earn(120).await?;
    println!("{}", ada.level().await?);
    ada.leave().await?;
    Ok(())
}
