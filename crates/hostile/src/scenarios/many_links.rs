//! A failure with a very long chain of causes, sent without any run, worker or task: a server that
//! built the chain as nested values would overflow its stack when dropping it.

use abide_core::codec::generated::{
    Failure, FailureLink, Nothing, Outcome, StartId, TaskFailureCause, WorkflowKey, failure_link,
    outcome,
};
use abide_proto::{
    PROTOCOL_VERSION,
    generated::{
        ActivityToken, AnswerQuery, CallsFrame, Command, CompleteTask, Completion, FailTask, Hello,
        NamedActivity, NumberedCall, QueryToken, RejectUpdate, ReportAttemptRequest,
        ResolveActivity, RunTarget, TaskToken, WorkerFrame, command::Ask,
        completion::Completion as Completed, numbered_call::Call, report_attempt_request,
        resolve_activity,
    },
};
use bytes::Bytes;
use tokio_stream::{StreamExt as _, iter};

use crate::{Arena, Bytes as Amount, Finding, Report, Victim, raw};

/// Links in a message: few enough not to be refused for its parts, on the levels where a failure
/// can be.
const LINKS: [usize; 3] = [101, 30_000, 250_000];

/// More memory than this for one message at a time is a finding.
const RSS: Amount = Amount::mb(400);

pub(super) async fn play(arena: &Arena) -> Result<Report, Finding> {
    let mut victim = arena.start().await?;
    let watch = victim.honest().await?.watch();
    let mut messages = 0;
    for links in LINKS {
        let failure = failure(links);
        for (method, frames) in attacks(&failure) {
            send(&victim, method, frames).await?;
            victim.check()?;
            messages += 1;
        }
    }
    let latency = watch.end().await?;
    let peak = victim.peak_rss();
    victim.end().await?;
    Finding::unless(peak <= RSS, || format!("RSS came to {peak}, more than {RSS}"))?;
    Ok(Report::default().with("messages", messages).with("peak RSS", peak).with("slowest", latency))
}

fn failure(links: usize) -> Failure {
    let kind = Some(failure_link::Kind::Application(Nothing {}));
    Failure { links: vec![FailureLink { kind, ..FailureLink::default() }; links] }
}

/// Every way in which a failure comes in from outside: methods, with the frames of a stream.
fn attacks(failure: &Failure) -> Vec<(&'static str, Vec<Bytes>)> {
    let report = ReportAttemptRequest {
        attempt: Some(report_attempt_request::Attempt::Activity(NamedActivity {
            target: Some(RunTarget { workflow: Some(workflow()), run: None }),
            activity: "made-up".into(),
        })),
        report: Some(report_attempt_request::Report::Failed(failure.clone())),
    };
    let call = NumberedCall { number: 1, call: Some(Call::ReportAttempt(report.clone())) };
    let calls = CallsFrame { calls: vec![call], ..CallsFrame::default() };
    let mut attacks = vec![
        ("/abide.v1.Abide/ReportAttempt", vec![encoded(&report)]),
        ("/abide.v1.Abide/Calls", vec![encoded(&calls)]),
    ];
    let commanded = |ask| {
        let commands = vec![Command { ask: Some(ask), ..Command::default() }];
        Completed::CompleteTask(CompleteTask { token: task(), commands, ..CompleteTask::default() })
    };
    let rejected = RejectUpdate { failure: Some(failure.clone()), ..RejectUpdate::default() };
    let completions = [
        Completed::AnswerQuery(AnswerQuery {
            token: Some(QueryToken {
                workflow: Some(workflow()),
                run: run(),
                ..QueryToken::default()
            }),
            outcome: Some(Outcome { case: Some(outcome::Case::Failed(failure.clone())) }),
        }),
        Completed::ResolveActivity(ResolveActivity {
            token: Some(ActivityToken {
                workflow: Some(workflow()),
                run: run(),
                ..ActivityToken::default()
            }),
            resolution: Some(resolve_activity::Resolution::Failed(failure.clone())),
        }),
        Completed::FailTask(FailTask {
            token: task(),
            cause: TaskFailureCause::WorkerFailure.into(),
            failure: Some(failure.clone()),
            ..FailTask::default()
        }),
        commanded(Ask::FailRun(failure.clone())),
        commanded(Ask::RejectUpdate(rejected)),
    ];
    let frames = |completion| vec![encoded(&hello()), encoded(&completed(completion))];
    let connect = |completion| ("/abide.v1.Workers/Connect", frames(completion));
    attacks.extend(completions.map(connect));
    attacks
}

fn workflow() -> WorkflowKey {
    WorkflowKey { namespace: "default".into(), workflow: "made-up".into() }
}

/// The id of a run that does not exist.
fn run() -> Bytes {
    Bytes::from_static(&[7; 16])
}

fn task() -> Option<TaskToken> {
    let start = Some(StartId::default());
    Some(TaskToken { workflow: Some(workflow()), run: run(), start })
}

fn hello() -> WorkerFrame {
    let hello = Hello {
        protocol_version: PROTOCOL_VERSION,
        session: "many-links".into(),
        ..Hello::default()
    };
    WorkerFrame { hello: Some(hello), ..WorkerFrame::default() }
}

fn completed(completion: Completed) -> WorkerFrame {
    let completions = vec![Completion { number: 1, completion: Some(completion) }];
    WorkerFrame { completions, ..WorkerFrame::default() }
}

fn encoded(message: &impl prost::Message) -> Bytes {
    message.encode_to_vec().into()
}

/// Sends the frames and reads until the server has no more to send. Any answer is accepted.
async fn send(victim: &Victim, method: &'static str, frames: Vec<Bytes>) -> Result<(), Finding> {
    let channel = victim.channel().await?;
    let Ok(mut told) = raw::stream(&channel, method, iter(frames)).await else { return Ok(()) };
    while let Some(Ok(_)) = told.next().await {}
    Ok(())
}
