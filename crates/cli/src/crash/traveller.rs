//! The clients of the crash test. Each makes one journey after the other: starts it, sends messages and
//! updates in random order, tells it to arrive, and asks for its report. Every call has a key, and what
//! is not answered is repeated with it.

use std::{collections::BTreeSet, time::Duration};

use abide::{
    Client,
    client::{ClientError, WorkflowHandle},
};
use fastrand::Rng;

use super::{
    check::Finding,
    journey::{Journey, ONCE, Plan, QUEUE, Report},
};

/// What a client was told is done.
#[derive(Debug)]
pub(super) struct Journeyed {
    /// The plan.
    pub(super) plan: Plan,
    /// Keys of the messages that were acknowledged.
    pub(super) keys: BTreeSet<String>,
    /// Ids of the updates that were completed.
    pub(super) updates: BTreeSet<String>,
}

/// Makes journeys until told to stop.
pub(super) async fn travel(
    client: Client,
    mut rng: Rng,
    number: usize,
    stop: tokio::sync::watch::Receiver<bool>,
) -> Result<Vec<Journeyed>, Finding> {
    let mut done = Vec::new();
    while !*stop.borrow() {
        let id = format!("journey-{number}-{}", done.len());
        done.push(journey(&client, &mut rng, id).await?);
    }
    Ok(done)
}

async fn journey(client: &Client, rng: &mut Rng, id: String) -> Result<Journeyed, Finding> {
    let plan = Plan {
        id: id.clone(),
        nap_ms: rng.u64(1..150),
        errands: rng.u32(1..4),
        messages: rng.usize(0..4),
    };
    let in_call = |call: &str| {
        let call = format!("{id}: {call}");
        move |error: ClientError| Finding::new(&call, error.to_string())
    };
    let handle = client
        .start::<Journey>(id.as_str(), plan.clone())
        .queue(QUEUE)
        .key(format!("start-{id}"))
        .await
        .map_err(in_call("start"))?;
    let mut calls: Vec<Deed> = (0..plan.messages).map(Deed::Message).collect();
    calls.extend((0..rng.usize(0..4)).map(Deed::Add));
    rng.shuffle(&mut calls);
    let mut journeyed = Journeyed { plan, keys: BTreeSet::new(), updates: BTreeSet::new() };
    let (mut sent, mut total) = (Vec::new(), 0);
    for call in calls {
        match call {
            Deed::Message(number) => {
                let text = format!("message {number}");
                let key = format!("{id}-message-{number}");
                let signal = handle.signal(Journey::message, text.clone()).key(key.as_str());
                signal.await.map_err(in_call("signal"))?;
                journeyed.keys.insert(key);
                sent.push(text);
            }
            Deed::Add(number) => {
                let (update, amount) = (format!("{id}-add-{number}"), rng.u64(1..100));
                total += amount;
                let sum = add(&handle, &update, amount).await.map_err(in_call("update"))?;
                Finding::check(&id, "the sum after an update", total, sum)?;
                journeyed.updates.insert(update);
            }
        }
    }
    let key = format!("{id}-arrive");
    handle.signal(Journey::arrive, ()).key(key.as_str()).await.map_err(in_call("arrive"))?;
    journeyed.keys.insert(key);
    let report = handle.result().await.map_err(in_call("result"))?;
    check_report(&journeyed.plan, sent, total, &report)?;
    Ok(journeyed)
}

enum Deed {
    Message(usize),
    Add(usize),
}

async fn add(
    handle: &WorkflowHandle<Journey>,
    update: &str,
    amount: u64,
) -> Result<u64, ClientError> {
    handle.update(Journey::add, amount).id(update).await
}

/// Every acknowledged message once and in order, every update once, no sleep cut short.
fn check_report(
    plan: &Plan,
    sent: Vec<String>,
    total: u64,
    report: &Report,
) -> Result<(), Finding> {
    let errands: Vec<_> =
        (0..plan.errands).map(|number| format!("done: {}/{number}", plan.id)).collect();
    Finding::check(&plan.id, "messages", &sent, &report.messages)?;
    Finding::check(&plan.id, "the sum of all updates", total, report.total)?;
    Finding::check(&plan.id, "errands", &errands, &report.errands)?;
    if let Some(once) = &report.once {
        let expected = format!("done: {}/{ONCE}", plan.id);
        Finding::check(&plan.id, "what runs at most once", &expected, once)?;
    }
    Finding::check(&plan.id, "the child", &format!("done: {}/detour", plan.id), &report.child)?;
    if report.slept_ms < plan.nap_ms {
        let what = format!("slept {} ms, planned were {}", report.slept_ms, plan.nap_ms);
        return Err(Finding::new(&plan.id, what));
    }
    Ok(())
}

/// How long a client repeats a call: longer than any restart takes.
pub(super) const PATIENCE: Duration = Duration::from_secs(120);
