//! Nothing that a worker finds by name can be generic.

use abide_sdk_macros::{activity, workflow};

struct Order<T>(T);

#[workflow]
impl<T> Order<T> {
    #[run]
    async fn run(ctx: &Context<Self>) {}
}

struct Plain;

#[workflow]
impl Plain {
    #[run]
    async fn run<'a>(ctx: &Context<Self>, name: String) {}
}

#[activity]
async fn charge<T: Send>(amount: T) {}

fn main() {}
