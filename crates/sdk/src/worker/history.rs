//! Reads the part of a run's log that a worker does not have in memory.

use std::{sync::Arc, time::Duration};

use abide_core::{
    codec::{self, DecodeError},
    event::Event,
    ids::EventNumber,
    operation::{CallError, History, HistoryPage, RunTarget},
};

use super::shared::Shared;
use crate::{
    backoff::Backoff,
    transport::{SessionSender, ask},
};

/// Between two tries to read a page.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

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
    /// The engine does not give it.
    #[error(transparent)]
    Refused(CallError),
    /// The engine could not give it while the stream lasted that the work came on.
    #[error("the stream ended: {0}")]
    StreamEnded(CallError),
    /// It cannot be decoded.
    #[error("the history cannot be decoded: {0}")]
    Decode(#[from] DecodeError),
}

/// Reads the log from a position to an event, for work that came on the stream of this sender.
pub(super) async fn read(
    shared: &Shared,
    sender: &Arc<dyn SessionSender>,
    target: RunTarget,
    from: u64,
    last_event: EventNumber,
) -> Result<Log, Unread> {
    let mut log = Log { events: Vec::new(), end: from };
    loop {
        let request = History { target: target.clone(), from: log.end, follow: None };
        let page = page(shared, sender, request).await?;
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

/// Asks for a page until it comes: as long as the stream lasts, the engine waits for the work.
async fn page(
    shared: &Shared,
    sender: &Arc<dyn SessionSender>,
    request: History,
) -> Result<HistoryPage, Unread> {
    let mut backoff = Backoff::new(LONGEST_WAIT);
    loop {
        let error = match ask(&*shared.transport, request.clone()).await {
            Ok(page) => return Ok(page),
            Err(error) => error,
        };
        if !error.passing() {
            return Err(Unread::Refused(error));
        }
        let lasts = |stream: &Option<_>| stream.as_ref().is_some_and(|it| Arc::ptr_eq(it, sender));
        if !lasts(&*shared.stream.borrow()) {
            return Err(Unread::StreamEnded(error));
        }
        tracing::debug!(%error, "a history is asked for again");
        tokio::time::sleep(backoff.step()).await;
    }
}
