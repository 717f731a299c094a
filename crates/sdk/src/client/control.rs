//! What operators do to runs: cancel, terminate, pause, move timers, repair.

use std::{
    future::{Future, IntoFuture},
    pin::Pin,
    time::Duration,
};

use abide_core::{
    ids::{Key, RunId, TimerId},
    operation::{self, Cancel, Describe, Pause, Repair, RunTarget, Terminate, Unpause},
    payload::Payloads,
    run::{Movable, Refusal},
    time::Timestamp,
};

use super::{Client, ClientError, RefusalKind, WorkflowHandle, repeat::fresh_key};

type Sent<T> = Pin<Box<dyn Future<Output = Result<T, ClientError>> + Send>>;

/// A request to cancel, terminate, pause or unpause a run. It is sent when awaited.
#[must_use = "nothing is requested until this is awaited"]
pub struct ControlRequest {
    client: Client,
    target: RunTarget,
    wish: Wish,
    reason: String,
    key: Option<Key>,
}

enum Wish {
    Cancel,
    Terminate,
    Pause,
    Unpause,
}

impl ControlRequest {
    /// The reason that the history records.
    pub fn reason(mut self, reason: impl Into<String>) -> Self {
        self.reason = reason.into();
        self
    }

    /// The idempotency key: requests with the same key take effect once. By default each request
    /// gets a new key.
    pub fn key(mut self, key: impl Into<Key>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Cancel and terminate apply to the current run. Its id goes into the call, so that a retry
    /// after a lost answer cannot end a later run.
    async fn send(mut self) -> Result<(), ClientError> {
        let ends = matches!(self.wish, Wish::Cancel | Wish::Terminate);
        if !ends || self.target.run.is_some() {
            return self.send_once().await;
        }
        self.key.get_or_insert_with(fresh_key);
        loop {
            let current = Some(self.current_run().await?);
            let known = std::mem::replace(&mut self.target.run, current);
            if known == current {
                return Err(ClientError::Refused(Refusal::RunClosed.into()));
            }
            match self.send_once().await {
                // Nothing took effect: another run may have started just before.
                Err(ClientError::Refused(refusal)) if refusal.kind() == RefusalKind::RunClosed => {}
                result => return result,
            }
        }
    }

    async fn current_run(&self) -> Result<RunId, ClientError> {
        let target = RunTarget { run: None, ..self.target.clone() };
        Ok(self.client.ask(Describe { target }).await?.run)
    }

    async fn send_once(&self) -> Result<(), ClientError> {
        let Self { client, target, wish, reason, key } = self;
        let (target, reason) = (target.clone(), reason.clone());
        let identity = client.identity().to_owned();
        let key = Some(key.clone().unwrap_or_else(fresh_key));
        let (done, fulfilled) = match wish {
            Wish::Cancel => (client.ask(Cancel { target, reason, identity, key }).await, None),
            Wish::Terminate => {
                let details = Payloads::new();
                (client.ask(Terminate { target, reason, identity, details, key }).await, None)
            }
            Wish::Pause => {
                let done = client.ask(Pause { target, reason, identity, key }).await;
                (done, Some(RefusalKind::AlreadyPaused))
            }
            Wish::Unpause => {
                let done = client.ask(Unpause { target, reason, identity, key }).await;
                (done, Some(RefusalKind::NotPaused))
            }
        };
        match done {
            // A run that is already in the requested state is not an error.
            Err(ClientError::Refused(refusal)) if Some(refusal.kind()) == fulfilled => Ok(()),
            done => done.map(drop),
        }
    }
}

impl IntoFuture for ControlRequest {
    type Output = Result<(), ClientError>;
    type IntoFuture = Sent<()>;

    fn into_future(self) -> Sent<()> {
        Box::pin(self.send())
    }
}

/// A new due time for a timer, or for the end of a wait. It is sent when awaited.
///
/// The answer is the due time that the request with this key has set. It is `None` if an earlier run
/// of the workflow took that request, or if the server is older than this answer.
#[must_use = "nothing is rescheduled until this is awaited"]
pub struct RescheduleTimer {
    client: Client,
    target: RunTarget,
    what: Movable,
    fire_at: Timestamp,
    after: Option<Duration>,
    key: Option<Key>,
}

impl RescheduleTimer {
    pub(super) fn new(
        client: Client,
        target: RunTarget,
        what: Movable,
        fire_at: Timestamp,
    ) -> Self {
        Self { client, target, what, fire_at, after: None, key: None }
    }

    /// The idempotency key: requests with the same key take effect once. The same key with another
    /// timer or another time is refused.
    pub fn key(mut self, key: impl Into<Key>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// How long from now the due time is. A repeat with the same key and length is then the same
    /// request, although it computes another due time.
    pub const fn from_now(mut self, after: Duration) -> Self {
        self.after = Some(after);
        self
    }

    async fn send(self) -> Result<Option<Timestamp>, ClientError> {
        let moved = operation::RescheduleTimer {
            target: self.target,
            what: self.what,
            fire_at: self.fire_at,
            after: self.after,
            identity: self.client.identity().into(),
            key: Some(self.key.unwrap_or_else(fresh_key)),
        };
        Ok(self.client.ask(moved).await?.fire_at)
    }
}

impl IntoFuture for RescheduleTimer {
    type Output = Result<Option<Timestamp>, ClientError>;
    type IntoFuture = Sent<Option<Timestamp>>;

    fn into_future(self) -> Sent<Option<Timestamp>> {
        Box::pin(self.send())
    }
}

impl<W> WorkflowHandle<W> {
    /// Requests cancellation of the run; its code may clean up first. A handle that is bound to no
    /// run applies to the current one, never to a run that follows it. Await the returned value.
    pub fn cancel(&self) -> ControlRequest {
        self.control(Wish::Cancel, String::new())
    }

    /// Ends the run at once, without running its code. A handle that is bound to no run applies to
    /// the current one, never to a run that follows it. Await the returned value.
    pub fn terminate(&self, reason: impl Into<String>) -> ControlRequest {
        self.control(Wish::Terminate, reason.into())
    }

    /// Stops dispatching new tasks and attempts of the run until it is unpaused. Await the returned
    /// value.
    pub fn pause(&self, reason: impl Into<String>) -> ControlRequest {
        self.control(Wish::Pause, reason.into())
    }

    /// Resumes a paused run. Await the returned value.
    pub fn unpause(&self, reason: impl Into<String>) -> ControlRequest {
        self.control(Wish::Unpause, reason.into())
    }

    /// Moves the due time of a timer. Await the returned value.
    pub fn reschedule_timer(
        &self,
        timer: impl Into<TimerId>,
        fire_at: Timestamp,
    ) -> RescheduleTimer {
        let timer = Movable::Timer(timer.into());
        RescheduleTimer::new(self.client.clone(), self.target(), timer, fire_at)
    }

    /// Retries everything that is stuck in the run. Idempotent, so it needs no key.
    pub async fn repair(&self) -> Result<(), ClientError> {
        let identity = self.client.identity().into();
        self.client.ask(Repair { target: self.target(), identity }).await?;
        Ok(())
    }

    fn control(&self, wish: Wish, reason: String) -> ControlRequest {
        ControlRequest {
            client: self.client.clone(),
            target: self.target(),
            wish,
            reason,
            key: None,
        }
    }
}
