//! A query that could change the state.

use abide_sdk_macros::workflow;

struct Order;

#[workflow]
impl Order {
    #[run]
    async fn run(ctx: &Context<Self>) {}

    #[query]
    fn status(&mut self) -> u32 {
        0
    }
}

fn main() {}
