//! A client that asks for nothing unusual, and notices when others slow the server down.

use std::{
    fmt,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use abide_core::codec::generated::{RunSpec, WorkflowKey};
use abide_proto::generated::{
    self as wire, RunTarget, Signal, StartRunRequest, abide_client::AbideClient,
};
use tokio::{sync::oneshot, task::JoinHandle, time::timeout};
use tonic::{Response, Status, transport::Channel};

use crate::Finding;

/// A call that takes longer than this has failed, however busy the machine is.
const DEADLINE: Duration = Duration::from_secs(60);

/// Pause between two rounds of a watch, so that it adds no load itself.
const PAUSE: Duration = Duration::from_millis(20);

/// Numbers the workflows of all honest clients.
static WORKFLOWS: AtomicU64 = AtomicU64::new(0);

/// A client whose calls must succeed, whatever others do.
#[derive(Debug)]
pub struct Honest(AbideClient<Channel>);

impl Honest {
    pub(crate) fn new(channel: Channel) -> Self {
        Self(AbideClient::new(channel))
    }

    /// Starts a run, signals it, describes it and ends it; returns the duration of the slowest of
    /// these calls.
    pub async fn round(&mut self) -> Result<Duration, Finding> {
        let id = WORKFLOWS.fetch_add(1, Ordering::Relaxed);
        let workflow =
            WorkflowKey { namespace: "default".into(), workflow: format!("honest-{id}") };
        let target = Some(RunTarget { workflow: Some(workflow.clone()), run: None });
        let client = &mut self.0;
        let start = StartRunRequest {
            workflow: Some(workflow),
            spec: Some(RunSpec {
                workflow_type: "honest".into(),
                queue: "honest".into(),
                ..RunSpec::default()
            }),
            ..StartRunRequest::default()
        };
        let signal = wire::SignalRunRequest {
            target: target.clone(),
            signal: Some(Signal { name: "hello".into(), ..Signal::default() }),
            ..wire::SignalRunRequest::default()
        };
        let describe = wire::DescribeRunRequest { target: target.clone() };
        let terminate =
            wire::TerminateRunRequest { target, ..wire::TerminateRunRequest::default() };
        let took = [
            timed("a start", client.start_run(start)).await?,
            timed("a signal", client.signal_run(signal)).await?,
            timed("a description", client.describe_run(describe)).await?,
            timed("an end", client.terminate_run(terminate)).await?,
        ];
        Ok(took.into_iter().max().unwrap_or_default())
    }

    /// Describes every run that the server lists; returns how many there are.
    pub async fn look_at_all(&mut self) -> Result<usize, Finding> {
        let (mut seen, mut page_token) = (0, Default::default());
        loop {
            let list = wire::ListRunsRequest { page_token, ..wire::ListRunsRequest::default() };
            let page = timeout(DEADLINE, self.0.list_runs(list)).await??.into_inner();
            for run in page.runs {
                let target = RunTarget { workflow: run.workflow, run: Some(run.run) };
                let describe = wire::DescribeRunRequest { target: Some(target) };
                timed("a description", self.0.describe_run(describe)).await?;
                seen += 1;
            }
            page_token = page.next_page_token;
            if page_token.is_empty() {
                return Ok(seen);
            }
        }
    }

    /// Plays round after round in the background, until the watch is ended.
    pub fn watch(mut self) -> Watch {
        let (end, mut ended) = oneshot::channel();
        let rounds = tokio::spawn(async move {
            let mut took = Vec::new();
            loop {
                took.push(self.round().await?);
                if timeout(PAUSE, &mut ended).await.is_ok() {
                    return Ok(Latency::of(took));
                }
            }
        });
        Watch { end, rounds }
    }
}

async fn timed<T>(
    what: &str,
    call: impl Future<Output = Result<Response<T>, Status>>,
) -> Result<Duration, Finding> {
    let began = Instant::now();
    match timeout(DEADLINE, call).await {
        Ok(Ok(_)) => Ok(began.elapsed()),
        Ok(Err(status)) => {
            Err(Finding::new(format!("{what} of an honest client failed: {status}")))
        }
        Err(_) => {
            Err(Finding::new(format!("{what} of an honest client took more than {DEADLINE:?}")))
        }
    }
}

/// An honest client at work in the background.
#[derive(Debug)]
pub struct Watch {
    end: oneshot::Sender<()>,
    rounds: JoinHandle<Result<Latency, Finding>>,
}

impl Watch {
    /// Ends the watch; a finding if any of its calls failed.
    pub async fn end(self) -> Result<Latency, Finding> {
        // It has ended already if a call failed.
        let _ = self.end.send(());
        self.rounds.await?
    }
}

/// Durations of an honest client's rounds, each given by its slowest call.
#[derive(Clone, Copy, Debug)]
pub struct Latency {
    pub rounds: usize,
    /// Median over the rounds.
    pub median: Duration,
    /// The slowest call of all.
    pub worst: Duration,
}

impl Latency {
    fn of(mut took: Vec<Duration>) -> Self {
        took.sort_unstable();
        let median = took.get(took.len() / 2).copied().unwrap_or_default();
        Self { rounds: took.len(), median, worst: took.last().copied().unwrap_or_default() }
    }

    /// A finding if any call took longer than `bound`.
    pub fn at_most(self, bound: Duration) -> Result<Self, Finding> {
        Finding::unless(self.worst <= bound, || {
            format!("a call of an honest client took {:?}, more than {bound:?}", self.worst)
        })?;
        Ok(self)
    }
}

impl fmt::Display for Latency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rounds, median, worst } = self;
        write!(f, "{worst:.1?} (median {median:.1?} of {rounds})")
    }
}
