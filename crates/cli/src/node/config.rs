//! Configuration in layers: a flag overrides the environment, which overrides the file, which
//! overrides the default. clap reads flags and environment together.

use std::{env, fs, path::PathBuf, time::Duration};

use abide_command::{Common, Failed, time::parse_length};
use abide_server::{Config, Secret, StoreAddress, Tls};
use clap::Args;

use super::address;

/// The values from flags and environment; the file supplies the rest.
#[derive(Args)]
pub(super) struct Layers {
    /// Configuration file (TOML)
    #[arg(short, long, hide_env_values = true, env = "ABIDE_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Data directory [default: ./abide-data]
    #[arg(long, hide_env_values = true, env = "ABIDE_DATA", value_name = "DIR")]
    data: Option<PathBuf>,
    /// PostgreSQL database to use instead of a file in the data directory
    #[arg(
        long,
        hide_env_values = true,
        env = "ABIDE_STORE",
        value_name = "postgres://USER:PASSWORD@HOST/DATABASE"
    )]
    store: Option<String>,
    /// Name of this node among those that share the database [default: value of --advertise]
    #[arg(long, hide_env_values = true, env = "ABIDE_NODE", value_name = "NAME")]
    node: Option<String>,
    /// Host and port at which other nodes reach this one [default: the gRPC address]
    #[arg(long, hide_env_values = true, env = "ABIDE_ADVERTISE", value_name = "ADDRESS")]
    advertise: Option<String>,
    /// Time without lease renewal after which other nodes take over a node's shards, such as 15s or 500ms;
    /// a plain number is in seconds [default: 5s]
    #[arg(
        long,
        hide_env_values = true,
        env = "ABIDE_LEASE",
        value_name = "LENGTH",
        value_parser = parse_lease
    )]
    lease: Option<Duration>,
    /// File with the secret that all nodes share; see `abide nodes secret`
    #[arg(long, hide_env_values = true, env = "ABIDE_NODE_SECRET_FILE", value_name = "FILE")]
    secret_file: Option<PathBuf>,
    /// Name in the certificates of all nodes, and of no client; it authenticates nodes instead of a
    /// secret
    #[arg(long, hide_env_values = true, env = "ABIDE_NODE_CERTIFICATE_NAME", value_name = "NAME")]
    certificate_name: Option<String>,
    /// HTTP listen address [default: 127.0.0.1:8233]
    #[arg(long, hide_env_values = true, env = "ABIDE_HTTP", value_name = "ADDRESS")]
    http: Option<String>,
    /// Namespaces, separated by commas [default: default]
    #[arg(
        long,
        hide_env_values = true,
        env = "ABIDE_NAMESPACES",
        value_name = "NAMES",
        value_delimiter = ','
    )]
    namespaces: Vec<String>,
    /// Server certificate (PEM); gRPC then accepts TLS only
    #[arg(
        long,
        hide_env_values = true,
        env = "ABIDE_TLS_CERTIFICATE",
        value_name = "FILE",
        requires = "tls_key"
    )]
    tls_certificate: Option<PathBuf>,
    /// Private key of the server certificate (PEM)
    #[arg(
        long,
        hide_env_values = true,
        env = "ABIDE_TLS_KEY",
        value_name = "FILE",
        requires = "tls_certificate"
    )]
    tls_key: Option<PathBuf>,
    /// CA certificate (PEM) that must have signed the certificates of clients
    #[arg(
        long,
        hide_env_values = true,
        env = "ABIDE_TLS_CLIENT_CA",
        value_name = "FILE",
        requires = "tls_certificate"
    )]
    tls_client_ca: Option<PathBuf>,
}

impl Layers {
    /// Merges all layers into one configuration.
    pub(super) fn merged(self, common: &Common) -> Result<Config, Failed> {
        let mut config = match &self.config {
            Some(path) => from_file(path)?,
            None => Config::default(),
        };
        if let Some(text) = common.listen_address() {
            config.grpc_address = address::parse(&text)?;
        }
        if let Some(text) = &self.http {
            config.http_address = address::parse(text)?;
        }
        if let Some(data) = self.data {
            config.data = data;
        }
        if let Some(store) = self.store {
            config.store = Some(StoreAddress(store));
        }
        if self.node.is_some() || self.advertise.is_some() || self.lease.is_some() {
            let node = config.node.get_or_insert_default();
            node.name = self.node.or(node.name.take());
            node.advertise = self.advertise.or(node.advertise.take());
            let millis = |lease: Duration| u64::try_from(lease.as_millis()).unwrap_or(u64::MAX);
            node.lease_ms = self.lease.map(millis).or(node.lease_ms);
        }
        if let Some(path) = self.secret_file {
            let node = config.node.get_or_insert_default();
            (node.secret, node.secret_file) = (None, Some(path));
        }
        if let Some(name) = self.certificate_name {
            config.node.get_or_insert_default().certificate_name = Some(name);
        }
        // A secret does not belong in arguments, which every user of the machine can see. A server
        // on a file ignores it, because it may share the environment with servers that need it.
        if let Ok(secret) = env::var("ABIDE_NODE_SECRET")
            && (config.store.is_some() || config.node.is_some())
        {
            config.node.get_or_insert_default().secret = Some(Secret(secret));
        }
        if !self.namespaces.is_empty() {
            config.set_namespaces(self.namespaces).map_err(Failed::usage)?;
        }
        if let (Some(certificate), Some(key)) = (self.tls_certificate, self.tls_key) {
            config.tls = Some(Tls { certificate, key, client_ca: self.tls_client_ca });
        }
        Ok(config)
    }
}

/// A duration with its unit, or a number of seconds.
fn parse_lease(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(seconds) => Ok(Duration::from_secs(seconds)),
        Err(_) => parse_length(text),
    }
}

fn from_file(path: &PathBuf) -> Result<Config, Failed> {
    let refuse = |error: &dyn std::fmt::Display| {
        let text = error.to_string();
        Failed::usage(format_args!("{}: {}", path.display(), text.trim_end()))
            .hint("`abide serve --print-config` shows all settings")
    };
    let text = fs::read_to_string(path).map_err(|error| refuse(&error))?;
    Config::from_toml(&text).map_err(|error| refuse(&error))
}
