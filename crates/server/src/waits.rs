//! The waits of one run: one of them, or all, followed as they change.

use abide_core::{
    follow::FollowedWaits,
    limits::InvalidField,
    operation::{AwaitWaits, CallError, RunWaits},
    run::Refusal,
};
use abide_proto::{
    generated::{self as wire, FollowWaitsRequest, GetWaitRequest},
    wait::wait_key,
};
use futures_util::{Stream, stream};
use tonic::Status;

use crate::{
    framing::Sending,
    handler::{Handler, status},
    history::target,
};

pub(crate) async fn one(
    handler: &Handler,
    request: GetWaitRequest,
) -> Result<wire::ShownWait, CallError> {
    let target = target(request.target)?;
    let key = wait_key(&request.wait)?;
    handler.engine.limits().check_length("wait", &key.to_string())?;
    let open = handler.ask_uncounted(AwaitWaits { target, after: 0 }).await?.waits;
    let found = open.iter().find(|wait| wait.key == key).cloned();
    let found = found.ok_or_else(|| CallError::Refused(Refusal::UnknownWait(key.to_string())))?;
    Ok(found.into())
}

/// Follows the waits of a run until it is closed.
pub(crate) fn follow(
    handler: Handler,
    request: FollowWaitsRequest,
) -> Result<impl Stream<Item = Result<Sending<wire::RunWaits>, Status>> + use<>, Status> {
    let target = target(request.target).map_err(status)?;
    if request.after > 0 && target.run.is_none() {
        return Err(status(InvalidField::new("after", "requires the run in target")));
    }
    let followed = FollowedWaits::new(target, request.after);
    let follower = WaitsFollower { handler, followed };
    Ok(stream::unfold(Some(follower), |follower| async move {
        let mut follower = follower?;
        match follower.next().await {
            Ok(waits) => {
                let more = !waits.closed;
                let sending = Sending { message: waits.into(), charges: Vec::new() };
                Some((Ok(sending), more.then_some(follower)))
            }
            Err(failed) => Some((Err(status(failed)), None)),
        }
    }))
}

struct WaitsFollower {
    handler: Handler,
    followed: FollowedWaits,
}

impl WaitsFollower {
    /// The waits, as soon as they differ from those sent last or the run is closed.
    async fn next(&mut self) -> Result<RunWaits, CallError> {
        loop {
            match self.handler.ask_uncounted(self.followed.next()).await {
                Ok(waits) if self.followed.news(&waits) => return Ok(waits),
                Ok(_) => {}
                Err(failed) if self.handler.goes_on(&failed).await => {}
                Err(failed) => return Err(failed),
            }
        }
    }
}
