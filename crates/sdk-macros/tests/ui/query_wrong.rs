//! Queries that wait, say nothing, or borrow.

use abide_sdk_macros::workflow;

struct Order;

#[workflow]
impl Order {
    #[run]
    async fn run(ctx: &Context<Self>) {}

    #[query]
    async fn waits(&self) -> u32 {
        0
    }

    #[query]
    fn silent(&self) {}

    #[query]
    fn borrowed(&self) -> &str {
        ""
    }
}

fn main() {}
