//! Hello: a workflow with one step.

use restate_sdk::{ingress::ReqwestClient, prelude::*};

struct Hello;

#[workflow]
impl Hello {
    #[handler]
    async fn run(&self, ctx: WorkflowContext<'_>, name: String) -> HandlerResult<String> {
        Ok(ctx.run(|| greet(name)).await?)
    }
}

async fn greet(name: String) -> HandlerResult<String> {
    Ok(format!("Hello, {name}!"))
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let endpoint = Endpoint::builder().bind(Hello).build();
    tokio::spawn(HttpServer::new(endpoint).listen_and_serve("0.0.0.0:9080".parse()?));
    let client = ReqwestClient::connect("http://localhost:8080".parse()?)?;
    let hello = HelloIngressClient::from_client(client, "hello-1");
    println!("{}", hello.run("Ada".to_owned()).call().await?.into_body()?);
    Ok(())
}
