//! Settings of an embedded engine.

use std::{path::Path, sync::Arc, time::Duration};

use abide_core::{ids::NamespaceId, limits::Limits};
use abide_engine::{Options, clock::Clock};
use abide_store::{Store, memory::MemoryStore};

use crate::{
    Embedded,
    open::{self, OpenError},
};

/// Settings of an engine that is not open yet.
#[derive(Clone, Default)]
#[must_use = "an engine does nothing until it is opened"]
pub struct Builder {
    options: Options,
}

impl Builder {
    /// Adds a namespace; `default` always exists.
    pub fn namespace(mut self, namespace: impl Into<NamespaceId>) -> Self {
        self.options.namespaces.insert(namespace.into());
        self
    }

    /// Lets runs of the namespace `from` start children in the namespace `into`, and signal, cancel and
    /// terminate workflows there. By default only runs of the same namespace can.
    pub fn accept(mut self, into: impl Into<NamespaceId>, from: impl Into<NamespaceId>) -> Self {
        self.options.borders.accept(into.into(), from.into());
        self
    }

    /// From how many events on [`suggests_continue_as_new`] is true; by default 4,096. A test lowers it
    /// to reach the next run soon.
    ///
    /// [`suggests_continue_as_new`]: abide_sdk::Context::suggests_continue_as_new
    pub fn suggest_continue_as_new_after(mut self, events: u64) -> Self {
        self.options.limits.events_suggested = events;
        self
    }

    /// How long a worker whose stream has ended keeps its attempts, before they are retried elsewhere;
    /// by default 5 seconds.
    pub fn worker_grace(mut self, grace: Duration) -> Self {
        self.options.limits.session_grace = grace;
        self
    }

    /// Replaces all limits. Users have methods for those that they may set; this is for tests.
    #[doc(hidden)]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.options.limits = limits;
        self
    }

    /// Sets the clock; a test may use one that it moves itself.
    #[doc(hidden)]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.options.clock = clock;
        self
    }

    /// Opens the engine on an SQLite file, which is created if it does not exist, or on a PostgreSQL
    /// database; see [`Embedded::open`].
    pub async fn open(self, place: impl AsRef<Path>) -> Result<Embedded, OpenError> {
        open::open(self.options, place.as_ref()).await
    }

    /// Starts the engine in memory. Its content is lost when it ends.
    pub async fn in_memory(self) -> Embedded {
        self.start(Arc::new(MemoryStore::default())).await
    }

    /// Starts the engine on the given store.
    #[doc(hidden)]
    pub async fn start(self, store: Arc<dyn Store>) -> Embedded {
        Embedded::start(store, self.options).await
    }
}
