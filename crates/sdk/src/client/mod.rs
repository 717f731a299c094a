//! A client: starts workflows and communicates with their runs, by types instead of names.
//!
//! A call without an answer is retried with the same key or id, so it takes effect once (`repeat`).
//! A call that waits for a run, such as for its result, waits as long as it takes, across any
//! number of lost connections.

mod activity;
mod control;
mod drawn;
mod error;
mod handle;
mod history;
mod list;
mod message;
mod query;
mod repeat;
mod served;
mod start;
mod update;
mod waits;
mod with_update;
mod workers;

use std::{marker::PhantomData, sync::Arc, time::Duration};

use abide_core::{
    ids::{NamespaceId, RunId, WorkflowId, WorkflowKey},
    list::{RunFilter, RunRow, WaitFilter, WaitRow},
    operation::{CountRuns, ListNodes, ListRuns, ListWaits, RunRows, WaitRows},
    payload::Payloads,
    tally::{Tallied, Tally},
};

pub(crate) use self::workers::{ClientWorkers, Serving};
pub use self::{
    activity::ActivityHandle,
    control::{Control, RescheduleTimer},
    error::ClientError,
    handle::{Handled, WorkflowHandle},
    history::HistoryFollower,
    list::List,
    message::Signal,
    query::Query,
    start::Start,
    update::{Update, UpdateHandle, UpdateState},
    waits::{ShownWait, WaitKey, WaitsFollower},
    with_update::{StartWithUpdate, StartedWithUpdate},
};
use self::{
    drawn::drawn_id,
    list::{Fetch, Page},
};
use crate::{
    arguments::IntoArguments,
    codec::Codecs,
    definition::Workflow,
    interceptor::{Interceptor, Interceptors},
    transport::Transport,
};
pub use abide_core::{
    event::Blocked,
    limits::InvalidField,
    node::{NodeListing, NodeStanding},
    run::{Close, Description, Liveness, Refusal as RunRefusal},
};

/// The namespace of clients that do not choose one.
const DEFAULT_NAMESPACE: &str = "default";

/// How long an unanswered call is retried by default.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// A client of an engine. Clones are cheap and share the connection.
#[derive(Clone)]
pub struct Client {
    transport: Arc<dyn Transport>,
    namespace: NamespaceId,
    identity: Arc<str>,
    call_timeout: Duration,
    workers: ClientWorkers,
    codecs: Codecs,
    interceptors: Interceptors,
}

/// The type parameter of handles to workflows that are known by name only.
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
            workers: ClientWorkers::default(),
            codecs: Codecs::new(),
            interceptors: Interceptors::NONE,
        }
    }

    /// The same client in another namespace.
    #[must_use]
    pub fn with_namespace(mut self, namespace: impl Into<NamespaceId>) -> Self {
        self.namespace = namespace.into();
        self
    }

    /// The same client with another identity, which histories show; by default program and process.
    #[must_use]
    pub fn with_identity(mut self, identity: impl Into<Arc<str>>) -> Self {
        self.identity = identity.into();
        self
    }

    /// The same client with another limit on how long an unanswered call is retried; by default 10
    /// seconds.
    #[must_use]
    pub fn with_call_timeout(mut self, timeout: Duration) -> Self {
        self.call_timeout = timeout;
        self
    }

    /// The same client with these codecs: it encodes all data that it sends and decodes all data
    /// that it gets, and so do its workers. All programs of a namespace should have the same.
    #[must_use]
    pub fn with_codecs(mut self, codecs: Codecs) -> Self {
        self.codecs = codecs;
        self
    }

    /// The codecs of this client and its workers.
    pub fn codecs(&self) -> &Codecs {
        &self.codecs
    }

    /// The same client with one more interceptor, inside those that it has. Workers that are made of
    /// this client have it too.
    #[must_use]
    pub fn with_interceptor(mut self, interceptor: impl Interceptor) -> Self {
        self.interceptors = self.interceptors.with(Arc::new(interceptor));
        self
    }

    pub(crate) const fn interceptors(&self) -> &Interceptors {
        &self.interceptors
    }

    /// The namespace of all workflows that this client starts and finds.
    pub fn namespace(&self) -> &NamespaceId {
        &self.namespace
    }

    /// The identity that histories record for this client's calls.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// The transport that carries this client's calls. What is sent by it directly passes no codecs.
    pub fn transport(&self) -> &Arc<dyn Transport> {
        &self.transport
    }

    pub(crate) const fn workers(&self) -> &ClientWorkers {
        &self.workers
    }

    /// Starts a workflow. Set options on the returned value, then await it.
    pub fn start<W: Workflow + Handled>(
        &self,
        id: impl Into<WorkflowId>,
        input: impl IntoArguments<W::Arguments>,
    ) -> Start<W> {
        let input = W::encode_input(&input.into_arguments());
        Start::new(self.clone(), id.into(), W::NAME.into(), input)
    }

    /// Starts a workflow with an id that is drawn here, such as `Hello-5pk3zt0v9mhw`. The handle's
    /// `id()` returns it. Choose an id yourself, by [`Client::start`], if the same thing must not be
    /// started twice.
    pub fn start_new<W: Workflow + Handled>(
        &self,
        input: impl IntoArguments<W::Arguments>,
    ) -> Start<W> {
        self.start(drawn_id(W::NAME), input)
    }

    /// Starts a workflow by its type name, with encoded input.
    pub fn start_untyped(
        &self,
        workflow_type: impl Into<String>,
        id: impl Into<WorkflowId>,
        input: Payloads,
    ) -> Start<Untyped> {
        Start::new(self.clone(), id.into(), workflow_type.into(), Ok(input))
    }

    /// A handle to a workflow that was started before. A missing workflow is reported when the
    /// handle is used.
    pub fn handle<W: Workflow + Handled>(&self, id: impl Into<WorkflowId>) -> W::Handle {
        self.handle_of::<W>(id.into(), None)
    }

    /// A handle to a workflow of unknown type.
    pub fn handle_untyped(&self, id: impl Into<WorkflowId>) -> WorkflowHandle<Untyped> {
        self.handle_of::<Untyped>(id.into(), None)
    }

    fn handle_of<W: Handled>(&self, id: WorkflowId, started: Option<RunId>) -> W::Handle {
        let workflow = self.workflow(id);
        let client = self.clone();
        WorkflowHandle { client, workflow, run: None, started, of: PhantomData }.into()
    }

    fn workflow(&self, workflow: WorkflowId) -> WorkflowKey {
        WorkflowKey { namespace: self.namespace.clone(), workflow }
    }

    /// Lists the runs of the client's namespace, newest first: `client.runs(filter).take(10).await?`.
    pub fn runs(&self, filter: RunFilter) -> List<RunRow> {
        List::new(self.fetch_runs(filter))
    }

    /// One page of [`Client::runs`], of at most `limit` rows; the engine has a bound too. For the
    /// next page, pass the [`RunRow::position`] of the last row as `after`.
    pub async fn runs_page(
        &self,
        filter: RunFilter,
        limit: usize,
    ) -> Result<Vec<RunRow>, ClientError> {
        Ok(self.list_runs(filter, limit).await?.rows)
    }

    async fn list_runs(&self, filter: RunFilter, limit: usize) -> Result<RunRows, ClientError> {
        let filter = RunFilter { namespace: Some(self.namespace.clone()), ..filter };
        self.ask(ListRuns { filter, limit: Some(limit) }).await
    }

    fn fetch_runs(&self, filter: RunFilter) -> Fetch<RunRow> {
        let client = self.clone();
        Box::new(move |limit| {
            Box::pin(async move {
                let RunRows { rows, more } = client.list_runs(filter.clone(), limit).await?;
                let last = rows.last().filter(|_| more).map(RunRow::position);
                let next =
                    last.map(|after| client.fetch_runs(RunFilter { after: Some(after), ..filter }));
                Ok(Page { rows, next })
            })
        })
    }

    /// How many runs of the client's namespace match the filter.
    pub async fn count_runs(&self, filter: RunFilter) -> Result<u64, ClientError> {
        let filter = RunFilter { namespace: Some(self.namespace.clone()), ..filter };
        Ok(self.ask(CountRuns { filter }).await?.0)
    }

    /// Counts waits of the client's namespace by due time, or its runs by status and type. It counts
    /// a bounded number of rows, of runs the newest, and says whether there are more.
    pub async fn tally(&self, mut tally: Tally) -> Result<Tallied, ClientError> {
        match &mut tally {
            Tally::Waits(waits) => waits.namespace = Some(self.namespace.clone()),
            Tally::Runs(filter) => filter.namespace = Some(self.namespace.clone()),
        }
        self.ask(tally).await
    }

    /// Lists what runs of the client's namespace wait for, by due time:
    /// `client.waits(filter).take(10).await?`.
    pub fn waits(&self, filter: WaitFilter) -> List<WaitRow> {
        List::new(self.fetch_waits(filter, Some))
    }

    /// One page of [`Client::waits`], of at most `limit` rows; the engine has a bound too. For the
    /// next page, pass the [`WaitRow::position`] of the last row as `after`.
    pub async fn waits_page(
        &self,
        filter: WaitFilter,
        limit: usize,
    ) -> Result<Vec<WaitRow>, ClientError> {
        Ok(self.list_waits(filter, limit).await?.rows)
    }

    async fn list_waits(&self, filter: WaitFilter, limit: usize) -> Result<WaitRows, ClientError> {
        let filter = WaitFilter { namespace: Some(self.namespace.clone()), ..filter };
        self.ask(ListWaits { filter, limit: Some(limit) }).await
    }

    /// Pages of waits, as what `read` makes of each.
    pub(crate) fn fetch_waits<T: Send + 'static>(
        &self,
        filter: WaitFilter,
        read: fn(WaitRow) -> Option<T>,
    ) -> Fetch<T> {
        let client = self.clone();
        Box::new(move |limit| {
            Box::pin(async move {
                let WaitRows { rows, more } = client.list_waits(filter.clone(), limit).await?;
                let last = rows.last().filter(|_| more).map(WaitRow::position);
                let rows = rows.into_iter().filter_map(read).collect();
                let next = last.map(|after| {
                    client.fetch_waits(WaitFilter { after: Some(after), ..filter }, read)
                });
                Ok(Page { rows, next })
            })
        })
    }

    /// Lists the nodes of the cluster by name; they serve all namespaces.
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
