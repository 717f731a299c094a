//! A durable engine inside your own process: on one SQLite file, or in memory for tests. Workflows,
//! workers and clients are the same as with a server.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let engine = abide_embedded::Embedded::open("abide.db").await?;
//! let client = engine.client();
//! let worker = engine.worker(); // .workflow::<Order>().activity(charge).run_until(...)
//! engine.shutdown().await;
//! # drop((client, worker));
//! # Ok(())
//! # }
//! ```

#![warn(missing_docs)]

mod builder;
mod transport;

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use abide_engine::Engine;
use abide_sdk::{Client, Worker, transport::Transport};
use abide_store::Store;

pub use abide_core::limits::Limits;
pub use abide_engine::clock;
#[cfg(feature = "sqlite")]
pub use abide_store_sqlite::OpenError;

pub use self::builder::Builder;
use self::transport::InProcess;

/// The way to an engine that was started in this process by other means, such as a server's. It does
/// not keep the engine alive.
pub fn in_process(engine: &Arc<Engine>) -> Arc<dyn Transport> {
    Arc::new(InProcess::new(engine))
}

/// An engine in this process. Runs go on while it lives, as far as there are workers for them, and go
/// on where they were when it is opened again.
///
/// Whatever happens to the process, what was acknowledged is kept. [`Embedded::shutdown`] is the
/// polite way to end; to drop it is like a crash.
pub struct Embedded {
    engine: Arc<Engine>,
    store: Weak<dyn Store>,
}

/// How long a shutdown waits for calls of others to let go of the file.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(5);

impl Embedded {
    /// Opens the engine on an SQLite file, which is made if it is not there.
    #[cfg(feature = "sqlite")]
    pub async fn open(path: impl AsRef<std::path::Path>) -> Result<Self, OpenError> {
        Self::builder().open(path).await
    }

    /// An engine that forgets everything when it ends.
    pub async fn in_memory() -> Self {
        Self::builder().in_memory().await
    }

    /// An engine with other namespaces, bounds or another clock.
    pub fn builder() -> Builder {
        Builder::default()
    }

    async fn start(store: Arc<dyn Store>, options: abide_engine::Options) -> Self {
        let kept = Arc::downgrade(&store);
        let engine = Engine::start(store, options);
        engine.ready().await;
        Self { engine: Arc::new(engine), store: kept }
    }

    /// Another engine on the same store, which takes all shards from this one: what this one has in
    /// memory only is lost, as in a crash. None if this one has let go of its store. For tests.
    pub fn successor(&self, builder: Builder) -> impl Future<Output = Option<Self>> + Send + use<> {
        let store = self.store.upgrade();
        async move { Some(builder.start(store?).await) }
    }

    /// A client of this engine.
    pub fn client(&self) -> Client {
        Client::new(in_process(&self.engine))
    }

    /// A worker of this engine, for the queue `default` and the namespace `default`. For others:
    /// `Worker::new(&engine.client().with_namespace(...)).queue(...)`.
    pub fn worker(&self) -> Worker {
        Worker::new(&self.client())
    }

    /// The engine itself.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Finishes what is in flight and stops. When this returns, the file can be opened again. Workers
    /// are best ended before, so that their activities are not cut off.
    pub async fn shutdown(self) {
        let Self { engine, store } = self;
        engine.shutdown().await;
        drop(engine);
        let released = async {
            while store.strong_count() > 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        // Somebody who keeps a call without looking at it must not keep us.
        drop(tokio::time::timeout(RELEASE_TIMEOUT, released).await);
    }
}
