//! Hello: one workflow, one activity, and the program that runs both.

use abide::{embedded::Embedded, prelude::*};

/// An activity is an async function. It may do anything: call a service, write a file, fail. If it
/// fails, it is retried.
#[activity]
async fn greet(name: String) -> String {
    format!("Hello, {name}!")
}

/// A workflow is an async function too, with a context. It has side effects only through
/// activities, because it is replayed from its history after a crash: an activity that has a result
/// is then not called again.
#[workflow]
async fn hello(ctx: &Context, name: String) -> abide::Result<String> {
    ctx.activity(greet, name).await
}

#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    // The engine stores what happens. This one keeps it in memory only: see `embedded` for a file.
    let engine = Embedded::in_memory().await;

    // A worker runs the code that is registered with it, in the background.
    engine.worker().workflow::<hello>().activity(greet).spawn();

    // A client starts the workflow. You choose the id: an id can have one open run at a time.
    let client = engine.client();
    let hello = hello::start(&client, "hello-1", "Ada").await?;

    println!("{}", hello.result().await?);
    Ok(())
}
