//! Reads and writes the registry on its own connection: lease renewals go through here and must not
//! queue behind other work. Writes of this store keep the order of calls.

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

/// A row to write, and the reply channel of its caller.
type Job = (RegistryRow, oneshot::Sender<Result<bool, CommitError>>);

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
                // The caller may have stopped waiting.
                let _ = reply.send(written.map_err(Fault::for_writer));
            }
        });
        Self { reader: Readers::for_registry(runtime, options), jobs }
    }

    pub(crate) fn read(&self, query: Query) -> Pending<'static, Vec<RegistryRow>> {
        self.reader.read(query, registry::decode)
    }

    /// Queues the row synchronously, so that writes keep the order of calls.
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

/// Runs one statement as its own transaction. An error that does not come from the database itself
/// may have occurred after the commit, so the outcome is unknown.
async fn put(session: &Session, row: &RegistryRow, patience: Duration) -> Result<bool, Fault> {
    if row.version == 0 || i64::try_from(row.version).is_err() {
        return Ok(false);
    }
    session.take_unreplicated();
    let put = async { session.execute(session.prepare_call(registry::put(row)).await?).await };
    match timeout(patience, put).await {
        Ok(changed) => {
            let changed = changed.map_err(fault::before_commit)?;
            if session.take_unreplicated() {
                Err(fault::unreplicated_commit())
            } else {
                Ok(changed == 1)
            }
        }
        Err(_) => {
            session.discard();
            Err(Fault::Unknown(format!("no answer in {patience:?}")))
        }
    }
}
