//! Fan-out: ten pages are counted at the same time, and the counts are added.

use restate_sdk::{ingress::ReqwestClient, prelude::*};

struct Steps;

#[service]
impl Steps {
    #[handler]
    async fn count(&self, _ctx: Context<'_>, page: u64) -> HandlerResult<u64> {
        Ok(page * 100)
    }
}

struct Import;

#[workflow]
impl Import {
    #[handler]
    async fn run(&self, ctx: WorkflowContext<'_>, pages: u64) -> HandlerResult<u64> {
        let mut counts = DurableFuturesUnordered::new();
        for page in 1..=pages {
            counts.push(ctx.service_client::<StepsClient>().count(page).call());
        }
        let mut sum = 0;
        while let Some((_, count)) = counts.next().await? {
            sum += count?;
        }
        Ok(sum)
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let endpoint = Endpoint::builder().bind(Steps).bind(Import).build();
    tokio::spawn(HttpServer::new(endpoint).listen_and_serve("0.0.0.0:9080".parse()?));
    let client = ReqwestClient::connect("http://localhost:8080".parse()?)?;
    let import = ImportIngressClient::from_client(client, "import-1");
    println!("{}", import.run(10).call().await?.into_body()?);
    Ok(())
}
