//! A client: starts workflows and speaks to their runs, by types instead of names.
//!
//! A call that was not answered is repeated with the same key or id, so it takes effect once
//! (`repeat`). What waits for a run, such as its result, waits as long as it takes, over any number of
//! lost connections.

mod activity;
mod control;
mod error;
mod handle;
mod history;
mod message;
mod repeat;
mod start;
mod update;
mod waits;
mod with_update;

use std::{marker::PhantomData, sync::Arc, time::Duration};

use abide_core::{
    ids::{NamespaceId, RunId, WorkflowId, WorkflowKey},
    list::{RunFilter, RunRow, WaitFilter, WaitRow},
    node::NodeListing,
    operation::{CountRuns, ListNodes, ListRuns, ListWaits},
    payload::Payloads,
    tally::{Tallied, Tally},
};

pub use self::{
    activity::ActivityHandle,
    control::{Control, RescheduleTimer},
    error::ClientError,
    handle::WorkflowHandle,
    history::HistoryFollower,
    message::Signal,
    start::Start,
    update::{Update, UpdateHandle, UpdateState},
    waits::{ShownWait, WaitKey, WaitsFollower},
    with_update::{StartWithUpdate, StartedWithUpdate},
};
use crate::{definition::Workflow, transport::Transport};

/// The namespace of those who do not choose one.
const DEFAULT_NAMESPACE: &str = "default";

/// How long an unanswered call is repeated, unless the client says otherwise.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// A client of an engine. Clones are cheap and share the connection.
#[derive(Clone)]
pub struct Client {
    transport: Arc<dyn Transport>,
    namespace: NamespaceId,
    identity: Arc<str>,
    call_timeout: Duration,
}

/// Stands in for the type of a workflow that is known by name only.
#[derive(Clone, Copy, Debug)]
pub enum Untyped {}

impl Client {
    /// A client of the engine behind this transport, in the namespace `default`.
    pub fn new(transport: Arc<dyn Transport>) -> Self {
        Self {
            transport,
            namespace: DEFAULT_NAMESPACE.into(),
            identity: default_identity().into(),
            call_timeout: CALL_TIMEOUT,
        }
    }

    /// The same client in another namespace.
    #[must_use]
    pub fn with_namespace(mut self, namespace: impl Into<NamespaceId>) -> Self {
        self.namespace = namespace.into();
        self
    }

    /// The same client under another name, which histories show; by default program and process.
    #[must_use]
    pub fn with_identity(mut self, identity: impl Into<Arc<str>>) -> Self {
        self.identity = identity.into();
        self
    }

    /// The same client with another bound on how long an unanswered call is repeated; by default ten
    /// seconds.
    #[must_use]
    pub fn with_call_timeout(mut self, timeout: Duration) -> Self {
        self.call_timeout = timeout;
        self
    }

    /// The namespace.
    pub fn namespace(&self) -> &NamespaceId {
        &self.namespace
    }

    /// Who the client is.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// The way to the engine.
    pub fn transport(&self) -> &Arc<dyn Transport> {
        &self.transport
    }

    /// Starts a workflow. Await what this returns, perhaps with more said about the start.
    pub fn start<W: Workflow>(&self, id: impl Into<WorkflowId>, input: W::Input) -> Start<W> {
        Start::new(self.clone(), id.into(), W::NAME.into(), W::encode_input(&input))
    }

    /// Starts a workflow that is known by name only.
    pub fn start_untyped(
        &self,
        workflow_type: impl Into<String>,
        id: impl Into<WorkflowId>,
        input: Payloads,
    ) -> Start<Untyped> {
        Start::new(self.clone(), id.into(), workflow_type.into(), Ok(input))
    }

    /// A handle of a workflow that was started before; whether it exists shows when it is used.
    pub fn handle<W: Workflow>(&self, id: impl Into<WorkflowId>) -> WorkflowHandle<W> {
        self.handle_of(id.into(), None)
    }

    /// A handle of a workflow that is known by name only.
    pub fn handle_untyped(&self, id: impl Into<WorkflowId>) -> WorkflowHandle<Untyped> {
        self.handle_of(id.into(), None)
    }

    fn handle_of<W>(&self, id: WorkflowId, started: Option<RunId>) -> WorkflowHandle<W> {
        let workflow = self.workflow(id);
        let client = self.clone();
        WorkflowHandle { client, workflow, run: None, started, of: PhantomData }
    }

    fn workflow(&self, workflow: WorkflowId) -> WorkflowKey {
        WorkflowKey { namespace: self.namespace.clone(), workflow }
    }

    /// Runs of the client's namespace, newest first.
    pub async fn runs(&self, filter: RunFilter, limit: usize) -> Result<Vec<RunRow>, ClientError> {
        let filter = RunFilter { namespace: Some(self.namespace.clone()), ..filter };
        let runs = self.ask(ListRuns { filter, limit: Some(limit) }).await?;
        Ok(runs.rows)
    }

    /// How many runs of the client's namespace pass the filter.
    pub async fn count_runs(&self, filter: RunFilter) -> Result<u64, ClientError> {
        let filter = RunFilter { namespace: Some(self.namespace.clone()), ..filter };
        Ok(self.ask(CountRuns { filter }).await?.0)
    }

    /// Counts waits of the client's namespace by when they end, or its runs by how they stand. It looks at
    /// a bounded number of rows and says whether there are more.
    pub async fn tally(&self, mut tally: Tally) -> Result<Tallied, ClientError> {
        match &mut tally {
            Tally::Waits(waits) => waits.namespace = Some(self.namespace.clone()),
            Tally::Runs(filter) => filter.namespace = Some(self.namespace.clone()),
        }
        self.ask(tally).await
    }

    /// What runs of the client's namespace wait for, by the end of the wait. The next page follows the
    /// [`WaitRow::position`] of the last row.
    pub async fn waits(
        &self,
        filter: WaitFilter,
        limit: usize,
    ) -> Result<Vec<WaitRow>, ClientError> {
        let filter = WaitFilter { namespace: Some(self.namespace.clone()), ..filter };
        let waits = self.ask(ListWaits { filter, limit: Some(limit) }).await?;
        Ok(waits.rows)
    }

    /// The nodes that serve the runs, of all namespaces, by name.
    pub async fn nodes(&self) -> Result<Vec<NodeListing>, ClientError> {
        Ok(self.ask(ListNodes).await?.0)
    }
}

fn default_identity() -> String {
    let program = std::env::current_exe()
        .ok()
        .and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()))
        .unwrap_or_else(|| "client".into());
    format!("{program}:{}", std::process::id())
}
