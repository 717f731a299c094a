//! A signal that returns something.

use abide_sdk_macros::workflow;

struct Order;

#[workflow]
impl Order {
    #[run]
    async fn run(ctx: &Context<Self>) {}

    #[signal]
    fn decide(&mut self, yes: bool) -> bool {
        yes
    }
}

fn main() {}
