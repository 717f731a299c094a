//! Batches: one action on every run that a query finds. A task of the engine lists the runs from the
//! newest, acts on each, and writes after each page how far it is. Each action has a key, so what is done
//! again after a crash has no further effect.
//!
//! A batch belongs to the process that its row names. If that process is gone, another one takes the
//! batch over: at its start if it is alone, or when the row has not changed for a while.

use std::{sync::Arc, time::Duration};

use abide_core::{
    batch::{
        Batch, BatchPosition, BatchSpec, BatchState, Batches, KEPT_MAX, ListBatches, RUNNING_MAX,
        StartBatch, StopBatch,
    },
    codec,
    ids::{NamespaceId, WorkflowKey},
    limits::{Exceeded, InvalidField},
    list::{RunFilter, RunRow},
    operation::{CallError, CountRuns, ListRuns},
    run::Refusal,
};
use abide_store::rows::RegistryRow;
use futures_util::{StreamExt as _, stream};
use tokio::{sync::oneshot, time::Instant};

use self::driven::BatchName;
pub(crate) use self::{adopt::adopt, driven::Driven};
use crate::{Engine, engine::stopped, search::Purpose, turns};

mod adopt;
mod driven;

/// How often a change of the row is tried again that others overtook.
const TRIES: usize = 50;

/// Runs of one page at most: progress is written after each. A page is no more than a second's worth.
const PAGE: usize = 50;

/// Actions of one batch in flight: enough to share commits, and few beside those of clients.
const IN_FLIGHT: usize = 8;

/// How often an action is tried that fails for the moment.
const ATTEMPTS: u32 = 10;

/// How long a batch waits after an error, and an engine that looks for batches.
const RETRY: Duration = Duration::from_secs(1);

impl Engine {
    pub(crate) async fn start_batch(
        &self,
        StartBatch { namespace, spec }: StartBatch,
    ) -> Result<Batches, CallError> {
        self.check_namespace(&namespace)?;
        let spec = spec.checked(&self.node.limits)?;
        let filter = RunFilter {
            namespace: Some(namespace.clone()),
            query: spec.query.clone(),
            ..RunFilter::default()
        };
        self.searching(filter.clone(), Purpose::Count).await?;
        if let Some(batch) = known(&self.batches_of(&namespace).await?.0, &spec)? {
            if batch.running() && batch.driver == self.node.owner {
                let name = (namespace, spec.id.clone());
                self.in_background(|engine| drive(engine, name)).await?;
            }
            return Ok(Batches(vec![batch]));
        }
        let total = self.count_runs(CountRuns { filter }).await?.0;
        let batch = Batch {
            spec,
            state: BatchState::Running,
            started_at: self.now(),
            ended_at: None,
            total,
            done: 0,
            failed: 0,
            failures: Vec::new(),
            position: None,
            driver: self.node.owner.clone(),
            beat: 0,
        };
        let (answer, started) = oneshot::channel();
        self.in_background(|engine| begin(engine, namespace, batch, answer)).await?;
        Ok(Batches(vec![started.await.map_err(|_| stopped())??]))
    }

    /// Starts a task that goes on if the caller is gone, and ends with the engine.
    async fn in_background<F: Future<Output = ()> + Send + 'static>(
        &self,
        task: impl FnOnce(Arc<Engine>) -> F,
    ) -> Result<(), CallError> {
        let mut background = self.background.lock().await;
        if self.stopping() {
            return Err(stopped());
        }
        while background.try_join_next().is_some() {}
        background.spawn(task(Arc::new(self.handle())));
        Ok(())
    }

    pub(crate) async fn stop_batch(
        &self,
        StopBatch { namespace, id }: StopBatch,
    ) -> Result<Batches, CallError> {
        self.check_namespace(&namespace)?;
        let now = self.now();
        let stopped = self.change_batches(&namespace, |batches| {
            let batch = batches.iter_mut().find(|batch| batch.spec.id == id);
            let batch = batch.ok_or(CallError::NotFound)?;
            let running = batch.running();
            if running {
                batch.end(BatchState::Stopped, now);
            }
            Ok((running, batch.clone()))
        });
        Ok(Batches(vec![stopped.await?]))
    }

    pub(crate) async fn list_batches(
        &self,
        ListBatches { namespace }: ListBatches,
    ) -> Result<Batches, CallError> {
        self.check_namespace(&namespace)?;
        Ok(Batches(self.batches_of(&namespace).await?.0))
    }

    /// The batches of a namespace, and the version of their row.
    async fn batches_of(&self, namespace: &NamespaceId) -> Result<(Vec<Batch>, u64), CallError> {
        let name = Batch::registry_name(namespace);
        let rows = self.node.store.registry(name.clone()).await;
        let rows = rows.map_err(|error| self.unreadable(&error))?;
        match rows.into_iter().find(|row| row.name == name) {
            Some(row) => Ok((read(&row)?, row.version)),
            None => Ok((Vec::new(), 0)),
        }
    }

    /// Changes the batches of a namespace. `change` says whether there is anything to write.
    async fn change_batches<T>(
        &self,
        namespace: &NamespaceId,
        mut change: impl FnMut(&mut Vec<Batch>) -> Result<(bool, T), CallError>,
    ) -> Result<T, CallError> {
        for _ in 0..TRIES {
            let (mut batches, version) = self.batches_of(namespace).await?;
            let (changed, answer) = change(&mut batches)?;
            if !changed {
                return Ok(answer);
            }
            let row = RegistryRow {
                name: Batch::registry_name(namespace),
                version: version + 1,
                value: codec::encode_batches(&batches),
            };
            let written = self.node.store.put_registry(row).await;
            if written.map_err(|error| CallError::Unavailable(error.to_string()))? {
                return Ok(answer);
            }
        }
        Err(CallError::Overloaded)
    }

    /// Changes a batch that this process carries out; none if it no longer does.
    async fn progress(
        &self,
        (namespace, id): (&NamespaceId, &str),
        change: impl Fn(&mut Batch),
    ) -> Result<Option<Batch>, CallError> {
        self.change_batches(namespace, |batches| {
            let owner = &self.node.owner;
            let own = |batch: &&mut Batch| batch.spec.id == id && batch.driver == *owner;
            let Some(batch) = batches.iter_mut().find(own) else { return Ok((false, None)) };
            change(batch);
            batch.beat += 1;
            Ok((true, Some(batch.clone())))
        })
        .await
    }

    /// Acts on one run of a batch. An action that fails for the moment is tried again.
    async fn act(&self, batch: &Batch, row: &RunRow) -> Result<(), CallError> {
        let workflow =
            WorkflowKey { namespace: row.namespace.clone(), workflow: row.workflow.clone() };
        let operation = batch.spec.operation(workflow, row.run);
        let mut attempt = 1;
        loop {
            match self.operate(Box::new(operation.clone())).await {
                Ok(_) => return Ok(()),
                Err(error) if attempt < ATTEMPTS && passes(&error) => {
                    tokio::time::sleep(Duration::from_millis(100) * attempt).await;
                    attempt += 1;
                }
                // An earlier attempt deleted it, or its namespace's retention did.
                Err(CallError::NotFound) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    /// Takes over a batch whose process is gone; says whether it is now this one's.
    async fn take_over(&self, namespace: &NamespaceId, gone: &Batch) -> Result<bool, CallError> {
        self.change_batches(namespace, |batches| {
            let same = |batch: &&mut Batch| {
                batch.spec.id == gone.spec.id
                    && (batch.driver == gone.driver && batch.beat == gone.beat && batch.running())
            };
            let Some(batch) = batches.iter_mut().find(same) else { return Ok((false, false)) };
            batch.driver.clone_from(&self.node.owner);
            batch.beat += 1;
            Ok((true, true))
        })
        .await
    }
}

/// Whether the same request may succeed a moment later.
fn passes(error: &CallError) -> bool {
    error.passing()
        || matches!(
            error,
            CallError::NotServed
                | CallError::Unavailable(_)
                | CallError::Refused(Refusal::Undelivered(_) | Refusal::Unanswered(_))
        )
}

/// Makes room for one more batch, or refuses it.
fn make_room(batches: &mut Vec<Batch>) -> Result<(), CallError> {
    if batches.iter().filter(|batch| batch.running()).count() >= RUNNING_MAX {
        let limit = u64::try_from(RUNNING_MAX).unwrap_or(u64::MAX);
        let what = "running batches of the namespace; stop one, or wait for its end".into();
        return Err(Refusal::from(Exceeded { what, limit }).into());
    }
    while batches.len() >= KEPT_MAX
        && let Some(ended) = batches.iter().position(|batch| !batch.running())
    {
        batches.remove(ended);
    }
    Ok(())
}

fn read(row: &RegistryRow) -> Result<Vec<Batch>, CallError> {
    codec::decode_batches(row.value.clone()).map_err(|error| CallError::NoAnswer(error.to_string()))
}

/// The batch that an earlier request with this specification started.
fn known(batches: &[Batch], spec: &BatchSpec) -> Result<Option<Batch>, CallError> {
    match batches.iter().find(|batch| batch.spec.id == spec.id) {
        Some(batch) if batch.is_of(spec) => Ok(Some(batch.clone())),
        Some(_) => {
            let problem = format!("{:?} is the id of another batch: choose another", spec.id);
            Err(InvalidField::new("id", problem).into())
        }
        None => Ok(None),
    }
}

/// Writes a batch, answers, and carries it out.
async fn begin(
    engine: Arc<Engine>,
    namespace: NamespaceId,
    batch: Batch,
    answer: oneshot::Sender<Result<Batch, CallError>>,
) {
    let name = (namespace.clone(), batch.spec.id.clone());
    let started = engine.change_batches(&namespace, |batches| {
        if let Some(batch) = known(batches, &batch.spec)? {
            return Ok((false, batch));
        }
        make_room(batches)?;
        batches.push(batch.clone());
        Ok((true, batch.clone()))
    });
    let started = started.await;
    let own = match &started {
        Ok(batch) => batch.running() && batch.driver == engine.node.owner,
        // It may have been written all the same.
        Err(error) => matches!(error, CallError::Unavailable(_)),
    };
    // The caller may be gone.
    drop(answer.send(started));
    if own {
        drive(engine, name).await;
    }
}

/// Carries out a batch until it has ended, or another process has it. Returns at once if a task of this
/// process does so already.
async fn drive(engine: Arc<Engine>, name: BatchName) {
    let Some(mut driven) = engine.node.driven.begin(name) else { return };
    let (namespace, id) = driven.name().clone();
    loop {
        match page(&engine, &namespace, &id).await {
            Ok(true) => {}
            Ok(false) if driven.end() => return,
            Ok(false) => {}
            Err(error) => {
                tracing::warn!(batch = id, %error, "a batch waits");
                tokio::time::sleep(RETRY).await;
            }
        }
    }
}

/// Deals with the next runs of a batch; says whether it goes on.
async fn page(engine: &Engine, namespace: &NamespaceId, id: &str) -> Result<bool, CallError> {
    let begun = Instant::now();
    let batches = engine.batches_of(namespace).await?.0;
    let own = |batch: &Batch| batch.spec.id == id && batch.driver == engine.node.owner;
    let Some(batch) = batches.into_iter().find(|batch| own(batch) && batch.running()) else {
        return Ok(false);
    };
    let filter = RunFilter {
        namespace: Some(namespace.clone()),
        query: batch.spec.query.clone(),
        // Runs of the same moment are part of it.
        started_before: Some(batch.started_at.saturating_add(Duration::from_nanos(1))),
        after: batch.position.as_ref().map(|at| (at.started_at, at.run)),
        ..RunFilter::default()
    };
    let second = usize::try_from(batch.spec.rate).unwrap_or(PAGE);
    let limit = Some(second.clamp(1, PAGE));
    let (listed, _) = engine.runs(ListRuns { filter, limit }, &turns::at_once).await?;
    let acted = {
        let _work = engine.node.gauge.begin();
        let act = |row: RunRow| async {
            let acted = engine.act(&batch, &row).await;
            (row, acted)
        };
        stream::iter(listed.rows).map(act).buffered(IN_FLIGHT).collect::<Vec<_>>().await
    };
    // What failed because the engine stops is not dealt with.
    if engine.stopping() {
        return Ok(false);
    }
    let now = engine.now();
    let gone_on = engine.progress((namespace, id), |batch| {
        for (row, acted) in &acted {
            match acted {
                Ok(()) => batch.done += 1,
                Err(error) => batch.fail(row.workflow.clone(), row.run, &error.to_string()),
            }
        }
        let last = acted.last().map(|(row, _)| row.position());
        if let Some((started_at, run)) = listed.next.or(last) {
            batch.position = Some(BatchPosition { started_at, run });
        }
        if listed.next.is_none() && batch.running() {
            batch.end(BatchState::Completed, now);
        }
    });
    let Some(batch) = gone_on.await?.filter(Batch::running) else { return Ok(false) };
    let runs = u32::try_from(acted.len()).unwrap_or(u32::MAX);
    let least = Duration::from_secs(1) * runs / batch.spec.rate.max(1);
    tokio::time::sleep_until(begun + least).await;
    Ok(true)
}
