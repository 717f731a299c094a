//! A workflow with one activity, and its result.

use abide::prelude::*;

#[activity]
pub(super) async fn greet(name: String) -> String {
    format!("Hello, {name}!")
}

/// Greets a person by an activity.
#[workflow]
pub(super) async fn hello(ctx: &Context, name: String) -> abide::Result<String> {
    ctx.activity(greet, name).await
}
