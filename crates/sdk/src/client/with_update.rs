//! A start together with an update: one call, after which the run exists and has judged the update.

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
    ClientError, Handled, Start, UpdateHandle,
    update::{Decode, fresh_id, request, result, stage},
};
use crate::{
    arguments::{ArgumentList, IntoArguments},
    definition::{UpdateDef, Workflow},
    payload::{PayloadError, PayloadValue},
};

/// A start with an update. Both are sent when awaited; [`outcome`](Self::outcome) also waits for
/// the update's result.
///
/// An error means that the start was refused; then the update was not made either.
#[must_use = "nothing is started until this is awaited"]
pub struct StartWithUpdate<W, O> {
    start: Start<W>,
    id: Option<UpdateId>,
    name: String,
    input: Result<Payloads, PayloadError>,
    decode: Decode<O>,
    wait_while_blocked: bool,
}

/// A run, and what it made of the update.
#[non_exhaustive]
pub struct StartedWithUpdate<W: Handled, U> {
    /// A handle to the run that was started, or was open.
    pub workflow: W::Handle,
    /// The call created the run: `false` if an open one is used.
    pub started: bool,
    /// The update, or why the run did not take it.
    pub update: Result<U, ClientError>,
}

impl<W: Handled, U: fmt::Debug> fmt::Debug for StartedWithUpdate<W, U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StartedWithUpdate")
            .field("workflow", &self.workflow)
            .field("started", &self.started)
            .field("update", &self.update)
            .finish()
    }
}

impl<W> Start<W> {
    /// Sends an update by name together with the start, with encoded input.
    pub fn with_update_untyped(
        self,
        name: impl Into<String>,
        input: Payloads,
    ) -> StartWithUpdate<W, Payloads> {
        StartWithUpdate::new(self, name.into(), Ok(input), Arc::new(Ok))
    }
}

impl<W: Workflow> Start<W> {
    /// Sends an update together with the start, to the new run or the one that was open. Set the
    /// options of the start first.
    pub fn with_update<I: ArgumentList, O: PayloadValue>(
        self,
        definition: UpdateDef<W, I, O>,
        input: impl IntoArguments<I>,
    ) -> StartWithUpdate<W, O> {
        let input = definition.encode(&input.into_arguments());
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

    /// The update's id: updates with the same id run once. By default each update gets a new id.
    pub fn id(mut self, id: impl Into<UpdateId>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Keeps waiting while the code of a run that was open does not match its history, until that
    /// is repaired; see [`Update::wait_while_blocked`](super::Update::wait_while_blocked).
    pub fn wait_while_blocked(mut self) -> Self {
        self.wait_while_blocked = true;
        self
    }

    /// Sends both, and waits until the update has its outcome.
    pub async fn outcome(self) -> Result<StartedWithUpdate<W, O>, ClientError>
    where
        W: Handled,
    {
        let decode = self.decode.clone();
        let told = self.make(UpdateWait::Completed).await?;
        let StartedWithUpdate { workflow, started, update } = told;
        let update = update.and_then(|(_, stage)| result(stage, &decode));
        Ok(StartedWithUpdate { workflow, started, update })
    }

    async fn make(
        self,
        until: UpdateWait,
    ) -> Result<StartedWithUpdate<W, (UpdateHandle<O>, Stage)>, ClientError>
    where
        W: Handled,
    {
        let (client, mut call) = self.start.keyed()?;
        let update = self.id.unwrap_or_else(fresh_id);
        let request = request(&client, self.name, self.input?);
        let (id, wait_while_blocked) = (update.clone(), self.wait_while_blocked);
        let asked = StartUpdate { update: id, request, until, wait_while_blocked };
        call.update = Some(Box::new(asked));
        let target = RunTarget { workflow: call.workflow.clone(), run: None };
        let (run, started, told) = loop {
            let waiting = client.wait((*call).clone());
            let waiting = client.with_worker_of(&target, Some(&call.spec.queue), waiting);
            let Started { run, started, update } = waiting.await?;
            match update {
                // The open run has closed meanwhile, so the call is repeated without it.
                Some(Err(CallError::UpdateAborted { accepted: false, .. })) if !started => {}
                Some(told) => break (run, started, told),
                None => return Err(ClientError::unexpected(&run)),
            }
        };
        let workflow = client.handle_of::<W>(call.workflow.workflow.clone(), Some(run));
        let handle = |(run, stage)| {
            let target = RunTarget { workflow: call.workflow, run: Some(run) };
            let handle = UpdateHandle::new(client, target, update, self.decode);
            (if wait_while_blocked { handle.wait_while_blocked() } else { handle }, stage)
        };
        let update = told.map_err(ClientError::from).and_then(stage).map(handle);
        Ok(StartedWithUpdate { workflow, started, update })
    }
}

impl<W: Handled, O: 'static> IntoFuture for StartWithUpdate<W, O> {
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
