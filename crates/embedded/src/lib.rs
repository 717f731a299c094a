//! A durable engine inside your own process: on one SQLite file, on a PostgreSQL database, or in memory
//! for tests. Workflows,
//! workers and clients are the same as with a server.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let engine = abide_embedded::Embedded::open("abide.db").await?;
//! let client = engine.client();
//! let worker = engine.worker(); // .workflow::<Order>().activity(charge).spawn()
//! engine.shutdown().await;
//! # drop((client, worker));
//! # Ok(())
//! # }
//! ```

mod builder;
mod open;
mod transport;

use std::{
    path::Path,
    sync::{Arc, Weak},
    time::Duration,
};

use abide_engine::Engine;
use abide_sdk::{Client, Codecs, Timestamp, Worker, transport::Transport};
use abide_store::Store;

#[doc(hidden)]
pub use abide_core::limits::Limits;
pub use abide_engine::clock;

use self::transport::InProcess;
pub use self::{builder::Builder, open::OpenError};

/// Transport to an engine that runs in this process, such as a server's. It does not keep the
/// engine alive.
pub fn in_process(engine: &Arc<Engine>) -> Arc<dyn Transport> {
    Arc::new(InProcess::new(engine))
}

/// An engine in this process. It advances runs as long as it lives and has workers for them; when
/// it is opened again, they continue where they were.
///
/// Everything that was acknowledged survives any end of the process. [`Embedded::shutdown`] ends it
/// cleanly; dropping it is like a crash.
pub struct Embedded {
    engine: Arc<Engine>,
    /// One client for all, so that it knows the workers that were made by this engine.
    client: Client,
    store: Weak<dyn Store>,
}

/// How long a shutdown waits for pending calls to release the file.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(5);

impl Embedded {
    /// Opens the engine on an SQLite file, which is created if it does not exist, or on a database:
    /// `open("abide.db")`, or with the feature `postgres`
    /// `open("postgres://user:password@host/database")`.
    ///
    /// One process at a time can have it open. A second one is refused: at once for a file; for a
    /// database when the lease of the first has not ended within 15 seconds. After a crash the lease
    /// of a database ends within 5 seconds.
    pub async fn open(place: impl AsRef<Path>) -> Result<Self, OpenError> {
        Self::builder().open(place).await
    }

    /// Starts an engine whose content is lost when it ends.
    pub async fn in_memory() -> Self {
        Self::builder().in_memory().await
    }

    /// Configures namespaces, limits or the clock.
    pub fn builder() -> Builder {
        Builder::default()
    }

    async fn start(store: Arc<dyn Store>, options: abide_engine::Options) -> Self {
        let kept = Arc::downgrade(&store);
        let engine = Engine::start(store, options);
        engine.ready().await;
        let engine = Arc::new(engine);
        Self { client: Client::new(in_process(&engine)), engine, store: kept }
    }

    /// Starts another engine on the same store, which claims all shards from this one: state that
    /// this one has only in memory is lost, as in a crash. `None` if this one has released its
    /// store. For tests.
    #[doc(hidden)]
    pub fn successor(&self, builder: Builder) -> impl Future<Output = Option<Self>> + Send + use<> {
        let store = self.store.upgrade();
        async move { Some(builder.start(store?).await) }
    }

    /// The same engine with codecs for all its clients and workers: they encode what they send, and
    /// decode what they get.
    #[must_use]
    pub fn with_codecs(mut self, codecs: Codecs) -> Self {
        self.client = self.client.with_codecs(codecs);
        self
    }

    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// A worker of this engine, for the queue `default` and the namespace `default`. For others:
    /// `Worker::new(&engine.client().with_namespace(...)).queue(...)`.
    pub fn worker(&self) -> Worker {
        Worker::new(&self.client())
    }

    /// The current time of the engine's clock.
    pub fn now(&self) -> Timestamp {
        self.engine.now()
    }

    /// The engine itself, for tests of this workspace.
    #[doc(hidden)]
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Finishes what is in flight and stops. When this returns, the file can be opened again. Stop
    /// workers first, so that their activities are not interrupted.
    pub async fn shutdown(self) {
        let Self { engine, client: _, store } = self;
        engine.shutdown().await;
        drop(engine);
        let released = async {
            while store.strong_count() > 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        // A pending call that is never polled must not block the shutdown.
        drop(tokio::time::timeout(RELEASE_TIMEOUT, released).await);
    }
}
