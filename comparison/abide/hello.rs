//! Hello: a workflow with one step.

use abide::{embedded::Embedded, prelude::*};

#[activity]
async fn greet(name: String) -> String {
    format!("Hello, {name}!")
}

#[workflow]
async fn hello(ctx: &Context, name: String) -> abide::Result<String> {
    ctx.activity(greet, name).await
}

#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    let engine = Embedded::open("hello.db").await?;
    engine.worker().workflow::<hello>().activity(greet).spawn();
    let hello = hello::start(&engine.client(), "hello-1", "Ada").await?;
    println!("{}", hello.result().await?);
    Ok(())
}
