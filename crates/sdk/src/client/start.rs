//! The start of a workflow and its options.

use std::{
    future::{Future, IntoFuture},
    marker::PhantomData,
    pin::Pin,
    time::Duration,
};

use abide_core::{
    event::{self, RunSpec, SignalReceived},
    ids::{Key, WorkflowId},
    operation::{self, Begin, Started},
    payload::{PayloadMap, Payloads},
    time::Timestamp,
};

use super::{Client, ClientError, Handled, repeat::fresh_key};
use crate::{
    arguments::{ArgumentList, IntoArguments},
    definition::{SignalDef, Workflow},
    payload::{PayloadError, PayloadValue},
    policy::{ConflictPolicy, ReusePolicy},
    retry::RetryPolicy,
    search::AttributeChange,
    worker::DEFAULT_QUEUE,
};

/// A start of a workflow. It is sent when awaited.
///
/// If no worker takes the run's first task within seconds, the client logs a warning with what it knows
/// of the reason: once for each queue, until a worker takes a task of it.
#[must_use = "nothing is started until this is awaited"]
pub struct Start<W> {
    client: Client,
    call: Result<Box<operation::Start>, PayloadError>,
    of: PhantomData<fn() -> W>,
}

impl<W> Start<W> {
    pub(super) fn new(
        client: Client,
        id: WorkflowId,
        workflow_type: String,
        input: Result<Payloads, PayloadError>,
    ) -> Self {
        let workflow = client.workflow(id);
        let identity = client.identity().to_owned();
        let call = input.map(|input| {
            let queue = DEFAULT_QUEUE.into();
            Box::new(operation::Start {
                workflow,
                spec: RunSpec { workflow_type, queue, input, ..RunSpec::default() },
                identity,
                key: None,
                conflict: operation::ConflictPolicy::default(),
                reuse: event::ReusePolicy::default(),
                begin: Begin::default(),
                signal: None,
                update: None,
            })
        });
        Self { client, call, of: PhantomData }
    }

    fn with(mut self, change: impl FnOnce(&mut operation::Start)) -> Self {
        if let Ok(call) = &mut self.call {
            change(call);
        }
        self
    }

    /// The queue whose workers run the workflow; by default `default`.
    pub fn queue(self, queue: impl Into<String>) -> Self {
        self.with(|call| call.spec.queue = queue.into())
    }

    /// The idempotency key: starts with the same key create one run. By default each call gets a
    /// new key.
    pub fn key(self, key: impl Into<Key>) -> Self {
        self.with(|call| call.key = Some(key.into()))
    }

    /// What to do if a run of the workflow is open; by default the start is refused.
    pub fn on_conflict(self, conflict: ConflictPolicy) -> Self {
        self.with(|call| call.conflict = conflict.into())
    }

    /// Whether the id of a closed workflow may be reused; by default it may.
    pub fn reuse(self, reuse: ReusePolicy) -> Self {
        self.with(|call| call.reuse = reuse.into())
    }

    /// The longest duration of one run; after it the run times out.
    pub fn run_timeout(self, timeout: Duration) -> Self {
        self.with(|call| call.spec.run_timeout = Some(timeout))
    }

    /// The longest duration of the run and all runs that follow it.
    pub fn execution_timeout(self, timeout: Duration) -> Self {
        self.with(|call| call.spec.execution_timeout = Some(timeout))
    }

    /// The longest duration of one workflow task; after it the task is dispatched again.
    pub fn task_timeout(self, timeout: Duration) -> Self {
        self.with(|call| call.spec.task_timeout = Some(timeout))
    }

    /// Starts a new run by this policy when a run fails.
    pub fn retry(self, policy: RetryPolicy) -> Self {
        self.with(|call| call.spec.retry = Some(policy.into()))
    }

    /// Starts a new run at each time of this cron schedule: `0 9 * * MON-FRI`, in another zone than UTC
    /// `CRON_TZ=Europe/Berlin 0 9 * * MON-FRI`.
    pub fn cron(self, schedule: impl Into<String>) -> Self {
        self.with(|call| call.spec.cron = Some(schedule.into()))
    }

    /// The time at which the run's code begins.
    pub fn start_at(self, time: Timestamp) -> Self {
        self.with(|call| call.begin = Begin::At(time))
    }

    /// How long after its start the run's code begins, by the engine's clock.
    pub fn delay(self, delay: Duration) -> Self {
        self.with(|call| call.begin = Begin::After(delay))
    }

    /// Adds a named value that is shown with the run.
    pub fn memo<T: PayloadValue>(mut self, name: impl Into<String>, value: &T) -> Self {
        let name = name.into();
        match value.to_payload() {
            Ok(payload) => self.with(|call| {
                call.spec.memo.insert(name, payload.unwrap_or_default());
            }),
            Err(error) => {
                self.call = self.call.and(Err(error.of(format!("memo {name}"))));
                self
            }
        }
    }

    /// Sets a search attribute of the run, by which lists find it at once.
    pub fn search_attribute(mut self, change: AttributeChange) -> Self {
        let mut changed = PayloadMap::new();
        match change.add_to(&mut changed) {
            Ok(()) => self.with(|call| call.spec.search_attributes.extend(changed)),
            Err(error) => {
                self.call = self.call.and(Err(error));
                self
            }
        }
    }

    /// Sends a signal by name together with the start, with encoded input.
    pub fn with_signal_untyped(self, name: impl Into<String>, input: Payloads) -> Self {
        self.with(|call| call.signal = Some(signal(call, name.into(), input)))
    }

    /// Sends the start; returns `false` if an open run is used instead of a new one.
    pub async fn started(self) -> Result<(W::Handle, bool), ClientError>
    where
        W: Handled,
    {
        let (client, call) = self.keyed()?;
        let id = call.workflow.workflow.clone();
        let check = client.start_check(&call);
        let Started { run, started, .. } = client.ask(*call).await?;
        if let Some(check) = check.filter(|_| started) {
            check.look(run);
        }
        Ok((client.handle_of::<W>(id, Some(run)), started))
    }

    /// The call with its keys, so that retries are idempotent.
    pub(super) fn keyed(self) -> Result<(Client, Box<operation::Start>), ClientError> {
        let mut call = self.call?;
        let key = call.key.get_or_insert_with(fresh_key).clone();
        if let Some(signal) = &mut call.signal {
            signal.key.get_or_insert(key);
        }
        Ok((self.client, call))
    }
}

impl<W: Workflow> Start<W> {
    /// Sends a signal together with the start, to the new run or the one that was open.
    pub fn with_signal<I: ArgumentList>(
        mut self,
        definition: SignalDef<W, I>,
        input: impl IntoArguments<I>,
    ) -> Self {
        match definition.encode(&input.into_arguments()) {
            Ok(input) => self.with_signal_untyped(definition.name(), input),
            Err(error) => {
                self.call = self.call.and(Err(error));
                self
            }
        }
    }
}

fn signal(call: &operation::Start, name: String, input: Payloads) -> SignalReceived {
    let identity = call.identity.clone();
    SignalReceived { name, input, identity, ..SignalReceived::default() }
}

impl<W: Handled> IntoFuture for Start<W> {
    type Output = Result<W::Handle, ClientError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async { Ok(self.started().await?.0) })
    }
}
