//! A run that wants the state itself.

use abide_sdk_macros::workflow;

struct Order;

#[workflow]
impl Order {
    #[run]
    async fn run(&mut self, name: String) {}
}

fn main() {}
