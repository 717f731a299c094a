//! Functions that cannot be workflows.

use abide_sdk_macros::workflow;

struct Context<W>(W);

#[workflow]
async fn without_context(name: String) -> String {
    name
}

#[workflow]
async fn without_anything() {}

#[workflow]
fn not_async(ctx: &Context) {}

#[workflow]
async fn with_state(ctx: &Context<u32>) {}

#[workflow]
async fn owned(ctx: Context) {}

#[workflow(approvals = approvals)]
async fn with_approvals(ctx: &Context) {}

#[workflow]
struct Order;

fn main() {}
