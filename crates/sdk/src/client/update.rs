//! Updates: sent with an id, so that a retry gets the outcome of the first, and can be looked up by
//! id later.

use std::{
    future::{Future, IntoFuture},
    pin::Pin,
    sync::Arc,
};

use abide_core::{
    event::{UpdateOutcome, UpdateRequest},
    ids::{RunId, UpdateId},
    operation::{self, AwaitUpdate, RunTarget, UpdateAnswer, UpdateWait},
    payload::Payloads,
    run::Stage,
};
use uuid::Uuid;

use super::{Client, ClientError};
use crate::payload::PayloadError;

/// Decodes the result of an update.
pub(super) type Decode<O> = Arc<dyn Fn(Payloads) -> Result<O, PayloadError> + Send + Sync>;

/// An update that is sent when awaited; it resolves to the outcome. [`Update::start`] waits for
/// acceptance only.
#[must_use = "nothing is sent until this is awaited"]
pub struct Update<O> {
    client: Client,
    target: RunTarget,
    id: Option<UpdateId>,
    name: String,
    input: Result<Payloads, PayloadError>,
    decode: Decode<O>,
    wait_while_blocked: bool,
}

impl<O> Update<O> {
    pub(super) fn new(
        client: Client,
        target: RunTarget,
        name: String,
        input: Result<Payloads, PayloadError>,
        decode: impl Fn(Payloads) -> Result<O, PayloadError> + Send + Sync + 'static,
    ) -> Self {
        let decode = Arc::new(decode);
        Self { client, target, id: None, name, input, decode, wait_while_blocked: false }
    }

    /// The update's id: updates with the same id run once. By default each update gets a new id. An
    /// id that was used with another name or other arguments is refused as `KeyReused`.
    pub fn id(mut self, id: impl Into<UpdateId>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Keeps waiting while the run's code does not match its history, until that is repaired.
    /// Without it the call fails at once with [`ClientError::Blocked`], and an update that the
    /// workflow had not accepted does not run.
    pub const fn wait_while_blocked(mut self) -> Self {
        self.wait_while_blocked = true;
        self
    }

    /// Sends the update and waits until the workflow has accepted it.
    pub async fn start(self) -> Result<UpdateHandle<O>, ClientError> {
        let (client, decode, target) =
            (self.client.clone(), self.decode.clone(), self.target.clone());
        let wait_while_blocked = self.wait_while_blocked;
        let (id, asked) = self.asked(UpdateWait::Accepted)?;
        let (run, _) = stage(client.with_worker(&target, client.wait(asked)).await?)?;
        let target = RunTarget { run: Some(run), ..target };
        Ok(UpdateHandle { wait_while_blocked, ..UpdateHandle::new(client, target, id, decode) })
    }

    fn asked(self, until: UpdateWait) -> Result<(UpdateId, operation::Update), ClientError> {
        let update = self.id.unwrap_or_else(fresh_id);
        let request = request(&self.client, self.name, self.input?);
        let (id, target, wait_while_blocked) =
            (update.clone(), self.target, self.wait_while_blocked);
        Ok((id, operation::Update { target, update, request, until, wait_while_blocked }))
    }
}

impl<O: 'static> IntoFuture for Update<O> {
    type Output = Result<O, ClientError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let (client, decode) = (self.client.clone(), self.decode.clone());
            let target = self.target.clone();
            let (_, asked) = self.asked(UpdateWait::Completed)?;
            let (_, stage) = stage(client.with_worker(&target, client.wait(asked)).await?)?;
            result(stage, &decode)
        })
    }
}

/// A handle to an update that was sent, by this client or another.
pub struct UpdateHandle<O> {
    client: Client,
    target: RunTarget,
    id: UpdateId,
    decode: Decode<O>,
    wait_while_blocked: bool,
}

/// The stage of an update that has neither failed nor been rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpdateState<O> {
    /// The run has received it; the workflow has not validated it yet.
    Admitted,
    /// The workflow has accepted it, and its handler runs.
    Accepted,
    /// The handler has finished with this result.
    Completed(O),
}

impl<O> UpdateHandle<O> {
    pub(super) fn new(client: Client, target: RunTarget, id: UpdateId, decode: Decode<O>) -> Self {
        Self { client, target, id, decode, wait_while_blocked: false }
    }

    /// Keeps waiting while the run's code does not match its history, until that is repaired; see
    /// [`Update::wait_while_blocked`].
    #[must_use]
    pub fn wait_while_blocked(mut self) -> Self {
        self.wait_while_blocked = true;
        self
    }

    /// The id of the update, unique within the run.
    pub fn id(&self) -> &UpdateId {
        &self.id
    }

    /// Waits for the outcome, without sending the update again.
    pub async fn result(&self) -> Result<O, ClientError> {
        result(self.wait(UpdateWait::Completed).await?, &self.decode)
    }

    /// Returns the current stage of the update, without waiting.
    pub async fn poll(&self) -> Result<UpdateState<O>, ClientError> {
        Ok(match self.wait(UpdateWait::Admitted).await? {
            Stage::Admitted => UpdateState::Admitted,
            Stage::Accepted => UpdateState::Accepted,
            stage => UpdateState::Completed(result(stage, &self.decode)?),
        })
    }

    async fn wait(&self, until: UpdateWait) -> Result<Stage, ClientError> {
        let (target, update) = (self.target.clone(), self.id.clone());
        let wait_while_blocked = self.wait_while_blocked;
        let asked = AwaitUpdate { target, update, until, wait_while_blocked };
        let waiting = self.client.wait(asked);
        Ok(stage(self.client.with_worker(&self.target, waiting).await?)?.1)
    }
}

impl<O> std::fmt::Debug for UpdateHandle<O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UpdateHandle")
            .field("workflow", &self.target.workflow)
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// An id for an update without one.
pub(super) fn fresh_id() -> UpdateId {
    Uuid::new_v4().to_string().into()
}

pub(super) fn request(client: &Client, name: String, input: Payloads) -> UpdateRequest {
    let identity = client.identity().into();
    UpdateRequest { name, input, identity, ..UpdateRequest::default() }
}

/// The run that has the update, and the update's stage.
pub(super) fn stage(answer: UpdateAnswer) -> Result<(RunId, Stage), ClientError> {
    match answer {
        UpdateAnswer::Reached { run, stage } => Ok((run, stage)),
        UpdateAnswer::Rejected(failure) => {
            Err(ClientError::UpdateRejected(Box::new(failure.into())))
        }
    }
}

/// The result of an update that is completed.
pub(super) fn result<O>(stage: Stage, decode: &Decode<O>) -> Result<O, ClientError> {
    match stage {
        Stage::Completed(UpdateOutcome::Completed(result)) => Ok(decode(result)?),
        Stage::Completed(UpdateOutcome::Failed(failure)) => {
            Err(ClientError::UpdateFailed(Box::new(failure.into())))
        }
        stage => Err(ClientError::unexpected(&stage)),
    }
}
