//! Reads the part of a run's log that the worker does not have in memory.

use std::{sync::Arc, time::Duration};

use abide_core::{
    codec::{self, DecodeError},
    event::Event,
    ids::EventNumber,
    operation::{CallError, History, HistoryPage, RunTarget},
};

use super::shared::WorkerCore;
use crate::{
    backoff::Backoff,
    codec::CodecError,
    transport::{SessionSender, ask},
};

/// The longest pause between two tries to read a page.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

pub(super) struct Log {
    /// Events up to the requested one.
    pub(super) events: Vec<Event>,
    /// The position where the part ends; everything before it was read.
    pub(super) end: u64,
}

/// Why a log could not be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum UnreadLog {
    /// The engine refuses to return it.
    #[error(transparent)]
    Refused(CallError),
    /// The engine could not return it before the stream ended on which the work was dispatched.
    #[error("the stream ended: {0}")]
    StreamEnded(CallError),
    #[error("the history cannot be decoded: {0}")]
    Decode(#[from] DecodeError),
    #[error(transparent)]
    Codec(#[from] CodecError),
}

/// Reads the log from a position up to an event, for work that was dispatched on this sender's
/// stream.
pub(super) async fn read(
    shared: &WorkerCore,
    sender: &Arc<dyn SessionSender>,
    target: RunTarget,
    from: u64,
    last_event: EventNumber,
) -> Result<Log, UnreadLog> {
    let mut log = Log { events: Vec::new(), end: from };
    loop {
        let request = History { target: target.clone(), from: log.end, follow: None };
        let page = page(shared, sender, request).await?;
        for row in page.rows {
            log.events.extend(codec::decode_events(row)?);
        }
        let overshot = log.events.last().is_some_and(|event| event.number > last_event);
        if overshot {
            // The page ends after the last event that may be seen now: the next read starts before
            // that end.
            log.events.retain(|event| event.number <= last_event);
        } else {
            log.end = page.next;
        }
        if overshot || !page.more {
            shared.codecs.decode_events(&mut log.events).await?;
            return Ok(log);
        }
    }
}

/// Requests a page until it arrives: the engine keeps the work open as long as the stream lasts.
async fn page(
    shared: &WorkerCore,
    sender: &Arc<dyn SessionSender>,
    request: History,
) -> Result<HistoryPage, UnreadLog> {
    let mut backoff = Backoff::new(LONGEST_WAIT);
    loop {
        let error = match ask(&*shared.transport, request.clone()).await {
            Ok(page) => return Ok(page),
            Err(error) => error,
        };
        if !error.passing() {
            return Err(UnreadLog::Refused(error));
        }
        let lasts = |stream: &Option<_>| stream.as_ref().is_some_and(|it| Arc::ptr_eq(it, sender));
        if !lasts(&*shared.stream.borrow()) {
            return Err(UnreadLog::StreamEnded(error));
        }
        tracing::debug!(%error, "retrying to fetch a history");
        tokio::time::sleep(backoff.step()).await;
    }
}
