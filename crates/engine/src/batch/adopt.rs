//! Looks for running batches that no process carries out, and carries them out. An engine that is alone looks
//! until it has seen and taken all of them; a node of a cluster goes on looking, because other nodes may fail.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use abide_core::{
    batch::{Batch, REGISTRY_PREFIX},
    operation::CallError,
};
use tokio::task::JoinSet;

use super::{RETRY, drive, driven::BatchName, read};
use crate::{Engine, clock::since_boot};

/// How often a node of a cluster looks for batches whose process is gone, in leases.
const LOOK: u32 = 2;

/// How long a batch must stay the same until its process counts as gone, in leases: a page takes less, and
/// two processes at the same batch do no harm.
const SILENCE: u32 = 6;

pub(crate) async fn adopt(engine: Engine) {
    engine.ready().await;
    let lease = engine.node.cluster.as_ref().map(|cluster| cluster.lease);
    let mut search = Search {
        silence: lease.unwrap_or_default() * SILENCE,
        engine: Arc::new(engine),
        seen: BTreeMap::new(),
        unreadable: BTreeSet::new(),
        adopted: JoinSet::new(),
    };
    while !search.engine.stopping() {
        let looked = search.look().await;
        if let Err(error) = &looked {
            tracing::warn!(%error, "cannot take over all batches yet");
        }
        while search.adopted.try_join_next().is_some() {}
        match lease {
            Some(lease) => tokio::time::sleep(lease * LOOK).await,
            None if looked.is_err() => tokio::time::sleep(RETRY).await,
            // The batches of an engine that is alone have no other process.
            None => {
                while search.adopted.join_next().await.is_some() {}
                return;
            }
        }
    }
}

struct Search {
    engine: Arc<Engine>,
    silence: Duration,
    /// What each batch of others was like, and since when.
    seen: BTreeMap<BatchName, (Batch, Duration)>,
    /// Rows that cannot be decoded and were reported.
    unreadable: BTreeSet<String>,
    adopted: JoinSet<()>,
}

impl Search {
    /// Looks at all batches once. What fails is left for the next time.
    async fn look(&mut self) -> Result<(), CallError> {
        let running = self.running().await?;
        self.seen.retain(|name, _| running.contains_key(name));
        let mut looked = Ok(());
        for (name, batch) in running {
            match self.claim(&name, &batch).await {
                Ok(true) => drop(self.adopted.spawn(drive(Arc::clone(&self.engine), name))),
                Ok(false) => {}
                Err(error) => looked = Err(error),
            }
        }
        looked
    }

    /// Says whether this process carries the batch out; takes it over if its process is gone.
    async fn claim(&mut self, name: &BatchName, batch: &Batch) -> Result<bool, CallError> {
        if batch.driver == self.engine.node.owner {
            return Ok(true);
        }
        let now = since_boot();
        let (before, since) = self.seen.entry(name.clone()).or_insert_with(|| (batch.clone(), now));
        if before != batch {
            (*before, *since) = (batch.clone(), now);
        }
        let silent = now.saturating_sub(*since) >= self.silence;
        if !silent && !self.engine.is_gone(&batch.driver) {
            return Ok(false);
        }
        self.engine.take_over(&name.0, batch).await
    }

    /// The running batches of all processes.
    async fn running(&mut self) -> Result<BTreeMap<BatchName, Batch>, CallError> {
        let rows = self.engine.node.store.registry(REGISTRY_PREFIX.to_owned()).await;
        let rows = rows.map_err(|error| self.engine.unreadable(&error))?;
        let mut running = BTreeMap::new();
        for row in rows {
            let Some(namespace) = Batch::namespace_of(&row.name) else { continue };
            match read(&row) {
                Ok(batches) => {
                    let batches = batches.into_iter().filter(Batch::running);
                    let name = |batch: &Batch| (namespace.clone(), batch.spec.id.clone());
                    running.extend(batches.map(|batch| (name(&batch), batch)));
                }
                Err(error) if self.unreadable.insert(row.name) => {
                    tracing::error!(%namespace, %error, "cannot read the batches of a namespace");
                }
                Err(_) => {}
            }
        }
        Ok(running)
    }
}
