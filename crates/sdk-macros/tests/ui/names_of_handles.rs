//! Messages that would hide methods of every handle.

use abide_sdk_macros::workflow;

struct Order;

#[workflow]
impl Order {
    #[run]
    async fn run(ctx: &Context<Self>) {}

    #[query]
    fn history(&self) -> u32 {
        0
    }
}

struct Shipment;

#[workflow]
impl Shipment {
    #[run]
    async fn run(ctx: &Context<Self>) {}

    #[signal(name = "stop")]
    fn cancel();
}

fn main() {}
