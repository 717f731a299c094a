//! A start together with an update: one call, after which the run is there and has judged the update.

use std::{
    fmt,
    future::{Future, IntoFuture},
    pin::Pin,
    sync::Arc,
};

use abide_core::{
    ids::UpdateId,
    operation::{CallError, RunTarget, StartUpdate, Started, UpdateWait},
    payload::Payloads,
    run::Stage,
};

use super::{
    ClientError, Start, UpdateHandle, WorkflowHandle,
    update::{Decode, fresh_id, request, result, stage},
};
use crate::{
    definition::{UpdateDef, Workflow},
    payload::{Data, PayloadError},
};

/// A start and an update that have not been made. Await it, or ask for its [`outcome`](Self::outcome).
///
/// An error means that the start was refused; then nothing of the update is kept.
#[must_use = "nothing is started until this is awaited"]
pub struct StartWithUpdate<W, O> {
    start: Start<W>,
    id: Option<UpdateId>,
    name: String,
    input: Result<Payloads, PayloadError>,
    decode: Decode<O>,
    wait_while_blocked: bool,
}

/// A run that is there, and what it made of the update.
pub struct StartedWithUpdate<W, U> {
    /// The run that was started, or was open.
    pub workflow: WorkflowHandle<W>,
    /// The call has begun the run: `false` if an open one is used.
    pub started: bool,
    /// The update, or why the run did not take it.
    pub update: Result<U, ClientError>,
}

impl<W, U: fmt::Debug> fmt::Debug for StartedWithUpdate<W, U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StartedWithUpdate")
            .field("workflow", &self.workflow)
            .field("started", &self.started)
            .field("update", &self.update)
            .finish()
    }
}

impl<W> Start<W> {
    /// Asks for an update that is known by name only, together with the start.
    pub fn with_update_untyped(
        self,
        name: impl Into<String>,
        input: Payloads,
    ) -> StartWithUpdate<W, Payloads> {
        StartWithUpdate::new(self, name.into(), Ok(input), Arc::new(Ok))
    }
}

impl<W: Workflow> Start<W> {
    /// Asks for an update together with the start, of the run that is started or was open. Says
    /// everything about the start first.
    pub fn with_update<I, O: Data>(
        self,
        definition: UpdateDef<W, I, O>,
        input: I,
    ) -> StartWithUpdate<W, O> {
        let input = definition.encode(&input);
        let decode = move |result: Payloads| definition.decode(&result);
        StartWithUpdate::new(self, definition.name().into(), input, Arc::new(decode))
    }
}

impl<W, O> StartWithUpdate<W, O> {
    fn new(
        start: Start<W>,
        name: String,
        input: Result<Payloads, PayloadError>,
        decode: Decode<O>,
    ) -> Self {
        Self { start, id: None, name, input, decode, wait_while_blocked: false }
    }

    /// Makes repeats of this update the same update; by default every one has an id of its own.
    pub fn id(mut self, id: impl Into<UpdateId>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Waits also while the code of a run that was open does not fit its history, until that is repaired;
    /// see [`Update::wait_while_blocked`](super::Update::wait_while_blocked).
    pub fn wait_while_blocked(mut self) -> Self {
        self.wait_while_blocked = true;
        self
    }

    /// Waits until the update has its outcome too.
    pub async fn outcome(self) -> Result<StartedWithUpdate<W, O>, ClientError> {
        let decode = self.decode.clone();
        let told = self.make(UpdateWait::Completed).await?;
        let StartedWithUpdate { workflow, started, update } = told;
        let update = update.and_then(|(_, stage)| result(stage, &decode));
        Ok(StartedWithUpdate { workflow, started, update })
    }

    async fn make(
        self,
        until: UpdateWait,
    ) -> Result<StartedWithUpdate<W, (UpdateHandle<O>, Stage)>, ClientError> {
        let (client, mut call) = self.start.keyed()?;
        let update = self.id.unwrap_or_else(fresh_id);
        let request = request(&client, self.name, self.input?);
        let (id, wait_while_blocked) = (update.clone(), self.wait_while_blocked);
        let asked = StartUpdate { update: id, request, until, wait_while_blocked };
        call.update = Some(Box::new(asked));
        let (run, started, told) = loop {
            let Started { run, started, update } = client.wait((*call).clone()).await?;
            match update {
                // The run that was open has closed meanwhile, so there is none.
                Some(Err(CallError::UpdateAborted { accepted: false, .. })) if !started => {}
                Some(told) => break (run, started, told),
                None => return Err(ClientError::unexpected(&run)),
            }
        };
        let workflow = client.handle_of(call.workflow.workflow.clone(), Some(run));
        let handle = |(run, stage)| {
            let target = RunTarget { workflow: call.workflow, run: Some(run) };
            let handle = UpdateHandle::new(client, target, update, self.decode);
            (if wait_while_blocked { handle.wait_while_blocked() } else { handle }, stage)
        };
        let update = told.map_err(ClientError::from).and_then(stage).map(handle);
        Ok(StartedWithUpdate { workflow, started, update })
    }
}

impl<W: 'static, O: 'static> IntoFuture for StartWithUpdate<W, O> {
    type Output = Result<StartedWithUpdate<W, UpdateHandle<O>>, ClientError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let told = self.make(UpdateWait::Accepted).await?;
            let StartedWithUpdate { workflow, started, update } = told;
            Ok(StartedWithUpdate { workflow, started, update: update.map(|(handle, _)| handle) })
        })
    }
}
