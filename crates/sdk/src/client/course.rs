//! Changes of a run's course: reset, retry, deletion.

use std::{
    future::{Future, IntoFuture},
    pin::Pin,
};

use abide_core::{
    ids::{BuildId, EventNumber, Key, RunId},
    operation::{self, Delete, Describe, RunTarget},
    run::{Reapply, ResetPoint},
};

use super::{Client, ClientError, WorkflowHandle, repeat::fresh_key};

/// A request to go back to an earlier workflow task of a run. It is sent when awaited; the answer is
/// the id of the run that goes on.
#[must_use = "nothing is reset until this is awaited"]
pub struct Reset {
    client: Client,
    target: RunTarget,
    to: ResetPoint,
    reapply: Reapply,
    reason: String,
    key: Option<Key>,
}

impl Reset {
    /// Goes back to the first task that was completed.
    pub fn to_first_task(mut self) -> Self {
        self.to = ResetPoint::FirstTask;
        self
    }

    /// Goes back to the last task that was completed.
    pub fn to_last_task(mut self) -> Self {
        self.to = ResetPoint::LastTask;
        self
    }

    /// Goes back to the task with this event.
    pub fn to_event(mut self, event: EventNumber) -> Self {
        self.to = ResetPoint::Event(event);
        self
    }

    /// Goes back to the first task that this build completed.
    pub fn to_build(mut self, build: impl Into<BuildId>) -> Self {
        self.to = ResetPoint::Build(build.into());
        self
    }

    /// Goes back to the last task before the step that failed.
    pub fn to_failure(mut self) -> Self {
        self.to = ResetPoint::Failure;
        self
    }

    /// The new run does not get the signals that came after the task.
    pub const fn drop_signals(mut self) -> Self {
        self.reapply.signals = false;
        self
    }

    /// The new run does not get the updates that came after the task.
    pub const fn drop_updates(mut self) -> Self {
        self.reapply.updates = false;
        self
    }

    /// The reason that both histories record.
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

    async fn send(self) -> Result<RunId, ClientError> {
        let identity = self.client.identity().to_owned();
        let Self { client, target, to, reapply, reason, key } = self;
        let key = Some(key.unwrap_or_else(fresh_key));
        let asked = operation::Reset { target, to, reapply, reason, identity, key };
        Ok(client.ask(asked).await?.run)
    }
}

impl IntoFuture for Reset {
    type Output = Result<RunId, ClientError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}

impl<W> WorkflowHandle<W> {
    /// Goes back to an earlier workflow task, in a new run; by default to the last one before the step
    /// that failed. An open run is terminated. Await the returned value.
    pub fn reset(&self) -> Reset {
        Reset {
            client: self.client.clone(),
            target: self.target(),
            to: ResetPoint::Failure,
            reapply: Reapply::ALL,
            reason: String::new(),
            key: None,
        }
    }

    /// Tries the step that failed again, and goes on from there, in a new run. Await the returned value.
    pub fn retry(&self) -> Reset {
        self.reset().to_failure().reason("retry")
    }

    /// Deletes the run: its history, its rows and its keys. It must be closed. Effects of the run that
    /// are on their way to other workflows are waited for, up to the client's timeout.
    pub async fn delete(&self) -> Result<(), ClientError> {
        let target = self.target();
        let run = self.client.ask(Describe { target: target.clone() }).await?.run;
        let target = RunTarget { run: Some(run), ..target };
        let identity = self.client.identity().to_owned();
        match self.client.ask(Delete { target, identity }).await {
            // The run was there: an earlier attempt has deleted it, and its answer was lost.
            Ok(_) | Err(ClientError::NotFound) => Ok(()),
            Err(error) => Err(error),
        }
    }
}
