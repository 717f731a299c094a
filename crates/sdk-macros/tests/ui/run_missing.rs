//! A workflow without a run.

use abide_sdk_macros::workflow;

struct Order;

#[workflow]
impl Order {
    #[query]
    fn status(&self) -> u32 {
        0
    }
}

fn main() {}
