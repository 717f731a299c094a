//! The database restarts under all nodes, by a command of the user.

use tokio::process::Command;

use crate::check::{Finding, unable};

pub(super) async fn perform(command: Option<&str>) -> Result<(), Finding> {
    let Some(command) = command else { return Ok(()) };
    let status = Command::new("/bin/sh").arg("-c").arg(command).status().await;
    let status = status.map_err(unable("restart the database"))?;
    if status.success() {
        return Ok(());
    }
    Err(Finding::new("--restart-database", format!("the command ended with {status}")))
}
