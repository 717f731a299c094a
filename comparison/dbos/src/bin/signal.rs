//! Signal or timeout: an order waits for its payment for a week, else a step reminds the customer.

use std::time::Duration;

use dbos::{Config, DBOS, StartOptions, recv, step};

async fn remind(customer: String) -> dbos::Result<()> {
    println!("{customer}, please remember to pay");
    Ok(())
}

async fn order(customer: String) -> dbos::Result<String> {
    match recv::<u64, _>(None, Duration::from_secs(7 * 24 * 3600)).await? {
        Some(cents) => Ok(format!("{customer} paid {cents} cents")),
        None => {
            step("remind", || remind(customer.clone())).await?;
            Ok(format!("{customer} has not paid"))
        }
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut config = Config::from_env("signal");
    config.app_version = Some("1".to_owned());
    let dbos = DBOS::new(config);
    let order = dbos.register_workflow("order", order)?;
    dbos.launch().await?;
    let options = StartOptions { workflow_id: Some("order-1"), ..Default::default() };
    let order = order.start_with("Ada".to_owned(), options).await?;
    dbos.send("order-1", &4200u64).await?;
    println!("{}", order.result().await?);
    dbos.shutdown().await;
    Ok(())
}
