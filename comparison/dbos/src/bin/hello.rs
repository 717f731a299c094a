//! Hello: a workflow with one step.

use dbos::{Config, DBOS, step};

async fn greet(name: String) -> dbos::Result<String> {
    Ok(format!("Hello, {name}!"))
}

async fn hello(name: String) -> dbos::Result<String> {
    step("greet", || greet(name.clone())).await
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut config = Config::from_env("hello");
    config.app_version = Some("1".to_owned());
    let dbos = DBOS::new(config);
    let hello = dbos.register_workflow("hello", hello)?;
    dbos.launch().await?;
    println!("{}", hello.run("Ada".to_owned()).await?);
    dbos.shutdown().await;
    Ok(())
}
