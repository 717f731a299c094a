//! A method with two marks.

use abide_sdk_macros::workflow;

struct Order;

#[workflow]
impl Order {
    #[run]
    async fn run(ctx: &Context<Self>) {}

    #[signal]
    #[update]
    fn decide(&mut self) {}
}

fn main() {}
