//! A first state that does not fit the run.

use abide_sdk_macros::workflow;

struct ByValue;

#[workflow]
impl ByValue {
    #[init]
    fn new(name: String) -> Self {
        Self
    }

    #[run]
    async fn run(ctx: &Context<Self>, name: String) {}
}

struct TooFew;

#[workflow]
impl TooFew {
    #[init]
    fn new(name: &String) -> Self {
        Self
    }

    #[run]
    async fn run(ctx: &Context<Self>, name: String, age: u32) {}
}

fn main() {}
