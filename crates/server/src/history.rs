//! Histories for clients that read events rather than stored bytes: by page, and followed.

use std::sync::Arc;

use abide_core::{
    codec::{Wire, generated::History},
    follow::FollowedHistory,
    ids::{EventNumber, RunId},
    limits::InvalidField,
    operation::{AwaitEvents, CallError, Caller, History as AskedHistory, HistoryPage, RunTarget},
};
use abide_proto::generated::{
    FollowHistoryRequest, GetHistoryRequest, GetHistoryResponse, HistoryPosition,
};
use futures_util::{Stream, stream};
use prost::Message;
use tokio::sync::OwnedSemaphorePermit;
use tonic::Status;

use crate::{
    guests::Guest,
    handler::{Handler, status},
    own_task::in_own_task,
    wire::Sending,
};

/// Reads one page of events.
pub(crate) async fn page(
    handler: &Handler,
    request: GetHistoryRequest,
) -> Result<GetHistoryResponse, CallError> {
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
    let page = handler.look(AskedHistory { target, from, follow: None }).await?;
    response(&page, 0).map(|(response, _)| response)
}

/// Waits until there are events after the last one that the caller has. Nothing else is held
/// meanwhile.
pub(crate) async fn await_events(
    handler: &Handler,
    asked: &mut AskedHistory,
) -> Result<(), CallError> {
    if let Some(after) = asked.follow.take() {
        let target = asked.target.clone();
        asked.target.run = Some(handler.look(AwaitEvents { target, after }).await?.run);
    }
    Ok(())
}

/// Follows a history until its run is closed. A follower keeps a position in the history, and a page
/// only while the client reads it.
pub(crate) fn follow(
    handler: Handler,
    guest: Arc<Guest>,
    request: FollowHistoryRequest,
) -> Result<impl Stream<Item = Result<Sending<GetHistoryResponse>, Status>> + use<>, Status> {
    let place = handler.stream()?;
    let target = target(request.target).map_err(status)?;
    let followed = Follower {
        handler,
        guest,
        followed: FollowedHistory::new(target, request.after),
        sought: request.after == 0,
        after: request.after,
        _place: place,
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

struct Follower {
    handler: Handler,
    guest: Arc<Guest>,
    followed: FollowedHistory,
    /// Whether the page with the caller's next event has been found.
    sought: bool,
    /// Number of the last event that the caller has.
    after: EventNumber,
    _place: OwnedSemaphorePermit,
}

impl Follower {
    /// The next page with events, and whether another may follow.
    async fn next(&mut self) -> Result<(Sending<GetHistoryResponse>, bool), CallError> {
        if !self.sought {
            self.seek().await?;
        }
        loop {
            // No page is held while this waits.
            self.handler.look(self.followed.await_next()).await?;
            let (handler, guest) = (self.handler.clone(), Arc::clone(&self.guest));
            let (asked, after) = (self.followed.page(), self.after);
            let built = in_own_task(async move {
                let _building = guest.build_page().await;
                let page = handler.look(asked).await?;
                let (response, last) = response(&page, after)?;
                let charge = guest.answered(response.encoded_len());
                Ok::<_, CallError>((page, response, last, charge))
            });
            let built = built.await.map_err(|failed| CallError::Unavailable(failed.to_string()));
            let (page, response, last, charge) = built??;
            self.followed.took(&page, last);
            let ended = self.followed.ended();
            let empty = response.history.as_ref().is_none_or(|history| history.events.is_empty());
            if ended || !empty {
                let charges = charge.into_iter().collect();
                return Ok((Sending { message: response, charges }, !ended));
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

/// Builds the response from a page: its events after `after`, and the number of the last event.
fn response(
    page: &HistoryPage,
    after: EventNumber,
) -> Result<(GetHistoryResponse, Option<EventNumber>), CallError> {
    let HistoryPage { run, ref rows, next, more, closed } = *page;
    let mut history = History::default();
    for row in rows {
        history
            .merge(row.clone())
            .map_err(|error| CallError::Unreadable { run, reason: error.to_string() })?;
    }
    let last = history.events.last().map(|event| event.number);
    history.events.retain(|event| event.number > after);
    let position = || HistoryPosition { run: run.to_wire(), from: next }.encode_to_vec().into();
    let response = GetHistoryResponse {
        run: run.to_wire(),
        history: Some(history),
        next_page_token: if more { position() } else { Default::default() },
        closed,
    };
    Ok((response, last))
}

/// The run that a request names. Naming one is required.
pub(crate) fn target(
    wire: Option<abide_proto::generated::RunTarget>,
) -> Result<RunTarget, CallError> {
    let wire = wire.ok_or_else(|| InvalidField::new("target", "is missing"))?;
    Ok(wire.try_into()?)
}
