//! Approval with a deadline: a purchase waits for a decision for three days, and the deadline can move.

use std::time::{Duration, SystemTime};

use dbos::{Config, DBOS, StartOptions, recv, step};
use serde::{Deserialize, Serialize};

const DAY: Duration = Duration::from_secs(24 * 3600);

#[derive(Serialize, Deserialize)]
enum Message {
    Decide(bool),
    Extend(u32),
}

async fn now() -> dbos::Result<SystemTime> {
    Ok(SystemTime::now())
}

async fn purchase(item: String) -> dbos::Result<String> {
    let mut deadline = step("now", now).await? + 3 * DAY;
    loop {
        let left = deadline.duration_since(step("now", now).await?);
        match recv(None, left.unwrap_or_default()).await? {
            Some(Message::Decide(true)) => return Ok(format!("{item}: approved")),
            Some(Message::Decide(false)) => return Ok(format!("{item}: rejected")),
            Some(Message::Extend(days)) => deadline += days * DAY,
            None => return Ok(format!("{item}: too late")),
        }
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut config = Config::from_env("approval");
    config.app_version = Some("1".to_owned());
    let dbos = DBOS::new(config);
    let purchase = dbos.register_workflow("purchase", purchase)?;
    dbos.launch().await?;
    let options = StartOptions { workflow_id: Some("desk"), ..Default::default() };
    let desk = purchase.start_with("a desk".to_owned(), options).await?;
    dbos.send("desk", &Message::Extend(2)).await?;
    dbos.send("desk", &Message::Decide(true)).await?;
    println!("{}", desk.result().await?);
    dbos.shutdown().await;
    Ok(())
}
