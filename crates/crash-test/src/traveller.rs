//! The clients of the crash test. Each makes one journey after another: starts it, sends messages
//! and updates in random order, tells it to arrive, and asks for its report. Every call has an
//! idempotency key, and an unanswered call is retried with it.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use abide::{Client, ClientError};
use fastrand::Rng;
use tokio::{sync::watch, time::timeout};

use crate::{
    check::Finding,
    journey::{Journey, ONCE, Plan, QUEUE, Report},
    stopwatch::Stopwatch,
};

/// How long a client retries a call, and waits for a result: longer than any fault takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// The longest of most sleeps, in milliseconds.
const SHORT_NAP_MS: u64 = 150;

/// What a client got acknowledged.
#[derive(Debug)]
pub(crate) struct Journeyed {
    pub(crate) plan: Plan,
    /// Keys of the acknowledged messages.
    pub(crate) keys: BTreeSet<String>,
    /// Ids of the completed updates.
    pub(crate) updates: BTreeSet<String>,
}

pub(crate) struct Traveller {
    pub(crate) client: Client,
    pub(crate) stopwatch: Arc<Stopwatch>,
    pub(crate) rng: Rng,
    /// One sleep in four may be this long: with several nodes, long enough to fall due while no
    /// node owns the run.
    pub(crate) longest_nap: Duration,
}

impl Traveller {
    /// Makes journeys until told to stop.
    pub(crate) async fn travel(
        mut self,
        number: usize,
        stop: watch::Receiver<bool>,
    ) -> Result<Vec<Journeyed>, Finding> {
        let mut done = Vec::new();
        while !*stop.borrow() {
            let id = format!("journey-{number}-{}", done.len());
            done.push(self.journey(id).await?);
        }
        Ok(done)
    }

    fn plan(&mut self, id: String) -> Plan {
        let rng = &mut self.rng;
        let longest_ms = u64::try_from(self.longest_nap.as_millis()).unwrap_or(u64::MAX);
        let longest_ms =
            if rng.u8(0..4) == 0 { longest_ms.max(SHORT_NAP_MS) } else { SHORT_NAP_MS };
        Plan {
            id,
            nap_ms: rng.u64(1..longest_ms),
            errands: rng.u32(1..4),
            messages: rng.usize(0..4),
        }
    }

    async fn journey(&mut self, id: String) -> Result<Journeyed, Finding> {
        let plan = self.plan(id.clone());
        let mut calls: Vec<Deed> = (0..plan.messages).map(Deed::Message).collect();
        calls.extend((0..self.rng.usize(0..4)).map(|_| Deed::Add(self.rng.u64(1..100))));
        self.rng.shuffle(&mut calls);
        let start = Journey::start(&self.client, id.as_str(), plan.clone()).queue(QUEUE);
        let handle = self.call(&id, "start", start.key(format!("start-{id}"))).await?;
        let mut journeyed = Journeyed { plan, keys: BTreeSet::new(), updates: BTreeSet::new() };
        let (mut sent, mut total) = (Vec::new(), 0);
        for (number, deed) in calls.into_iter().enumerate() {
            match deed {
                Deed::Message(number) => {
                    let text = format!("message {number}");
                    let key = format!("{id}-message-{number}");
                    let signal = handle.message(text.clone()).key(key.as_str());
                    self.call(&id, "signal", signal).await?;
                    journeyed.keys.insert(key);
                    sent.push(text);
                }
                Deed::Add(amount) => {
                    let update = format!("{id}-add-{number}");
                    total += amount;
                    let add = handle.add(amount).id(update.as_str());
                    let sum = self.call(&id, "update", add).await?;
                    Finding::check(&id, "the sum after an update", total, sum)?;
                    journeyed.updates.insert(update);
                }
            }
        }
        let key = format!("{id}-arrive");
        let arrive = handle.arrive().key(key.as_str());
        self.call(&id, "arrive", arrive).await?;
        journeyed.keys.insert(key);
        let report = within_patience(&id, "result", handle.result()).await?;
        check_report(&journeyed.plan, sent, total, &report)?;
        Ok(journeyed)
    }

    /// Makes a call and measures it.
    async fn call<T>(
        &self,
        id: &str,
        name: &str,
        call: impl IntoFuture<Output = Result<T, ClientError>>,
    ) -> Result<T, Finding> {
        within_patience(id, name, self.stopwatch.time(call)).await
    }
}

/// The result, or a finding if it did not come in time.
pub(crate) async fn within_patience<T>(
    id: &str,
    what: &str,
    asked: impl Future<Output = Result<T, ClientError>>,
) -> Result<T, Finding> {
    let place = format!("{id}: {what}");
    match timeout(PATIENCE, asked).await {
        Ok(answer) => answer.map_err(|error| Finding::new(place, error.to_string())),
        Err(_) => Err(Finding::new(place, format!("did not come within {PATIENCE:?}"))),
    }
}

enum Deed {
    /// The message with this number.
    Message(usize),
    /// An update by this amount.
    Add(u64),
}

/// Checks that every acknowledged message arrived once and in order, every update once, and that no
/// sleep was cut short.
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
