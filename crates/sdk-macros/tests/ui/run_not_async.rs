//! A run that is not async.

use abide_sdk_macros::workflow;

struct Order;

#[workflow]
impl Order {
    #[run]
    fn run(ctx: &Context<Self>) {}
}

fn main() {}
