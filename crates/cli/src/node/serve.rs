//! `abide serve`.

use clap::Args;
use serde_json::json;

use super::{config::Layers, start, stop::Stop};
use crate::{connection::Common, failed::Failed};

/// Run a server, as configured
///
/// What a flag says wins over the environment, that over the file, that over the default.
#[derive(Args)]
#[command(after_help = "Example:
  abide serve --config abide.toml
  abide serve --data /var/lib/abide --address 0.0.0.0:7233
  abide serve --store postgres://abide:password@db.example.org/abide
  abide serve --print-config > abide.toml")]
pub(crate) struct Serve {
    #[command(flatten)]
    layers: Layers,
    /// Print the configuration that all layers make together, without passwords, and end
    #[arg(long)]
    print_config: bool,
}

impl Serve {
    pub(crate) async fn run(self, common: &Common) -> Result<(), Failed> {
        let config = self.layers.merged(common)?;
        let output = common.output();
        if self.print_config {
            let text = toml::to_string(&config).map_err(Failed::refused)?;
            return output.say(&config, text.trim_end());
        }
        let mut stop = Stop::listen()?;
        let scheme = if config.tls.is_some() { "https" } else { "http" };
        let data = config.store_place();
        let Some(mut server) = start(config, &mut stop).await? else { return Ok(()) };
        let (grpc, http) = (server.grpc_address(), server.http_address());
        output.say(
            &json!({
                "ready": true, "address": format!("{scheme}://{grpc}"),
                "http": format!("http://{http}"), "data": data,
            }),
            format_args!("ready: gRPC on {scheme}://{grpc}, HTTP on http://{http}, data in {data}"),
        )?;
        tokio::select! {
            () = stop.told() => {}
            error = server.failed() => return Err(Failed::refused(error)),
        }
        stop.unless_told_again(server.shutdown()).await.map_err(Failed::refused)
    }
}
