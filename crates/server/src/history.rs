//! Histories for clients that read events rather than stored bytes: by page, and followed.

use std::sync::Arc;

use abide_core::{
    codec::{self, Wire},
    follow::FollowedHistory,
    ids::{EventNumber, RunId},
    limits::InvalidField,
    operation::{AwaitEvents, CallError, Caller, History as AskedHistory, HistoryPage, RunTarget},
};
use abide_proto::generated::{
    FollowHistoryRequest, GetHistoryRequest, GetHistoryResponse, HistoryPosition,
};
use futures_util::{Stream, stream};
use prost::{
    Message,
    bytes::{Bytes, BytesMut},
    encoding::{WireType, encode_key, encode_varint},
};
use tonic::Status;

use crate::{
    connections::{Charge, Connection},
    framing::{MessageParts, Piece},
    handler::{Building, Handler, status},
    own_task::in_own_task,
};

/// The tag of `GetHistoryResponse.history`.
const HISTORY: u32 = 2;

/// Reads one page of events, in its turn.
pub(crate) async fn page(
    handler: &Handler,
    connection: &Connection,
    request: GetHistoryRequest,
) -> Result<(EncodedPage, Building), CallError> {
    let mut target = target(request.target)?;
    let mut from = 0;
    if !request.page_token.is_empty() {
        let position = HistoryPosition::decode(request.page_token).ok();
        let place = position.and_then(|place| Some((RunId::from_slice(&place.run)?, place.from)));
        let (run, next) = place
            .ok_or_else(|| InvalidField::new("page_token", "was not issued by this server"))?;
        target.run = Some(run);
        from = next;
    }
    let asked = AskedHistory { target, from, follow: None };
    let (page, building) = handler.page_in_turn(connection, asked).await?;
    Ok((EncodedPage::new(page, 0)?, building))
}

/// Waits until there are events after the last one that the caller has. Nothing else is held
/// meanwhile.
pub(crate) async fn await_events(
    handler: &Handler,
    asked: &mut AskedHistory,
) -> Result<(), CallError> {
    if let Some(after) = asked.follow.take() {
        let target = asked.target.clone();
        asked.target.run = Some(handler.ask_uncounted(AwaitEvents { target, after }).await?.run);
    }
    Ok(())
}

/// Follows a history until its run is closed. A follower keeps a position in the history, and a page
/// only while the client reads it.
pub(crate) fn follow(
    handler: Handler,
    connection: Arc<Connection>,
    request: FollowHistoryRequest,
) -> Result<impl Stream<Item = Result<Piece, Status>> + use<>, Status> {
    let target = target(request.target).map_err(status)?;
    let followed = HistoryFollower {
        handler,
        connection,
        followed: FollowedHistory::new(target, request.after),
        sought: request.after == 0,
        after: request.after,
    };
    Ok(stream::unfold(Some(followed), |followed| async move {
        let mut followed = followed?;
        loop {
            match followed.next().await {
                Ok((page, more)) => break Some((Ok(page), more.then_some(followed))),
                Err(failed) if followed.handler.goes_on(&failed).await => {}
                Err(failed) => break Some((Err(status(failed)), None)),
            }
        }
    }))
}

struct HistoryFollower {
    handler: Handler,
    connection: Arc<Connection>,
    followed: FollowedHistory,
    /// Whether the page with the caller's next event has been found.
    sought: bool,
    /// Number of the last event that the caller has.
    after: EventNumber,
}

impl HistoryFollower {
    /// The next page with events, and whether another may follow.
    async fn next(&mut self) -> Result<(Piece, bool), CallError> {
        if !self.sought {
            self.seek().await?;
        }
        loop {
            // No page is held while this waits.
            self.handler.ask_uncounted(self.followed.await_next()).await?;
            let (handler, connection) = (self.handler.clone(), Arc::clone(&self.connection));
            let (asked, after) = (self.followed.page(), self.after);
            let built = in_own_task(async move {
                let (page, _building) = handler.page_in_turn(&connection, asked).await?;
                let (run, next, more, closed) = (page.run, page.next, page.more, page.closed);
                let rest = HistoryPage { run, rows: Vec::new(), next, more, closed };
                let page = EncodedPage::new(page, after)?;
                let charge = connection.answered(page.len());
                Ok::<_, CallError>((rest, page, charge))
            });
            let built = built.await.map_err(|failed| CallError::Unavailable(failed.to_string()));
            let (rest, page, charge) = built??;
            self.followed.took(&rest, page.last_event);
            let ended = self.followed.ended();
            if ended || !page.is_empty() {
                return Ok((page.charged(charge), !ended));
            }
        }
    }

    /// Finds the page with the first event that the caller does not have.
    async fn seek(&mut self) -> Result<(), CallError> {
        let (target, next) = (self.followed.target().clone(), self.after.saturating_add(1));
        let (run, from) = self.handler.engine.seek_history(&Caller::TRUSTED, target, next).await?;
        self.followed.seek(run, from);
        self.sought = true;
        Ok(())
    }
}

/// A page as a message `GetHistoryResponse` with its header. Its events are the stored bytes, which
/// are neither decoded nor, if they are many, copied.
pub(crate) struct EncodedPage {
    parts: MessageParts,
    /// Bytes of the events in the page.
    events: usize,
    /// Number of the last event in the rows of the page.
    last_event: Option<EventNumber>,
}

impl EncodedPage {
    /// The page without the events up to `after`.
    fn new(page: HistoryPage, after: EventNumber) -> Result<Self, CallError> {
        let HistoryPage { run, rows, next, more, closed } = page;
        let mut last_event = None;
        let mut kept = vec![Bytes::new()];
        for row in rows {
            let (row, last) = codec::events_after(row, after)
                .map_err(|error| CallError::Unreadable { run, reason: error.to_string() })?;
            last_event = last.or(last_event);
            kept.push(row);
        }
        let position = || HistoryPosition { run: run.to_wire(), from: next }.encode_to_vec().into();
        let events = kept.iter().map(Bytes::len).sum();
        kept[0] = history_field(events);
        let response = GetHistoryResponse {
            run: run.to_wire(),
            history: None,
            next_page_token: if more { position() } else { Default::default() },
            closed,
        };
        Ok(Self { parts: MessageParts::framed(&response, &kept), events, last_event })
    }

    fn is_empty(&self) -> bool {
        self.events == 0
    }

    /// Bytes of the message.
    pub(crate) fn len(&self) -> usize {
        self.parts.len()
    }

    pub(crate) fn charged(self, charge: Option<Charge>) -> Piece {
        Piece { parts: self.parts, charges: charge.into_iter().collect() }
    }
}

/// The beginning of the field with the history, which holds so many bytes.
fn history_field(events: usize) -> Bytes {
    let mut field = BytesMut::new();
    encode_key(HISTORY, WireType::LengthDelimited, &mut field);
    encode_varint(u64::try_from(events).unwrap_or(u64::MAX), &mut field);
    field.freeze()
}

/// The run that a request names. Naming one is required.
pub(crate) fn target(
    wire: Option<abide_proto::generated::RunTarget>,
) -> Result<RunTarget, CallError> {
    let wire = wire.ok_or_else(|| InvalidField::new("target", "is missing"))?;
    Ok(wire.try_into()?)
}

#[cfg(test)]
mod tests {
    use abide_core::{
        codec::generated::History,
        event::{Body, Event, SignalReceived},
        time::Timestamp,
    };

    use super::*;

    fn row(numbers: std::ops::Range<EventNumber>, size: usize) -> Bytes {
        let event = |number| Event {
            number,
            time: Timestamp::EPOCH,
            body: Body::new(SignalReceived { name: "x".repeat(size), ..Default::default() }),
        };
        codec::encode_events(&numbers.map(event).collect::<Vec<_>>())
    }

    /// The page as a client decodes it.
    fn read(page: EncodedPage) -> GetHistoryResponse {
        let length = page.len();
        let mut parts = page.charged(None).parts;
        let bytes = parts.next(length);
        assert_eq!(
            bytes[..5],
            [&[0][..], &u32::try_from(length - 5).unwrap().to_be_bytes()].concat()
        );
        GetHistoryResponse::decode(&bytes[5..]).expect("a message")
    }

    #[test]
    fn a_page_is_the_message_that_the_decoded_rows_make() {
        let rows = vec![row(1..4, 10), row(4..6, 100_000), row(6..7, 3), row(7..9, 20_000)];
        for (after, more) in [(0, true), (2, false), (3, false), (4, true), (7, false), (8, true)] {
            let page =
                HistoryPage { run: RunId::MAX, rows: rows.clone(), next: 9, more, closed: !more };
            let encoded = EncodedPage::new(page, after).expect("rows");
            assert_eq!(encoded.last_event, Some(8));
            assert_eq!(encoded.is_empty(), after == 8);
            let response = read(encoded);
            let mut events = History::decode(rows.concat().as_slice()).expect("rows").events;
            events.retain(|event| event.number > after);
            assert_eq!(response.history.expect("a history").events, events, "after {after}");
            assert_eq!((response.closed, response.next_page_token.is_empty()), (!more, !more));
        }
    }

    #[test]
    fn a_row_that_is_no_history_is_an_error() {
        let rows = vec![Bytes::from_static(&[0xff, 0xff])];
        let page = HistoryPage { run: RunId::MAX, rows, next: 1, more: false, closed: false };
        let refused = EncodedPage::new(page, 0).err();
        assert!(matches!(refused, Some(CallError::Unreadable { .. })), "{refused:?}");
    }
}
