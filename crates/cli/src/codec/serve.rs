//! `abide codec serve`.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use abide::codec::{CodecEndpoint, Codecs, KeyRing, LocalFolder};
use abide_command::{Common, Failed};
use clap::Args;
use serde_json::json;
use tokio::net::TcpListener;

/// Serve a codec endpoint, which decodes payloads for the command line and the web UI
///
/// It reads what `Codecs::new().compress().encrypt(keys).offload(folder)` writes, and encodes the same
/// way. Programs with codecs of their own mount `abide::codec::CodecEndpoint` instead. It speaks HTTP
/// without TLS: keep it on the loopback address, or put it behind a proxy that has TLS.
#[derive(Args)]
#[command(after_help = "Example:
  (umask 077; abide codec key 2026-05 > abide.keys; openssl rand -hex 32 > codec.token)
  abide codec serve --keys abide.keys --token-file codec.token
  abide workflow history order-7 --codec-endpoint http://127.0.0.1:8234 --codec-token-file codec.token")]
pub(crate) struct Serve {
    /// File with the keys, one ID=KEY per line; the first encrypts [default: no encryption]
    #[arg(long, value_name = "FILE", env = "ABIDE_CODEC_KEYS", hide_env_values = true)]
    keys: Option<PathBuf>,
    /// Folder with large payloads [default: they stay in histories]
    #[arg(long, value_name = "FOLDER")]
    blobs: Option<PathBuf>,
    /// File with the token that callers must send, of at least 16 characters
    #[arg(long, value_name = "FILE")]
    token_file: PathBuf,
    /// Origin of web pages that may call, such as https://ui.example.org; repeat for several
    #[arg(long, value_name = "URL")]
    origin: Vec<String>,
    /// Address to listen on
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8234")]
    listen: SocketAddr,
}

impl Serve {
    pub(super) async fn run(self, common: &Common) -> Result<(), Failed> {
        let mut codecs = Codecs::new().compress();
        if let Some(file) = &self.keys {
            let keys = KeyRing::parse(&read(file)?).map_err(|error| {
                Failed::usage(format_args!("{}: {error}", file.display()))
                    .hint("make a key with `abide codec key ID`")
            })?;
            codecs = codecs.encrypt(keys);
        }
        if let Some(folder) = self.blobs {
            let store = LocalFolder::open(&folder)
                .map_err(|error| Failed::usage(format_args!("{}: {error}", folder.display())))?;
            codecs = codecs.offload(store);
        }
        let token = read(&self.token_file)?;
        let mut endpoint = CodecEndpoint::new(codecs, token.trim()).map_err(Failed::usage)?;
        for origin in &self.origin {
            endpoint = endpoint.allow_origin(origin).map_err(Failed::usage)?;
        }
        let listener = TcpListener::bind(self.listen).await.map_err(|error| {
            Failed::refused(format_args!("cannot listen on {}: {error}", self.listen))
        })?;
        let address = listener.local_addr()?;
        if !address.ip().is_loopback() {
            let reachable = format!(
                "warning: {address} can be reached from other machines, and this endpoint has no TLS: who is \
                 on the way reads the token and the data; put a proxy with TLS in front of it"
            );
            common.output().remark(&json!({ "warning": reachable }), &reachable)?;
        }
        common.output().say(
            &json!({ "codec_endpoint": format!("http://{address}") }),
            format_args!("codec endpoint at http://{address}"),
        )?;
        tokio::select! {
            ended = endpoint.serve(listener) => Ok(ended?),
            stopped = tokio::signal::ctrl_c() => Ok(stopped?),
        }
    }
}

fn read(file: &Path) -> Result<String, Failed> {
    fs::read_to_string(file)
        .map_err(|error| Failed::usage(format_args!("cannot read {}: {error}", file.display())))
}
