//! Functions that are no activities, activities that are called, and arguments that do not fit.

extern crate abide_sdk as abide;

use abide::prelude::*;
use abide_sdk_macros::{activity, workflow};

#[activity]
async fn greet(name: String) -> String {
    name
}

#[activity]
async fn send(to: String, copies: u32) {
    let _ = (to, copies);
}

async fn plain(name: String) -> String {
    name
}

#[workflow]
async fn order(ctx: &Context) -> abide::Result<()> {
    ctx.activity(plain, "Ada").await?;
    ctx.activity(greet("Ada".into()), ()).await?;
    ctx.activity(greet, ()).await?;
    ctx.activity(send, "Ada").await?;
    ctx.activity(send, ("Ada", "two")).await
}

fn main() {}
