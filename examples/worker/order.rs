//! The workflow, shared by worker and starter. The starter only uses its types.

use abide::prelude::*;

#[activity]
pub async fn charge(customer: String, cents: u64) -> String {
    format!("{customer} paid {cents} cents")
}

#[derive(Default)]
pub struct Order;

#[workflow]
impl Order {
    #[run]
    async fn run(ctx: &Context<Self>, customer: String, cents: u64) -> abide::Result<String> {
        ctx.activity(charge, (customer, cents)).await
    }
}
