//! Ctrl-C and SIGTERM: the first stops the engine gracefully, the second at once.

use std::{future::Future, process};

use abide_command::Failed;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The exit code after a second signal, as shells report a process ended by Ctrl-C.
const TOLD_TWICE: i32 = 130;

/// Waits for the signals that end a process.
pub(super) struct Stop {
    interrupt: Signal,
    terminate: Signal,
}

impl Stop {
    /// From now on, signals do not end the process by themselves.
    pub(super) fn listen() -> Result<Self, Failed> {
        let on = |kind| {
            signal(kind).map_err(|error| {
                Failed::refused(format_args!("cannot install signal handlers: {error}"))
            })
        };
        Ok(Self {
            interrupt: on(SignalKind::interrupt())?,
            terminate: on(SignalKind::terminate())?,
        })
    }

    /// Waits for a signal.
    pub(super) async fn told(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }

    /// Ends gracefully, or at once on another signal.
    pub(super) async fn unless_told_again<T>(&mut self, end: impl Future<Output = T>) -> T {
        tokio::select! {
            ended = end => ended,
            () = self.told() => process::exit(TOLD_TWICE),
        }
    }
}
