//! A validator that does not exist.

use abide_sdk_macros::workflow;

struct Order;

#[workflow]
impl Order {
    #[run]
    async fn run(ctx: &Context<Self>) {}

    #[update(validate = check_amend)]
    fn amend(&mut self, amount: u32) {}
}

fn main() {}
