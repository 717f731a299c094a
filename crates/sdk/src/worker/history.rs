//! Reads the part of a run's log that a worker does not have in memory.

use abide_core::{
    call::{CallError, HistoryRequest, RunTarget},
    codec::{self, DecodeError},
    event::Event,
    ids::EventNumber,
};

use crate::transport::Transport;

/// A part of a run's log.
pub(super) struct Log {
    /// Events up to the one that was asked for.
    pub(super) events: Vec<Event>,
    /// Where the part ends: there is nothing before it that was not read.
    pub(super) end: u64,
}

/// Why a log cannot be had.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unread {
    /// The engine did not give it.
    #[error(transparent)]
    Call(#[from] CallError),
    /// It cannot be decoded.
    #[error("the history cannot be decoded: {0}")]
    Decode(#[from] DecodeError),
}

/// Reads the log from a position to an event.
pub(super) async fn read(
    transport: &dyn Transport,
    target: RunTarget,
    from: u64,
    last_event: EventNumber,
) -> Result<Log, Unread> {
    let mut log = Log { events: Vec::new(), end: from };
    loop {
        let request = HistoryRequest { target: target.clone(), from: log.end, follow: None };
        let page = transport.history(request).await?;
        for row in page.rows {
            log.events.extend(codec::decode_events(row)?);
        }
        let overshot = log.events.last().is_some_and(|event| event.number > last_event);
        if overshot {
            // The end of this page is behind what may be seen now: the next read begins before it.
            log.events.retain(|event| event.number <= last_event);
            return Ok(log);
        }
        log.end = page.next;
        if !page.more {
            return Ok(log);
        }
    }
}
