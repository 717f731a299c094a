//! Reads and writes the registry on a connection of its own: leases are renewed here, and must not wait
//! behind other work. Writes of this store are carried out in the order of calls.

use std::{sync::Arc, time::Duration};

use abide_store::{CommitError, Pending, rows::RegistryRow};
use tokio::{
    runtime::Handle,
    sync::{
        mpsc::{UnboundedSender, unbounded_channel},
        oneshot,
    },
    time::timeout,
};

use crate::{
    Options,
    fault::{self, Fault},
    readers::{Query, Readers},
    session::{Lane, Session, boxed},
    tables::registry,
};

/// A row to write, and who waits for it.
type Job = (RegistryRow, oneshot::Sender<Result<bool, CommitError>>);

/// The way to the registry.
pub(crate) struct Registrar {
    reader: Readers,
    jobs: UnboundedSender<Job>,
}

impl Registrar {
    pub(crate) fn new(runtime: Handle, options: &Arc<Options>) -> Self {
        let (jobs, mut queue) = unbounded_channel::<Job>();
        let lane = Lane::for_registry(options, &[registry::INSERT, registry::UPDATE]);
        runtime.spawn(async move {
            while let Some((row, reply)) = queue.recv().await {
                let (row, patience) = (&row, lane.patience());
                let written = lane
                    .attempt(|session| boxed(async move { put(&session, row, patience).await }))
                    .await;
                // A caller that has gone away no longer wants to know.
                let _ = reply.send(written.map_err(Fault::for_writer));
            }
        });
        Self { reader: Readers::for_registry(runtime, options), jobs }
    }

    pub(crate) fn read(&self, query: Query) -> Pending<'static, Vec<RegistryRow>> {
        self.reader.read(query, registry::decode)
    }

    /// Queues at once, so that order is the order of calls.
    pub(crate) fn put(&self, row: RegistryRow) -> Pending<'static, bool, CommitError> {
        let (reply, answer) = oneshot::channel();
        let queued = self.jobs.send((row, reply)).is_ok();
        Box::pin(async move {
            if !queued {
                return Err(CommitError::Stopped("the registrar has ended".to_owned()));
            }
            let ended = |_| CommitError::Unknown("the registrar has ended".to_owned());
            answer.await.map_err(ended)?
        })
    }
}

/// The statement is its own transaction: an error that the database did not tell may come from after
/// its end.
async fn put(session: &Session, row: &RegistryRow, patience: Duration) -> Result<bool, Fault> {
    if row.version == 0 || i64::try_from(row.version).is_err() {
        return Ok(false);
    }
    session.was_hasty();
    match timeout(patience, session.execute(registry::put(row))).await {
        Ok(changed) => {
            let changed = changed.map_err(fault::before_commit)?;
            if session.was_hasty() { Err(fault::hasty_commit()) } else { Ok(changed == 1) }
        }
        Err(_) => {
            session.spoil();
            Err(Fault::Unknown(format!("no answer in {patience:?}")))
        }
    }
}
