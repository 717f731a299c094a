//! A state without a beginning.

extern crate abide_sdk as abide;

use abide::Context;
use abide_sdk_macros::workflow;

struct Order;

#[workflow]
impl Order {
    #[run]
    async fn run(_ctx: &Context<Self>) {}
}

fn main() {}
