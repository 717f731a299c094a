//! What waiting runs cost the database: bytes, rows, and write-ahead log.

use std::time::Duration;

use abide::{Client, prelude::days};
use abide_command::{Failed, time::moment};
use tokio::time::sleep;

use super::{
    COUNTED,
    cluster::Cluster,
    database::{Database, DatabaseWork},
};
use crate::{
    report::Report,
    session::Session,
    sleepers::{all_wait, fall_asleep},
    workflows::WaitFor,
};

/// Longer than any measurement.
const SLEEP: Duration = days(7);

/// Starts sleeping runs, then as many that wait for a signal, and measures what they added.
pub(super) async fn measure(
    database: &Database,
    runs: u64,
    session: &Session<'_>,
) -> Result<(), Failed> {
    let mut cluster = Cluster::start(database, 1).await?;
    cluster.start_workers().await?;
    let clients = cluster.clients().await?;
    let Some(client) = clients.first() else { return Ok(()) };
    let due = WaitFor::Until(moment(SLEEP)?);
    let asleep = added(database, client, due, runs, runs).await?;
    tell(session, "runs that sleep for a week", runs, asleep)?;
    let signalled = added(database, client, WaitFor::ForSignal, runs, 2 * runs).await?;
    tell(session, "runs that wait for a signal", runs, signalled)
}

/// What so many new runs add, until so many wait in all.
async fn added(
    database: &Database,
    client: &Client,
    waiting: WaitFor,
    runs: u64,
    in_all: u64,
) -> Result<DatabaseWork, Failed> {
    let before = database.work().await?;
    fall_asleep(client, "runs that wait", runs, |_| waiting).await?;
    all_wait(client, in_all).await?;
    sleep(COUNTED).await;
    Ok(database.work().await?.since(before))
}

fn tell(session: &Session<'_>, what: &str, runs: u64, work: DatabaseWork) -> Result<(), Failed> {
    let per_run = |value: f64| value / runs as f64;
    session.report(
        &Report::new("postgres-waiting", what)
            .count("runs", runs)
            .figure("table_bytes_per_run", per_run(work.table_bytes))
            .figure("rows_per_run", per_run(work.rows))
            .figure("log_bytes_per_run", per_run(work.log_bytes)),
    )
}
