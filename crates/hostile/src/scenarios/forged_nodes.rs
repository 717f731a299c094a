//! A caller that pretends to be a node. A server without a cluster does not offer the service; a
//! server in a cluster accepts only callers that know the secret.

use abide_core::{
    codec::{self, generated::WorkflowKey},
    effect::{Action, Effect},
    event::Target,
};
use abide_postgres_fixture::{Setup, StartError};
use abide_proto::generated::{
    self as wire, Completion, PeerCall, PeerCompletion, PeerEffect, PeerEffectKey, PeerFrame,
    PeerHello, PeerMessage, ResolveActivity, RunTarget, StartRunRequest, abide_client::AbideClient,
    completion::Completion as Completed, peer_call, peer_message::Message,
    peers_client::PeersClient,
};
use abide_server::{NodeConfig, Secret, StoreAddress};
use bytes::Bytes;
use tokio_stream::iter;
use tonic::{Code, Status};

use crate::{Arena, Finding, Report, Victim};

/// Forged proofs: none, two of the right length, and one that is far too long.
const PROOFS: [&[u8]; 4] = [&[], &[0; 32], &[0xff; 32], &[7; 100_000]];

pub(super) async fn play(arena: &Arena) -> Result<Report, Finding> {
    let alone = arena.start().await?;
    for proof in PROOFS {
        expect(&forge(&alone, proof).await?, Code::Unimplemented)?;
    }
    alone.end().await?;
    let database = match tokio::task::spawn_blocking(|| Setup::default().start()).await? {
        Ok(database) => database,
        Err(StartError::Missing) => {
            return Report::default().skipping("a server of several", StartError::Missing);
        }
        Err(error) => return Err(error.into()),
    };
    let secret = arena.path("node.secret");
    std::fs::write(&secret, Secret::draw().0)?;
    let node = NodeConfig {
        name: Some("victim".into()),
        secret_file: Some(secret),
        ..NodeConfig::default()
    };
    let store = Some(StoreAddress(database.database("hostile")));
    let victim =
        arena.start_with(|config| (config.store, config.node) = (store, Some(node))).await?;
    let mut client = AbideClient::new(victim.channel().await?);
    client.start_run(start()).await?;
    for proof in PROOFS {
        // A caller that has not proven to be a node may send only little.
        let refused =
            if proof.len() > 1_000 { Code::InvalidArgument } else { Code::Unauthenticated };
        expect(&forge(&victim, proof).await?, refused)?;
    }
    let target = Some(RunTarget { workflow: Some(workflow("victim")), run: None });
    let shown = client.describe_run(wire::DescribeRunRequest { target }).await?.into_inner();
    Finding::unless(shown.last_event == 2, || format!("a run was reached: {shown:?}"))?;
    victim.end().await?;
    Ok(Report::default().with("links", 2 * PROOFS.len()))
}

fn expect(refused: &Status, code: Code) -> Result<(), Finding> {
    Finding::unless(refused.code() == code, || format!("a forged link ended with {refused:?}"))
}

/// Opens a link and sends everything in its first frames; returns how the link ends.
async fn forge(victim: &Victim, proof: &'static [u8]) -> Result<Status, Finding> {
    let hello = PeerHello {
        protocol_version: 2,
        address: victim.address().to_string(),
        nonce: Bytes::from_static(&[1; 32]),
    };
    let frame = PeerFrame { messages: vec![effect()], calls: vec![call()], ..PeerFrame::default() };
    let frames = [
        PeerFrame { hello: Some(hello), ..frame.clone() },
        PeerFrame { proof: Bytes::from_static(proof), ..frame.clone() },
        frame,
    ];
    let mut peers = PeersClient::new(victim.channel().await?);
    let mut answers = match peers.link(iter(frames)).await {
        Ok(answers) => answers.into_inner(),
        Err(refused) => return Ok(refused),
    };
    loop {
        match answers.message().await {
            Ok(Some(answer)) => {
                Finding::unless(answer.proof.is_empty() && answer.answers.is_empty(), || {
                    format!("a forged link was answered: {answer:?}")
                })?
            }
            Ok(None) => return Err(Finding::new("a forged link was not refused")),
            Err(refused) => return Ok(refused),
        }
    }
}

fn workflow(id: &str) -> WorkflowKey {
    WorkflowKey { namespace: "default".into(), workflow: id.into() }
}

fn start() -> StartRunRequest {
    let spec = codec::generated::RunSpec {
        workflow_type: "hello".into(),
        queue: "hello".into(),
        ..Default::default()
    };
    let (workflow, spec) = (Some(workflow("victim")), Some(spec));
    StartRunRequest { workflow, spec, ..StartRunRequest::default() }
}

/// A signal for the victim that claims to come from another run.
fn effect() -> PeerMessage {
    let target =
        abide_core::ids::WorkflowKey { namespace: "default".into(), workflow: "victim".into() };
    let shard = target.slot().shard().number().into();
    let effect = Effect {
        target: Target { workflow: target, run: None, child: None },
        action: Action::Signal {
            name: "forged".into(),
            input: Vec::new(),
            header: Default::default(),
        },
        initiated: Some(5),
    };
    let (workflow, run) = (Some(workflow("source")), Bytes::from_static(&[7; 16]));
    let key = Some(PeerEffectKey { shard, workflow, run, number: 1 });
    let effect = codec::encode_effect(&effect);
    PeerMessage { message: Some(Message::Deliver(PeerEffect { key, effect })) }
}

/// The completion of an activity attempt that another worker holds.
fn call() -> PeerCall {
    let completion = Some(Completed::ResolveActivity(ResolveActivity::default()));
    let completion = Some(Completion { number: 1, completion });
    let completion = PeerCompletion { completion, session: "stolen".into() };
    PeerCall { number: 1, call: Some(peer_call::Call::Worker(completion)) }
}
