//! Saga: a trip of three bookings; when the last one fails, the others are undone, newest first.

use dbos::{Config, DBOS, step};
use serde::{Deserialize, Serialize};

#[derive(Debug, Deserialize, Serialize, thiserror::Error)]
#[error("no car left")]
struct NoCar;

async fn book(what: &str) -> dbos::Result<(), NoCar> {
    if what == "car" {
        Err(NoCar)?;
    }
    println!("booked a {what}");
    Ok(())
}

async fn cancel(what: &str) -> dbos::Result<(), NoCar> {
    println!("cancelled the {what}");
    Ok(())
}

async fn trip(_: ()) -> dbos::Result<String, NoCar> {
    let mut undo = Vec::new();
    for what in ["hotel", "flight", "car"] {
        if let Err(error) = step("book", || book(what)).await {
            for what in undo.into_iter().rev() {
                step("cancel", || cancel(what)).await?;
            }
            return Err(error);
        }
        undo.push(what);
    }
    Ok("booked".to_owned())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut config = Config::from_env("saga");
    config.app_version = Some("1".to_owned());
    let dbos = DBOS::new(config);
    let trip = dbos.register_workflow("trip", trip)?;
    dbos.launch().await?;
    match trip.run(()).await {
        Ok(done) => println!("{done}"),
        Err(error) => println!("failed: {error}"),
    }
    dbos.shutdown().await;
    Ok(())
}
