//! A client: starts workflows and communicates with their runs, by types instead of names.
//!
//! A call without an answer is retried with the same key or id, so it takes effect once (`repeat`).
//! A call that waits for a run, such as for its result, waits as long as it takes, across any
//! number of lost connections.

mod activity;
mod batch;
mod blocked;
mod control;
mod course;
mod description;
mod error;
mod generated_id;
mod handle;
mod history;
mod list;
mod lists;
mod message;
mod missing_worker;
mod nodes;
mod query;
mod queue_checks;
mod refusal;
mod repeat;
mod run_state;
mod schedule;
mod start;
mod update;
mod waits;
mod with_update;
mod workers;

use std::{marker::PhantomData, sync::Arc, time::Duration};

use abide_core::{
    ids::{NamespaceId, RunId, WorkflowId, WorkflowKey},
    payload::Payloads,
};

use self::generated_id::generated_id;
pub(crate) use self::workers::{ClientWorkers, Serving};
pub use self::{
    activity::ActivityHandle,
    batch::{Batch, BatchFailure, BatchInfo, BatchStart, BatchStatus},
    blocked::{Blocked, BlockedReason},
    control::{ControlRequest, RescheduleTimer},
    course::Reset,
    description::Description,
    error::ClientError,
    handle::{Handled, WorkflowHandle},
    history::{HistoryEvent, HistoryFollower},
    list::List,
    message::Signal,
    nodes::{NodeInfo, NodeStatus},
    query::Query,
    refusal::{RefusalKind, RunRefusal},
    run_state::{
        ActivityPhase, Liveness, PendingActivity, PendingChild, ResumeSource, RunOutcome,
        RunReference, TaskFailureCause, TaskTrouble,
    },
    schedule::{ChangeSchedule, CreateSchedule, ScheduleHandle},
    start::Start,
    update::{Update, UpdateHandle, UpdateState},
    waits::WaitsFollower,
    with_update::{StartWithUpdate, StartedWithUpdate},
};
use crate::{
    arguments::IntoArguments,
    codec::Codecs,
    definition::Workflow,
    interceptor::{Interceptor, Interceptors},
    transport::Transport,
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
    #[doc(hidden)]
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
    #[doc(hidden)]
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

    /// Starts a workflow with a generated id, such as `Hello-5pk3zt0v9mhw`. The handle's
    /// `id()` returns it. Choose an id yourself, by [`Client::start`], if the same thing must not be
    /// started twice.
    pub fn start_new<W: Workflow + Handled>(
        &self,
        input: impl IntoArguments<W::Arguments>,
    ) -> Start<W> {
        self.start(generated_id(W::NAME), input)
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
}

fn default_identity() -> String {
    let program = std::env::current_exe()
        .ok()
        .and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()))
        .unwrap_or_else(|| "client".into());
    format!("{program}:{}", std::process::id())
}
