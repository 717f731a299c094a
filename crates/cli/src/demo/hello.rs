//! A workflow with one activity, and its result.

use abide::prelude::*;

/// Greets a person by an activity.
#[derive(Default)]
pub(crate) struct Hello;

#[activity]
pub(super) async fn greet(name: String) -> String {
    format!("Hello, {name}!")
}

#[workflow(name = "hello")]
impl Hello {
    #[run]
    async fn run(ctx: &Context<Self>, name: String) -> abide::Result<String> {
        ctx.activity(greet, name).await
    }
}
