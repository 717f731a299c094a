//! The server under attack, run as `abide serve` would run it.

use std::{io::Write as _, path::Path};

use abide_server::{Config, Server};
use tracing_subscriber::EnvFilter;

use crate::Finding;

/// Name of the command that turns this program into a server.
pub const SERVE: &str = "serve";

/// Runs a server with the configuration in a file, prints its addresses when it is ready, and
/// returns only if it fails.
pub async fn serve(config: &Path) -> Result<(), Finding> {
    let filter = EnvFilter::new("info");
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let config = Config::from_toml(&std::fs::read_to_string(config)?)?;
    let mut server = Server::open(config).await?;
    server.ready().await;
    let mut output = std::io::stdout();
    writeln!(output, "{} {}", server.grpc_address(), server.http_address())?;
    output.flush()?;
    Err(server.failed().await.into())
}
