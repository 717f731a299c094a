//! A client that asks for nothing unusual, and notices when others slow the server down.

use std::{
    fmt,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use abide_core::codec::generated::{Payload, RunSpec, WorkflowKey};
use abide_proto::{
    PROTOCOL_VERSION,
    generated::{
        self as wire, CallsFrame, Credit, DescribeRunRequest, Hello, NumberedCall, RunTarget,
        Signal, StartRunRequest, WorkerFrame, abide_client::AbideClient,
        numbered_call::Call as Asked, workers_client::WorkersClient,
    },
};
use tokio::{
    sync::{
        mpsc::{self, UnboundedSender},
        oneshot,
    },
    task::JoinHandle,
    time::timeout,
};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::{
    Status,
    transport::{Channel, Endpoint},
};

use crate::Finding;

/// A call that takes longer than this has failed, however busy the machine is.
const DEADLINE: Duration = Duration::from_secs(60);

/// Pause between two rounds of a watch, so that it adds no load itself.
const PAUSE: Duration = Duration::from_millis(20);

/// Numbers the workflows of all honest clients.
static WORKFLOWS: AtomicU64 = AtomicU64::new(0);

/// So many rounds pass between two with the less usual calls.
const SELDOM: u64 = 10;

/// A client whose calls must succeed, whatever others do.
#[derive(Debug)]
pub struct Honest {
    server: Endpoint,
    channel: Channel,
    client: AbideClient<Channel>,
    rounds: u64,
}

impl Honest {
    /// Connects to a server.
    pub(crate) async fn connect(server: Endpoint) -> Result<Self, Finding> {
        let channel = server.connect().await?;
        let client = AbideClient::new(channel.clone());
        Ok(Self { server, channel, client, rounds: 0 })
    }

    /// Starts a run, signals it, describes it and ends it; now and then also does what opens something
    /// new. Returns the duration of the slowest of these calls.
    pub async fn round(&mut self) -> Result<Duration, Finding> {
        let seldom = self.rounds.is_multiple_of(SELDOM);
        self.rounds += 1;
        let id = WORKFLOWS.fetch_add(1, Ordering::Relaxed);
        let workflow =
            WorkflowKey { namespace: "default".into(), workflow: format!("honest-{id}") };
        let target = Some(RunTarget { workflow: Some(workflow.clone()), run: None });
        let client = &mut self.client;
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
        let describe = DescribeRunRequest { target: target.clone() };
        let terminate =
            wire::TerminateRunRequest { target, ..wire::TerminateRunRequest::default() };
        let mut took = vec![
            timed("a start", client.start_run(start)).await?,
            timed("a signal", client.signal_run(signal)).await?,
            timed("a description", client.describe_run(describe.clone())).await?,
        ];
        if seldom {
            took.push(self.send_a_megabyte(&describe).await?);
            took.push(self.open(&describe).await?);
        }
        took.push(timed("an end", self.client.terminate_run(terminate)).await?);
        Ok(took.into_iter().max().unwrap_or_default())
    }

    async fn send_a_megabyte(&mut self, run: &DescribeRunRequest) -> Result<Duration, Finding> {
        let payload = Payload { data: vec![7; 1_000_000].into(), ..Payload::default() };
        let signal = Signal { name: "large".into(), input: vec![payload], ..Signal::default() };
        let signal = wire::SignalRunRequest {
            target: run.target.clone(),
            signal: Some(signal),
            ..wire::SignalRunRequest::default()
        };
        timed("a megabyte", self.client.signal_run(signal)).await
    }

    /// Connects again, opens a stream of calls and one of a worker, and lists runs.
    async fn open(&mut self, run: &DescribeRunRequest) -> Result<Duration, Finding> {
        let list = wire::ListRunsRequest { page_size: 10, ..wire::ListRunsRequest::default() };
        let began = Instant::now();
        let connected = timeout(DEADLINE, self.server.connect()).await;
        self.channel = connected
            .map_err(|_| Finding::new("an honest client cannot connect"))?
            .map_err(|error| Finding::new(format!("an honest client cannot connect: {error}")))?;
        self.client = AbideClient::new(self.channel.clone());
        let took = [
            began.elapsed(),
            timed("a stream of calls", calls(self.client.clone(), run.clone())).await?,
            timed("a worker", work(self.channel.clone())).await?,
            timed("a list", self.client.list_runs(list)).await?,
        ];
        Ok(took.into_iter().max().unwrap_or_default())
    }

    /// Describes every run that the server lists; returns how many there are.
    pub async fn look_at_all(&mut self) -> Result<usize, Finding> {
        let (mut seen, mut page_token) = (0, Default::default());
        loop {
            let list = wire::ListRunsRequest { page_token, ..wire::ListRunsRequest::default() };
            let page = timeout(DEADLINE, self.client.list_runs(list)).await;
            let page = page.map_err(|_| Finding::new("a list of an honest client hangs"))??;
            let page = page.into_inner();
            for run in page.runs {
                let target = RunTarget { workflow: run.workflow, run: Some(run.run) };
                let describe = DescribeRunRequest { target: Some(target) };
                timed("a description", self.client.describe_run(describe)).await?;
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

/// A stream of one frame that stays open until the sender is dropped. One that never ended would keep
/// its connection open, and the client would soon have all that an address may have.
fn stream_of<T>(frame: T) -> (UnboundedSender<T>, UnboundedReceiverStream<T>) {
    let (sender, frames) = mpsc::unbounded_channel();
    // The receiver is still there.
    let _ = sender.send(frame);
    (sender, UnboundedReceiverStream::new(frames))
}

/// Opens a stream of calls, and waits for the answer to one.
async fn calls(mut client: AbideClient<Channel>, run: DescribeRunRequest) -> Result<(), Status> {
    let call = NumberedCall { number: 1, call: Some(Asked::Describe(run)) };
    let (_open, frames) = stream_of(CallsFrame { calls: vec![call], ..CallsFrame::default() });
    let mut answers = client.calls(frames).await?.into_inner();
    while let Some(frame) = answers.message().await? {
        if !frame.answers.is_empty() {
            return Ok(());
        }
    }
    Err(Status::unavailable("the stream ended"))
}

/// Connects as a worker of a queue of its own, and waits for the welcome.
async fn work(channel: Channel) -> Result<(), Status> {
    let number = WORKFLOWS.fetch_add(1, Ordering::Relaxed);
    let hello = Hello {
        protocol_version: PROTOCOL_VERSION,
        session: format!("honest-{number}"),
        identity: "honest".into(),
        ..Hello::default()
    };
    let credit =
        Credit { namespace: "default".into(), queue: "honest-worker".into(), kind: 1, credits: 1 };
    let (_open, frames) = stream_of(WorkerFrame {
        hello: Some(hello),
        credits: vec![credit],
        ..WorkerFrame::default()
    });
    let mut given = WorkersClient::new(channel).connect(frames).await?.into_inner();
    let welcome = given.message().await?;
    welcome.map(drop).ok_or_else(|| Status::unavailable("the stream ended"))
}

async fn timed<T>(
    what: &str,
    call: impl Future<Output = Result<T, Status>>,
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
