//! A workflow with two runs.

use abide_sdk_macros::workflow;

struct Order;

#[workflow]
impl Order {
    #[run]
    async fn run(ctx: &Context<Self>) {}

    #[run]
    async fn run_again(ctx: &Context<Self>) {}
}

fn main() {}
