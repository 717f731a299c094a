//! A context in the wrong form or place.

use abide_sdk_macros::workflow;

struct ByValue;

#[workflow]
impl ByValue {
    #[run]
    async fn run(ctx: Context<Self>) {}
}

struct Second;

#[workflow]
impl Second {
    #[run]
    async fn run(name: String, ctx: &Context<Self>) {}
}

fn main() {}
