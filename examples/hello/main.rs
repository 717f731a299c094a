//! Hello: one workflow, one activity, and the program that runs both.

use abide::{embedded::Embedded, prelude::*};

/// An activity is an async function. It may do anything: call a service, write a file, fail. If it
/// fails, it is tried again.
#[activity]
async fn greet(name: String) -> String {
    format!("Hello, {name}!")
}

/// A workflow is a struct, which is its state. This one has none.
#[derive(Default)]
struct Hello;

#[workflow]
impl Hello {
    /// The run is what happens. It touches the world by activities only, because it is run again from
    /// its history after a crash: an activity that has a result is then not called a second time.
    #[run]
    async fn run(ctx: &Context<Self>, name: String) -> abide::Result<String> {
        ctx.activity(greet, name).await
    }
}

#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    // The engine keeps what happens. This one forgets it at the end: see `embedded` for a file.
    let engine = Embedded::in_memory().await;

    // A worker runs the code. It is told what it can run, and works beside the rest of the program.
    tokio::spawn(engine.worker().workflow::<Hello>().activity(greet).run());

    // A client starts the workflow. The id is yours: an id can have one open run at a time.
    let client = engine.client();
    let hello = client.start::<Hello>("hello-1", "Ada".to_owned()).await?;

    println!("{}", hello.result().await?);
    Ok(())
}
