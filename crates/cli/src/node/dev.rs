//! `abide dev`.

use std::{env, path::PathBuf};

use abide::Client;
use abide_command::{Common, DEFAULT_ADDRESS, Failed};
use abide_server::Config;
use clap::Args;
use serde_json::json;
use tokio::{sync::oneshot, task::JoinHandle};

use super::{address, start, stop::Stop};
use crate::demo;

/// Start an engine for development, without any setup
///
/// This is the engine that `abide serve` runs, with one SQLite file in the data directory. You can stop or
/// kill it at any time: after a restart every run continues where it was. A demo worker with the workflows
/// `hello`, `approval` and `reminder` is included.
#[derive(Args)]
#[command(after_help = "Example:
  abide dev
  abide dev --data /tmp/try-abide --address 127.0.0.1:0 --http 127.0.0.1:0 --no-demo")]
pub(crate) struct Dev {
    /// Data directory; created if missing
    #[arg(
        long,
        hide_env_values = true,
        env = "ABIDE_DATA",
        value_name = "DIR",
        default_value = "./.abide"
    )]
    data: PathBuf,
    /// HTTP listen address
    #[arg(
        long,
        hide_env_values = true,
        env = "ABIDE_HTTP",
        value_name = "ADDRESS",
        default_value = "127.0.0.1:8233"
    )]
    http: String,
    /// Do not run the demo worker
    #[arg(long)]
    no_demo: bool,
}

impl Dev {
    pub(crate) async fn run(self, common: &Common) -> Result<(), Failed> {
        let listen = common.listen_address().unwrap_or_else(|| DEFAULT_ADDRESS.into());
        let mut config = Config {
            grpc_address: address::parse(&listen)?,
            http_address: address::parse(&self.http)?,
            data: self.data.clone(),
            ..Config::default()
        };
        config.namespaces.extend(common.namespace.clone());
        let mut stop = Stop::listen()?;
        let Some(mut server) = start(config, &mut stop).await? else { return Ok(()) };
        let demo = if self.no_demo {
            None
        } else {
            let client = Client::new(abide_embedded::in_process(server.engine()));
            let namespace = common.namespace.clone();
            let client = client.with_namespace(namespace.unwrap_or_else(|| "default".into()));
            Some(Demo::begin(&client))
        };
        let url = format!("http://{}", server.grpc_address());
        let http = format!("http://{}", server.http_address());
        let data = self.data.canonicalize().unwrap_or(self.data);
        let output = common.output();
        output.say_lines(
            &json!({
                "ready": true, "address": url, "http": http, "data": data,
                "demo": demo.is_some(),
            }),
            welcome(&url, &http, &data, common, demo.is_some()),
        )?;
        tokio::select! {
            () = stop.told() => {}
            error = server.failed() => return Err(Failed::refused(error)),
        }
        if !output.json() {
            output.line("stopping gracefully; press Ctrl-C again to stop immediately")?;
        }
        let end = async {
            if let Some(demo) = demo {
                demo.end().await;
            }
            server.shutdown().await.map_err(Failed::refused)
        };
        stop.unless_told_again(end).await
    }
}

/// The running demo worker.
struct Demo {
    stop: oneshot::Sender<()>,
    worker: JoinHandle<()>,
}

impl Demo {
    fn begin(client: &Client) -> Self {
        let (stop, stopped) = oneshot::channel();
        let worker = demo::worker(client).run_until(async {
            // The sender lives until it is used.
            let _ = stopped.await;
        });
        let worker = tokio::spawn(async move {
            if let Err(error) = worker.await {
                tracing::error!(%error, "demo worker failed");
            }
        });
        Self { stop, worker }
    }

    async fn end(self) {
        // A worker that has ended needs no signal, and its error was logged.
        let _ = self.stop.send(());
        let _ = self.worker.await;
    }
}

fn welcome(url: &str, http: &str, data: &std::path::Path, common: &Common, demo: bool) -> String {
    let mut text = format!(
        "Abide is running. Stop it with Ctrl-C; its data stays in the data directory.\n\n  \
         gRPC  {url}\n  HTTP  {http}\n  data  {}\n",
        data.display()
    );
    if demo {
        let program = program();
        let mut options = String::new();
        if url != DEFAULT_ADDRESS {
            options.push_str(&format!(" --address {url}"));
        }
        if let Some(namespace) = &common.namespace {
            options.push_str(&format!(" --namespace {namespace}"));
        }
        text.push_str("\nTry it from another terminal:\n");
        for command in demo::COMMANDS {
            text.push_str(&format!("\n  {program} {command}{options}"));
        }
    }
    text
}

/// The name under which this program was called, so that the printed commands can be copied.
fn program() -> String {
    env::args().next().filter(|name| !name.is_empty()).unwrap_or_else(|| "abide".into())
}
