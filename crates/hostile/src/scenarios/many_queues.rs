//! Workers that give credit to thousands of queues with long names.

use std::time::Duration;

use abide_proto::{
    PROTOCOL_VERSION,
    generated::{Credit, Hello, WorkerFrame, workers_client::WorkersClient},
};
use tokio::{task::JoinSet, time::timeout};
use tokio_stream::StreamExt as _;
use tonic::{Code, Status, transport::Channel};

use crate::{Arena, Finding, Report, memory::Memory};

/// Streams, each with its own build, which must be announced.
const STREAMS: usize = 3;

/// Frames per stream.
const FRAMES: usize = 2;

/// Queues per frame.
const QUEUES: usize = 4_000;

/// Bytes that fill a name: with its number, it is just below the limit.
const NAME: usize = 990;

/// How long the streams stay open.
const HELD: Duration = Duration::from_secs(10);

pub(super) async fn play(arena: &Arena) -> Result<Report, Finding> {
    let victim = arena.start().await?;
    let memory = Memory::watch(&victim).await?;
    let channel = victim.channel().await?;
    let mut attackers = JoinSet::new();
    for stream in 0..STREAMS {
        attackers.spawn(name_queues(channel.clone(), stream));
    }
    let ends = async {
        while let Some(ended) = attackers.join_next().await {
            let status = ended?;
            let clear = status.code() == Code::InvalidArgument
                && status.message().contains("queues_per_session");
            Finding::unless(clear, || format!("the refusal is not clear: {status}"))?;
        }
        Ok::<_, Finding>(())
    };
    let ended = timeout(HELD, ends).await;
    ended.map_err(|_| Finding::new("workers may name any number of queues"))??;
    let report = memory.end(&victim).await?;
    victim.end().await?;
    Ok(report)
}

/// Names all queues, and returns how the stream ends.
async fn name_queues(channel: Channel, stream: usize) -> Status {
    let hello = Hello {
        protocol_version: PROTOCOL_VERSION,
        session: format!("names-{stream}"),
        identity: "names".into(),
        build: Some(format!("build-{stream}")),
        ..Hello::default()
    };
    let first = WorkerFrame { hello: Some(hello), ..WorkerFrame::default() };
    let credit = move |number: usize| Credit {
        namespace: "default".into(),
        queue: format!("{stream}-{number:q>NAME$}"),
        kind: 1,
        credits: 1,
    };
    let frames = (0..FRAMES).map(move |frame| {
        let credits = (0..QUEUES).map(|number| credit(frame * QUEUES + number)).collect();
        WorkerFrame { credits, ..WorkerFrame::default() }
    });
    let frames = tokio_stream::iter(std::iter::once(first).chain(frames));
    let frames = frames.chain(tokio_stream::pending());
    let ended = async {
        let mut given = WorkersClient::new(channel).connect(frames).await?.into_inner();
        while given.message().await?.is_some() {}
        Ok::<_, Status>(())
    };
    ended.await.err().unwrap_or_else(|| Status::ok("without a reason"))
}
