//! A call with the wrong argument, and a signal of another workflow.

extern crate abide_sdk as abide;

use abide::prelude::*;
use abide_sdk_macros::{activity, workflow};

#[activity]
async fn greet(name: String) -> String {
    name
}

#[derive(Default)]
struct Other;

#[workflow]
impl Other {
    #[run]
    async fn run(_ctx: &Context<Self>) {}

    #[signal]
    fn poke();
}

#[derive(Default)]
struct Order;

#[workflow]
impl Order {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<()> {
        ctx.activity(greet, 7).await?;
        ctx.receive(Other::POKE).await
    }
}

fn main() {}
