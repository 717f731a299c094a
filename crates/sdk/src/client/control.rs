//! What operators do to runs: cancel, terminate, pause, move timers, repair.

use std::{
    future::{Future, IntoFuture},
    pin::Pin,
};

use abide_core::{
    call::{Call, RunTarget},
    effect::RunOutcome,
    event::{RunPaused, RunUnpaused},
    ids::{Key, TimerId},
    payload::Payloads,
    run::{Movable, Refusal},
    time::Timestamp,
};

use super::{Client, ClientError, WorkflowHandle, repeat::fresh_key};

type Done = Pin<Box<dyn Future<Output = Result<(), ClientError>> + Send>>;

/// A cancel request that has not been made. Await it.
#[must_use = "nothing is asked for until this is awaited"]
pub struct Cancel {
    client: Client,
    target: RunTarget,
    reason: String,
    key: Option<Key>,
}

impl Cancel {
    pub(super) fn new(client: Client, target: RunTarget) -> Self {
        Self { client, target, reason: String::new(), key: None }
    }

    /// Why, as the history shows it.
    pub fn reason(mut self, reason: impl Into<String>) -> Self {
        self.reason = reason.into();
        self
    }

    /// Makes repeats of this request the same request.
    pub fn key(mut self, key: impl Into<Key>) -> Self {
        self.key = Some(key.into());
        self
    }

    async fn send(self) -> Result<(), ClientError> {
        let call = Call::RequestCancel {
            target: self.target,
            reason: self.reason,
            identity: self.client.identity().into(),
            key: Some(self.key.unwrap_or_else(fresh_key)),
        };
        self.client.call(call).await?;
        Ok(())
    }
}

impl IntoFuture for Cancel {
    type Output = Result<(), ClientError>;
    type IntoFuture = Done;

    fn into_future(self) -> Done {
        Box::pin(self.send())
    }
}

/// A move of a timer, or of the end of a wait, that has not been made. Await it.
#[must_use = "nothing is moved until this is awaited"]
pub struct RescheduleTimer {
    client: Client,
    target: RunTarget,
    what: Movable,
    fire_at: Timestamp,
    key: Option<Key>,
}

impl RescheduleTimer {
    pub(super) fn new(
        client: Client,
        target: RunTarget,
        what: Movable,
        fire_at: Timestamp,
    ) -> Self {
        Self { client, target, what, fire_at, key: None }
    }

    /// Makes repeats of this move the same move.
    pub fn key(mut self, key: impl Into<Key>) -> Self {
        self.key = Some(key.into());
        self
    }

    async fn send(self) -> Result<(), ClientError> {
        let call = Call::RescheduleTimer {
            target: self.target,
            what: self.what,
            fire_at: self.fire_at,
            identity: self.client.identity().into(),
            key: Some(self.key.unwrap_or_else(fresh_key)),
        };
        self.client.call(call).await?;
        Ok(())
    }
}

impl IntoFuture for RescheduleTimer {
    type Output = Result<(), ClientError>;
    type IntoFuture = Done;

    fn into_future(self) -> Done {
        Box::pin(self.send())
    }
}

impl<W> WorkflowHandle<W> {
    /// Ends the run at once; its code is not asked.
    pub async fn terminate(&self, reason: impl Into<String>) -> Result<(), ClientError> {
        let reason = reason.into();
        let call = Call::Terminate {
            target: self.target(),
            reason: reason.clone(),
            identity: self.client.identity().into(),
            details: Payloads::new(),
        };
        match self.client.call(call).await {
            Ok(_) => Ok(()),
            // The call has no key; what it leaves tells whether it was a repeat.
            Err(closed @ ClientError::Refused(Refusal::RunClosed)) => {
                let outcome = self.describe().await?.outcome;
                if outcome == Some(RunOutcome::Terminated { reason }) {
                    Ok(())
                } else {
                    Err(closed)
                }
            }
            Err(error) => Err(error),
        }
    }

    /// Hands out nothing new of the run until it is unpaused.
    pub async fn pause(&self, reason: impl Into<String>) -> Result<(), ClientError> {
        let identity = self.client.identity().into();
        let paused = RunPaused { reason: reason.into(), identity };
        done_before(self.client.call(Call::Pause(self.target(), paused)).await, &Refusal::Paused)
    }

    /// Ends a pause.
    pub async fn unpause(&self, reason: impl Into<String>) -> Result<(), ClientError> {
        let identity = self.client.identity().into();
        let unpaused = RunUnpaused { reason: reason.into(), identity };
        let result = self.client.call(Call::Unpause(self.target(), unpaused)).await;
        done_before(result, &Refusal::NotPaused)
    }

    /// Moves the due time of a timer. Await what this returns.
    pub fn reschedule_timer(
        &self,
        timer: impl Into<TimerId>,
        fire_at: Timestamp,
    ) -> RescheduleTimer {
        let timer = Movable::Timer(timer.into());
        RescheduleTimer::new(self.client.clone(), self.target(), timer, fire_at)
    }

    /// Tries again whatever is stuck.
    pub async fn repair(&self) -> Result<(), ClientError> {
        let identity = self.client.identity().into();
        self.client.call(Call::Repair { target: self.target(), identity }).await?;
        Ok(())
    }
}

/// A run that already is as it should be is no error: the call may be a repeat.
fn done_before<T>(result: Result<T, ClientError>, state: &Refusal) -> Result<(), ClientError> {
    match result {
        Err(ClientError::Refused(refusal)) if refusal == *state => Ok(()),
        result => result.map(|_| ()),
    }
}
