//! A run without a context.

use abide_sdk_macros::workflow;

struct Order;

#[workflow]
impl Order {
    #[run]
    async fn run(name: String) {}
}

struct Bare;

#[workflow]
impl Bare {
    #[run]
    async fn run() {}
}

fn main() {}
