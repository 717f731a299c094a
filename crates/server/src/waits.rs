//! What one run waits for: one wait, and all of them, followed as they change.

use abide_core::{
    call::{Call, CallError, CallReply, RunTarget, RunWaits},
    run::{Refusal, ShownWait},
};
use abide_proto::{
    generated::{self as wire, FollowWaitsRequest, GetWaitRequest},
    wait::wait_key,
};
use futures_util::{Stream, stream};
use tokio::sync::OwnedSemaphorePermit;
use tonic::Status;

use crate::{
    handler::{Handler, status},
    history::target,
};

/// One wait of a run.
pub(crate) async fn one(
    handler: &Handler,
    request: GetWaitRequest,
) -> Result<wire::ShownWait, CallError> {
    let target = target(request.target)?;
    let key = wait_key(&request.wait)?;
    let open = read(handler, target, 0).await?.waits;
    let found = open.into_iter().find(|wait| wait.key == key);
    let found = found.ok_or_else(|| CallError::Refused(Refusal::UnknownWait(key.to_string())))?;
    Ok(found.into())
}

/// Follows the waits of a run until it is closed.
pub(crate) fn follow(
    handler: Handler,
    request: FollowWaitsRequest,
) -> Result<impl Stream<Item = Result<wire::RunWaits, Status>> + use<>, Status> {
    let place = handler.stream()?;
    let target = target(request.target).map_err(status)?;
    let followed = Followed { handler, target, log_row: 0, told: None, _place: place };
    Ok(stream::unfold(Some(followed), |followed| async move {
        let mut followed = followed?;
        match followed.next().await {
            Ok(waits) => {
                let more = !waits.closed;
                Some((Ok(waits.into()), more.then_some(followed)))
            }
            Err(failed) => Some((Err(status(failed)), None)),
        }
    }))
}

struct Followed {
    handler: Handler,
    target: RunTarget,
    /// What is known of the run's log.
    log_row: u64,
    /// What the caller was told last.
    told: Option<Vec<ShownWait>>,
    _place: OwnedSemaphorePermit,
}

impl Followed {
    /// The waits as soon as they differ from what was told, or the run is closed.
    async fn next(&mut self) -> Result<RunWaits, CallError> {
        loop {
            let waits = read(&self.handler, self.target.clone(), self.log_row).await?;
            // The current run may be another one soon; this stream stays with the one it began with.
            self.target.run = Some(waits.run);
            self.log_row = waits.log_row;
            if waits.closed || self.told.as_ref() != Some(&waits.waits) {
                self.told = Some(waits.waits.clone());
                return Ok(waits);
            }
        }
    }
}

async fn read(handler: &Handler, target: RunTarget, after: u64) -> Result<RunWaits, CallError> {
    match handler.engine.call(Call::AwaitWaits(target, after)).await? {
        CallReply::Waits(waits) => Ok(waits),
        _ => Err(CallError::NotFound),
    }
}
