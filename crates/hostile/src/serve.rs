//! The server under attack, run as `abide serve` would run it, but for its clock: lines on standard input
//! set that ahead of the machine's.

use std::{
    io::{BufRead as _, Write as _},
    path::Path,
    sync::Arc,
    thread,
    time::Duration,
};

use abide_engine::clock::{AheadClock, Clock};
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
    let clock = Arc::new(AheadClock::default());
    let mut server = Server::open_with_clock(config, Arc::clone(&clock) as Arc<dyn Clock>).await?;
    thread::spawn(move || follow_input(&clock));
    server.ready().await;
    let mut output = std::io::stdout();
    writeln!(output, "{} {}", server.grpc_address(), server.http_address())?;
    output.flush()?;
    Err(server.failed().await.into())
}

/// Each line is a number of seconds, by which the clock is ahead from then on.
fn follow_input(clock: &AheadClock) {
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        if let Ok(seconds) = line.trim().parse() {
            clock.set_ahead(Duration::from_secs(seconds));
        }
    }
}
