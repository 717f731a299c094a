//! Signals with the wrong receiver or body.

use abide_sdk_macros::workflow;

struct Order;

#[workflow]
impl Order {
    #[run]
    async fn run(ctx: &Context<Self>) {}

    #[signal]
    fn reads_only(&self, yes: bool) {}

    #[signal]
    fn by_value(self, yes: bool) {}

    #[signal]
    async fn with_self(&mut self, yes: bool) {}

    #[signal]
    async fn declared(yes: bool);

    #[query]
    fn without_body(&self) -> bool;
}

fn main() {}
