//! Repeats calls that were not answered. What may have happened is asked for again with the same key,
//! so repeating is always safe.

use std::{future::Future, time::Duration};

use abide_core::{
    call::{Call, CallError, CallReply},
    ids::Key,
    run::Refusal,
};
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use super::{Client, ClientError};
use crate::backoff::Backoff;

/// Between two tries.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

impl Client {
    /// Makes a call that is answered soon; gives up when the client's timeout has passed.
    pub(super) async fn call(&self, call: Call) -> Result<CallReply, ClientError> {
        self.repeat(|| self.transport().call(call.clone())).await
    }

    /// Makes a call that is answered when a run is so far, however long that takes.
    pub(super) async fn wait(&self, call: Call) -> Result<CallReply, ClientError> {
        self.wait_for(|| self.transport().call(call.clone())).await
    }

    /// Asks until there is an answer, however long that takes.
    pub(super) async fn wait_for<T, F>(&self, ask: impl FnMut() -> F) -> Result<T, ClientError>
    where
        F: Future<Output = Result<T, CallError>>,
    {
        repeated(ask).await.map_err(ClientError::from)
    }

    /// Asks until there is an answer; gives up when the client's timeout has passed.
    pub(super) async fn repeat<T, F>(&self, ask: impl FnMut() -> F) -> Result<T, ClientError>
    where
        F: Future<Output = Result<T, CallError>>,
    {
        let within = self.call_timeout;
        match timeout(within, repeated(ask)).await {
            Ok(result) => result.map_err(ClientError::from),
            Err(_) => Err(ClientError::Unavailable(format!("no answer within {within:?}"))),
        }
    }
}

async fn repeated<T, F>(mut ask: impl FnMut() -> F) -> Result<T, CallError>
where
    F: Future<Output = Result<T, CallError>>,
{
    let mut backoff = Backoff::new(LONGEST_WAIT);
    loop {
        match ask().await {
            Err(error) if passing(&error) => {
                tracing::debug!(%error, "the call is repeated");
                sleep(backoff.step()).await;
            }
            result => return result,
        }
    }
}

/// The same call may well succeed in a moment.
fn passing(error: &CallError) -> bool {
    match error {
        CallError::Reset
        | CallError::Unavailable(_)
        | CallError::NotServed
        | CallError::Overloaded
        | CallError::Refused(Refusal::Busy) => true,
        CallError::Invalid(_)
        | CallError::NotFound
        | CallError::AlreadyExists { .. }
        | CallError::Refused(_)
        | CallError::UpdateAborted
        | CallError::Blocked(_)
        | CallError::StaleQuery
        | CallError::SetAside(_)
        | CallError::Unreadable { .. } => false,
    }
}

/// A key for a call whose caller gave none.
pub(super) fn fresh_key() -> Key {
    Uuid::new_v4().to_string().into()
}
