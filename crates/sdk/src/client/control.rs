//! What operators do to runs: cancel, terminate, pause, move timers, repair.

use std::{
    future::{Future, IntoFuture},
    pin::Pin,
};

use abide_core::{
    ids::{Key, RunId, TimerId},
    operation::{self, Cancel, Describe, Pause, Repair, RunTarget, Terminate, Unpause},
    payload::Payloads,
    run::{Movable, Refusal},
    time::Timestamp,
};

use super::{Client, ClientError, WorkflowHandle, repeat::fresh_key};

type Done = Pin<Box<dyn Future<Output = Result<(), ClientError>> + Send>>;

/// A request to cancel, terminate, pause or unpause a run that has not been made. Await it.
#[must_use = "nothing is asked for until this is awaited"]
pub struct Control {
    client: Client,
    target: RunTarget,
    wish: Wish,
    reason: String,
    key: Option<Key>,
}

/// What is wanted of a run.
enum Wish {
    Cancel,
    Terminate,
    Pause,
    Unpause,
}

impl Control {
    /// Why, as the history shows it.
    pub fn reason(mut self, reason: impl Into<String>) -> Self {
        self.reason = reason.into();
        self
    }

    /// Makes repeats of this request the same request; by default every request has a key of its own.
    pub fn key(mut self, key: impl Into<Key>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// An end is meant for the run that is there now. It is named in the call, so that a repeat after
    /// an answer was lost cannot end a run that has followed it since.
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
                return Err(ClientError::Refused(Refusal::RunClosed));
            }
            match self.send_once().await {
                // It took nothing: another run may have followed just before.
                Err(ClientError::Refused(Refusal::RunClosed)) => {}
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
                (done, Some(Refusal::Paused))
            }
            Wish::Unpause => {
                let done = client.ask(Unpause { target, reason, identity, key }).await;
                (done, Some(Refusal::NotPaused))
            }
        };
        match done {
            // A run that already is as it should be is no error.
            Err(ClientError::Refused(refusal)) if Some(&refusal) == fulfilled.as_ref() => Ok(()),
            done => done.map(drop),
        }
    }
}

impl IntoFuture for Control {
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
        let moved = operation::RescheduleTimer {
            target: self.target,
            what: self.what,
            fire_at: self.fire_at,
            identity: self.client.identity().into(),
            key: Some(self.key.unwrap_or_else(fresh_key)),
        };
        self.client.ask(moved).await?;
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
    /// Asks the run to cancel itself; its code may clean up first. A handle that is bound to no run
    /// means the current one, and no run that follows it. Await what this returns.
    pub fn cancel(&self) -> Control {
        self.control(Wish::Cancel, String::new())
    }

    /// Ends the run at once; its code is not asked. A handle that is bound to no run means the
    /// current one, and no run that follows it. Await what this returns.
    pub fn terminate(&self, reason: impl Into<String>) -> Control {
        self.control(Wish::Terminate, reason.into())
    }

    /// Hands out nothing new of the run until it is unpaused. Await what this returns.
    pub fn pause(&self, reason: impl Into<String>) -> Control {
        self.control(Wish::Pause, reason.into())
    }

    /// Ends a pause. Await what this returns.
    pub fn unpause(&self, reason: impl Into<String>) -> Control {
        self.control(Wish::Unpause, reason.into())
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

    /// Tries again whatever is stuck. It needs no key: doing it twice is doing it once.
    pub async fn repair(&self) -> Result<(), ClientError> {
        let identity = self.client.identity().into();
        self.client.ask(Repair { target: self.target(), identity }).await?;
        Ok(())
    }

    fn control(&self, wish: Wish, reason: String) -> Control {
        Control { client: self.client.clone(), target: self.target(), wish, reason, key: None }
    }
}
