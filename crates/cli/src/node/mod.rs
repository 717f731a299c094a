//! A running engine with its listeners, for `dev` and `serve`: errors at its start say what to do,
//! and Ctrl-C or SIGTERM stops it.

mod address;
mod config;
pub(crate) mod dev;
pub(crate) mod serve;
mod stop;

use std::{io::ErrorKind, sync::Arc};

use abide_command::Failed;
use abide_server::{Config, Server, ServerError};
use abide_store_sqlite::OpenError;

use self::stop::Stop;

/// Starts an engine and its listeners, and waits until everything is in memory. That may take for
/// ever, for example if another node has the same name. `None` if it is told to stop meanwhile.
async fn start(config: Config, stop: &mut Stop) -> Result<Option<Server>, Failed> {
    let (grpc, data) = (config.grpc_address, config.data.clone());
    let server = Server::open(config).await.map_err(|error| match error {
        ServerError::Listen { address, error } if error.kind() == ErrorKind::AddrInUse => {
            let (what, flag) =
                if address == grpc { ("gRPC", "--address") } else { ("HTTP", "--http") };
            Failed::refused(format_args!(
                "{what} cannot listen on {address}: the address is in use"
            ))
            .hint(format!("stop the other process, or choose another address: {flag} 127.0.0.1:0"))
        }
        ServerError::Store(OpenError::InUse { .. }) => Failed::refused(format_args!(
            "the data directory {} is in use by another process",
            data.display()
        ))
        .hint("stop the other engine, or choose another directory with --data DIR"),
        wrong if wrong.is_configuration() => Failed::usage(wrong),
        other => Failed::refused(other),
    })?;
    let engine = Arc::clone(server.engine());
    tokio::select! {
        // A server whose engine has failed never becomes ready, so check for failure first.
        biased;
        reason = engine.failed() => return Err(Failed::refused(ServerError::Engine(reason))),
        () = server.ready() => return Ok(Some(server)),
        () = stop.told() => {}
    }
    stop.unless_told_again(server.shutdown()).await.map_err(Failed::refused)?;
    Ok(None)
}
