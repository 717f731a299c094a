//! `abide serve`.

use abide_command::{Common, Failed};
use abide_server::Config;
use clap::Args;
use serde_json::json;

use super::{config::Layers, start, stop::Stop};

/// Run a server
///
/// Flags override environment variables, which override the configuration file, which overrides the
/// defaults.
#[derive(Args)]
#[command(after_help = "Example:
  abide serve --config abide.toml
  abide serve --data /var/lib/abide --address 0.0.0.0:7233
  abide serve --store postgres://abide:password@db.example.org/abide
  abide serve --print-config > abide.toml")]
pub(crate) struct Serve {
    #[command(flatten)]
    layers: Layers,
    /// Print the resulting configuration, without passwords, and exit
    #[arg(long)]
    print_config: bool,
}

impl Serve {
    pub(crate) async fn run(self, common: &Common) -> Result<(), Failed> {
        let config = self.layers.merged(common)?;
        let output = common.output();
        if self.print_config {
            let text = toml::to_string(&config).map_err(Failed::refused)?;
            return output.say_lines(&config, text.trim_end());
        }
        let mut stop = Stop::listen()?;
        let scheme = if config.tls.is_some() { "https" } else { "http" };
        let data = config.store_place();
        if open_to_others(&config) {
            tracing::warn!(
                address = %config.grpc_address,
                "gRPC has no TLS and accepts everybody who can reach this address: set --tls-certificate, \
                 --tls-key and --tls-client-ca, or listen on 127.0.0.1"
            );
        }
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

/// Whether other machines may connect without TLS, so that anybody among them may do everything.
const fn open_to_others(config: &Config) -> bool {
    config.tls.is_none() && !config.grpc_address.ip().is_loopback()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_address_that_others_reach_without_tls_is_open() {
        let at = |address: &str, tls: &str| {
            let config = Config::from_toml(&format!("grpc_address = '{address}'\n{tls}"));
            open_to_others(&config.expect("a good file"))
        };
        assert!(at("0.0.0.0:7233", "") && at("[::]:7233", "") && at("10.0.0.1:7233", ""));
        assert!(!at("127.0.0.1:7233", "") && !at("[::1]:7233", ""));
        assert!(!at("0.0.0.0:7233", "[tls]\ncertificate = 'a'\nkey = 'b'"));
    }
}
