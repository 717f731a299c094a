//! The connection to the engine that a command uses.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use abide::{
    __private::grpc::{GrpcOptions, GrpcTransport, TlsOptions},
    Client, Codecs,
};
use abide_core::operation::CallError;
use clap::Args;

use crate::{Failed, Output, codec_endpoint, failed::tls_hint};

/// Default address of clients, and of the listener of `dev` and `serve`.
pub const DEFAULT_ADDRESS: &str = "http://127.0.0.1:7233";

const HEADING: &str = "Global options";

/// The options of every command.
#[derive(Args, Clone, Debug, Default)]
pub struct Common {
    /// Address of the engine; separate several servers by commas [env: ABIDE_ADDRESS]. For `dev` and
    /// `serve`: address to listen on [env: ABIDE_LISTEN] [default: http://127.0.0.1:7233]
    #[arg(long, global = true, help_heading = HEADING, value_name = "URL")]
    pub address: Option<String>,
    /// Namespace [default: default]
    #[arg(
        long,
        global = true,
        help_heading = HEADING,
        hide_env_values = true,
        env = "ABIDE_NAMESPACE",
        value_name = "NAME"
    )]
    pub namespace: Option<String>,
    /// Your name, as recorded in histories [default: user@host]
    #[arg(
        long,
        global = true,
        help_heading = HEADING,
        hide_env_values = true,
        env = "ABIDE_IDENTITY",
        value_name = "NAME"
    )]
    identity: Option<String>,
    /// CA certificate that signed the server's certificate (PEM) [default: system roots]
    #[arg(
        long,
        global = true,
        help_heading = HEADING,
        hide_env_values = true,
        env = "ABIDE_TLS_CA",
        value_name = "FILE"
    )]
    tls_ca: Option<PathBuf>,
    /// Client certificate (PEM), if the server requires one
    #[arg(
        long,
        global = true,
        help_heading = HEADING,
        hide_env_values = true,
        env = "ABIDE_TLS_CLIENT_CERTIFICATE",
        value_name = "FILE"
    )]
    tls_client_certificate: Option<PathBuf>,
    /// Private key of the client certificate (PEM)
    #[arg(
        long,
        global = true,
        help_heading = HEADING,
        hide_env_values = true,
        env = "ABIDE_TLS_CLIENT_KEY",
        value_name = "FILE"
    )]
    tls_client_key: Option<PathBuf>,
    /// Name in the server's certificate, if it is not the host of the address
    #[arg(
        long,
        global = true,
        help_heading = HEADING,
        hide_env_values = true,
        env = "ABIDE_TLS_DOMAIN",
        value_name = "NAME"
    )]
    tls_domain: Option<String>,
    /// Address of a codec endpoint, which decodes the data that is shown and encodes the data that
    /// is sent
    #[arg(
        long,
        global = true,
        help_heading = HEADING,
        hide_env_values = true,
        env = "ABIDE_CODEC_ENDPOINT",
        value_name = "URL"
    )]
    codec_endpoint: Option<String>,
    /// File with the token of the codec endpoint [env: ABIDE_CODEC_TOKEN has the token itself]
    #[arg(
        long,
        global = true,
        help_heading = HEADING,
        hide_env_values = true,
        env = "ABIDE_CODEC_TOKEN_FILE",
        value_name = "FILE"
    )]
    codec_token_file: Option<PathBuf>,
    /// Print JSON: one object per line, with stable keys
    #[arg(long, global = true, help_heading = HEADING)]
    pub json: bool,
}

impl Common {
    /// Options that name only an engine, with defaults for the rest.
    pub fn at(url: String) -> Self {
        Self { address: Some(url), ..Self::default() }
    }

    pub const fn output(&self) -> Output {
        Output::new(self.json)
    }

    /// The addresses of the engine's servers, each with its scheme, separated by commas.
    pub fn engine_url(&self) -> Result<String, Failed> {
        let said = self.address_or("ABIDE_ADDRESS").unwrap_or_else(|| DEFAULT_ADDRESS.into());
        let addresses = said.split(',').map(str::trim).map(with_scheme);
        Ok(addresses.collect::<Result<Vec<_>, Failed>>()?.join(","))
    }

    /// The address that an engine should listen on, if one was given.
    pub fn listen_address(&self) -> Option<String> {
        self.address_or("ABIDE_LISTEN")
    }

    /// The flag, or else this variable. Connecting and listening have different variables, so that
    /// naming an engine for clients does not move engines started in the same shell.
    fn address_or(&self, variable: &str) -> Option<String> {
        let said = || std::env::var(variable).ok().filter(|address| !address.is_empty());
        self.address.clone().or_else(said)
    }

    fn tls(&self) -> Result<TlsOptions, Failed> {
        let identity = match (&self.tls_client_certificate, &self.tls_client_key) {
            (Some(certificate), Some(key)) => Some((read(certificate)?, read(key)?)),
            (None, None) => None,
            _ => {
                let what = "a client certificate and its key must be given together";
                return Err(Failed::usage(what)
                    .hint("set both --tls-client-certificate and --tls-client-key"));
            }
        };
        let ca = self.tls_ca.as_deref().map(read).transpose()?;
        Ok(TlsOptions { ca, domain: self.tls_domain.clone(), identity })
    }

    /// Connects to the engine, which must be running.
    pub async fn client(&self) -> Result<Client, Failed> {
        let options = GrpcOptions { tls: self.tls()?, ..GrpcOptions::new(self.engine_url()?) };
        let transport = GrpcTransport::connect(&options).await.map_err(|error| match error {
            CallError::Unavailable(why) => {
                let hint = tls_hint(&why).unwrap_or(
                    "start one with `abide dev`, or set another address with --address or ABIDE_ADDRESS",
                );
                Failed::unreachable(format_args!("cannot reach an engine at {why}")).hint(hint)
            }
            other => Failed::usage(other),
        })?;
        let client = Client::new(Arc::new(transport));
        let client = client.with_identity(self.identity.clone().unwrap_or_else(user_and_host));
        let client = match self.codecs()? {
            Some(codecs) => client.with_codecs(codecs),
            None => client,
        };
        Ok(match &self.namespace {
            Some(namespace) => client.with_namespace(namespace.as_str()),
            None => client,
        })
    }

    /// The codecs of the endpoint, if one is named.
    fn codecs(&self) -> Result<Option<Codecs>, Failed> {
        let Some(url) = self.codec_endpoint.as_deref().filter(|url| !url.is_empty()) else {
            return Ok(None);
        };
        let token = match &self.codec_token_file {
            Some(file) => Some(String::from_utf8_lossy(&read(file)?).into_owned()),
            None => std::env::var("ABIDE_CODEC_TOKEN").ok().filter(|token| !token.is_empty()),
        };
        codec_endpoint::codecs(url, token.as_deref()).map(Some)
    }
}

fn with_scheme(address: &str) -> Result<String, Failed> {
    let refuse = |why: String| {
        Failed::usage(format_args!("invalid address {address:?}: {why}"))
            .hint("write it as http://127.0.0.1:7233, or with https for TLS")
    };
    match address.split_once("://") {
        None if address.is_empty() => Err(refuse("it is empty".into())),
        None => Ok(format!("http://{address}")),
        Some(("http" | "https", _)) => Ok(address.into()),
        Some((scheme, _)) => Err(refuse(format!("unknown scheme {scheme:?}"))),
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Failed> {
    fs::read(path)
        .map_err(|error| Failed::usage(format_args!("cannot read {}: {error}", path.display())))
}

fn user_and_host() -> String {
    let user =
        ["USER", "LOGNAME", "USERNAME"].into_iter().find_map(|name| std::env::var(name).ok());
    let host = fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let host = host.as_deref().map_or("localhost", str::trim);
    format!("{}@{host}", user.as_deref().unwrap_or("cli"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_of_several_servers_has_a_scheme() {
        let url = |address: &str| Common::at(address.into()).engine_url();
        let said = url("one:7233, https://two:7233,http://three").unwrap();
        assert_eq!(said, "http://one:7233,https://two:7233,http://three");
        for wrong in ["one,ftp://two", "one,,two", "one,"] {
            assert!(url(wrong).unwrap_err().to_string().contains("invalid address"), "{wrong}");
        }
    }
}
