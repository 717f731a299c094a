//! Updates: asked for by id, so that a repeat gets the outcome of the first.

use std::{
    future::{Future, IntoFuture},
    pin::Pin,
    sync::Arc,
};

use abide_core::{
    call::{Call, CallReply, RunTarget, UpdateWait},
    event::{Outcome, UpdateRequest},
    ids::UpdateId,
    payload::Payloads,
    run::Stage,
};
use uuid::Uuid;

use super::{Client, ClientError};
use crate::payload::PayloadError;

type Decode<O> = Arc<dyn Fn(Payloads) -> Result<O, PayloadError> + Send + Sync>;

/// An update that has not been asked for. Await it for its outcome, or [`Update::start`] it.
#[must_use = "nothing is asked for until this is awaited"]
pub struct Update<O> {
    client: Client,
    target: RunTarget,
    id: Option<UpdateId>,
    name: String,
    input: Result<Payloads, PayloadError>,
    decode: Decode<O>,
}

impl<O> Update<O> {
    pub(super) fn new(
        client: Client,
        target: RunTarget,
        name: String,
        input: Result<Payloads, PayloadError>,
        decode: impl Fn(Payloads) -> Result<O, PayloadError> + Send + Sync + 'static,
    ) -> Self {
        Self { client, target, id: None, name, input, decode: Arc::new(decode) }
    }

    /// Makes repeats of this update the same update; by default every one has an id of its own.
    pub fn id(mut self, id: impl Into<UpdateId>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Waits until the workflow has accepted the update.
    pub async fn start(self) -> Result<UpdateHandle<O>, ClientError> {
        let handle = self.asked()?;
        handle.wait(UpdateWait::Accepted).await?;
        Ok(handle)
    }

    fn asked(self) -> Result<UpdateHandle<O>, ClientError> {
        let id = self.id.unwrap_or_else(|| Uuid::new_v4().to_string().into());
        let identity = self.client.identity().into();
        let request =
            UpdateRequest { name: self.name, input: self.input?, identity, ..Default::default() };
        let (client, target, decode) = (self.client, self.target, self.decode);
        Ok(UpdateHandle { client, target, id, request, decode })
    }
}

impl<O: 'static> IntoFuture for Update<O> {
    type Output = Result<O, ClientError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.asked()?.result().await })
    }
}

/// An update that the workflow has accepted.
pub struct UpdateHandle<O> {
    client: Client,
    target: RunTarget,
    id: UpdateId,
    request: UpdateRequest,
    decode: Decode<O>,
}

impl<O> UpdateHandle<O> {
    /// The update's id.
    pub fn id(&self) -> &UpdateId {
        &self.id
    }

    /// Waits for the outcome.
    pub async fn result(&self) -> Result<O, ClientError> {
        match self.wait(UpdateWait::Completed).await? {
            Stage::Completed(Outcome::Completed(result)) => Ok((self.decode)(result)?),
            Stage::Completed(Outcome::Failed(failure)) => {
                Err(ClientError::UpdateFailed(Box::new(failure)))
            }
            stage => Err(ClientError::unexpected(&stage)),
        }
    }

    async fn wait(&self, until: UpdateWait) -> Result<Stage, ClientError> {
        let call = Call::Update {
            target: self.target.clone(),
            update: self.id.clone(),
            request: self.request.clone(),
            until,
        };
        match self.client.wait(call).await? {
            CallReply::Update { stage, .. } => Ok(stage),
            CallReply::UpdateRejected(failure) => {
                Err(ClientError::UpdateRejected(Box::new(failure)))
            }
            reply => Err(ClientError::unexpected(&reply)),
        }
    }
}
