//! The workflow, shared by worker and starter. The starter only uses its types.

use abide::prelude::*;

#[activity]
pub async fn charge(customer: String, cents: u64) -> String {
    format!("{customer} paid {cents} cents")
}

#[workflow]
pub async fn place_order(ctx: &Context, customer: String, cents: u64) -> abide::Result<String> {
    ctx.activity(charge, (customer, cents)).await
}
