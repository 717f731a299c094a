//! The way to the engine that a command speaks to.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use abide::{
    Client,
    grpc::{GrpcOptions, GrpcTransport},
};
use abide_core::call::CallError;
use clap::Args;

use crate::{failed::Failed, output::Output};

/// Where clients look for an engine if nobody says otherwise, and where `dev` and `serve` listen.
pub(crate) const DEFAULT_ADDRESS: &str = "http://127.0.0.1:7233";

const HEADING: &str = "Options of every command";

/// What every command understands.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Common {
    /// The engine: where to connect, or where to listen [default: http://127.0.0.1:7233]
    #[arg(
        long,
        global = true,
        help_heading = HEADING,
        hide_env_values = true,
        env = "ABIDE_ADDRESS",
        value_name = "URL"
    )]
    pub(crate) address: Option<String>,
    /// The namespace [default: default]
    #[arg(
        long,
        global = true,
        help_heading = HEADING,
        hide_env_values = true,
        env = "ABIDE_NAMESPACE",
        value_name = "NAME"
    )]
    pub(crate) namespace: Option<String>,
    /// Who you are, as histories show it [default: user and host]
    #[arg(
        long,
        global = true,
        help_heading = HEADING,
        hide_env_values = true,
        env = "ABIDE_IDENTITY",
        value_name = "NAME"
    )]
    pub(crate) identity: Option<String>,
    /// The root of the server's certificate, in PEM, if the operating system does not know it
    #[arg(
        long,
        global = true,
        help_heading = HEADING,
        hide_env_values = true,
        env = "ABIDE_TLS_CA",
        value_name = "FILE"
    )]
    tls_ca: Option<PathBuf>,
    /// Write JSON for programs: one object per line, with stable keys
    #[arg(long, global = true, help_heading = HEADING)]
    pub(crate) json: bool,
}

impl Common {
    /// What is said if only an engine is named.
    pub(crate) fn at(url: String) -> Self {
        Self { address: Some(url), ..Self::default() }
    }

    /// Where output goes.
    pub(crate) const fn output(&self) -> Output {
        Output::new(self.json)
    }

    /// The address of the engine, with its scheme.
    pub(crate) fn engine_url(&self) -> String {
        match self.address.as_deref() {
            None => DEFAULT_ADDRESS.into(),
            Some(address) if address.contains("://") => address.into(),
            Some(address) => format!("http://{address}"),
        }
    }

    /// A client of the engine, which must be there.
    pub(crate) async fn client(&self) -> Result<Client, Failed> {
        let mut options = GrpcOptions::new(self.engine_url());
        options.tls.ca = self.tls_ca.as_deref().map(read).transpose()?;
        let transport = GrpcTransport::connect(&options).await.map_err(|error| match error {
            CallError::Unavailable(why) => Failed::unreachable(format_args!(
                "no engine can be reached at {why}"
            ))
            .hint("start one with `abide dev`, or name another with --address or ABIDE_ADDRESS"),
            other => Failed::usage(other),
        })?;
        let client = Client::new(Arc::new(transport));
        let client = client.with_identity(self.identity.clone().unwrap_or_else(user_and_host));
        Ok(match &self.namespace {
            Some(namespace) => client.with_namespace(namespace.as_str()),
            None => client,
        })
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Failed> {
    fs::read(path)
        .map_err(|error| Failed::usage(format_args!("{} cannot be read: {error}", path.display())))
}

fn user_and_host() -> String {
    let user =
        ["USER", "LOGNAME", "USERNAME"].into_iter().find_map(|name| std::env::var(name).ok());
    let host = fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let host = host.as_deref().map_or("localhost", str::trim);
    format!("{}@{host}", user.as_deref().unwrap_or("cli"))
}
