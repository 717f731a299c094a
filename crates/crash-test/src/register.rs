//! Runs that count, and readers that ask each node directly for the count. Every answer must
//! include all updates that any node acknowledged before the question: a node that was frozen or
//! cut off and has lost its runs may refuse, but must never return a stale count.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use abide::{Client, ClientError, prelude::*};
use fastrand::Rng;
use tokio::{sync::watch, task::JoinSet, time::sleep};

use crate::{check::Finding, journey::QUEUE, traveller::within_patience};

/// Number of concurrent registers: enough that each node has some.
const REGISTERS: usize = 8;

/// After so many updates a register completes, and another run begins, which keeps histories short.
const HIGHEST: u64 = 30;

/// Pause between two updates, and between two reads at one node. A node that resumes after it was
/// frozen has only a moment in which it could return stale data, so many questions must be waiting.
const UPDATE_PAUSE: Duration = Duration::from_millis(150);
const READ_PAUSE: Duration = Duration::from_millis(40);

/// One read in so many is a query, which needs a worker; the node answers the others alone.
const QUERIES: u8 = 5;

/// A read without an answer is given up after this. Longer than any node is frozen, so that reads
/// which arrive meanwhile are waiting when it resumes.
const READ_PATIENCE: Duration = Duration::from_secs(20);

/// A workflow that counts to [`HIGHEST`].
#[derive(Default)]
pub(crate) struct Register {
    count: u64,
}

#[workflow]
impl Register {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<u64> {
        ctx.wait_until(condition!("register.full", |register| register.count >= HIGHEST)).await?;
        Ok(ctx.read(|register| register.count))
    }

    #[update]
    pub(crate) fn increase(&mut self) -> u64 {
        self.count += 1;
        self.count
    }

    #[query]
    pub(crate) fn count(&self) -> u64 {
        self.count
    }
}

/// What is known about a register: bounds on what may be read.
#[derive(Clone, Default)]
struct Known {
    id: String,
    /// The highest count whose update was acknowledged.
    acknowledged: u64,
    /// The highest count whose update was requested.
    asked: u64,
    /// The longest history that was seen, in events.
    events: u64,
}

type SharedKnowledge = Arc<Mutex<Known>>;

/// Results of the readers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Readings {
    /// How many reads were answered, all of them correctly.
    pub(crate) answered: usize,
    /// How many reads were refused, because the node could not know.
    pub(crate) refused: usize,
}

/// Writers and readers at work.
pub(crate) struct Registers {
    writers: JoinSet<Result<Vec<String>, Finding>>,
    readers: JoinSet<Result<Readings, Finding>>,
}

impl Registers {
    /// Counts with a client of all nodes, and reads at each node directly.
    pub(crate) fn begin(
        client: &Client,
        nodes: Vec<Client>,
        rng: &mut Rng,
        stop: &watch::Receiver<bool>,
    ) -> Self {
        let known: Vec<SharedKnowledge> =
            (0..REGISTERS).map(|_| SharedKnowledge::default()).collect();
        let mut writers = JoinSet::new();
        for (number, known) in known.iter().enumerate() {
            writers.spawn(write(client.clone(), number, Arc::clone(known), stop.clone()));
        }
        let mut readers = JoinSet::new();
        for node in nodes {
            readers.spawn(read(node, known.clone(), rng.fork(), stop.clone()));
        }
        Self { writers, readers }
    }

    /// The finding of a reader or writer that has ended early, if any.
    pub(crate) fn ended(&mut self) -> Option<Finding> {
        let writer = self.writers.try_join_next().map(|ended| ended.map(|end| end.map(drop)));
        let reader = self.readers.try_join_next().map(|ended| ended.map(|end| end.map(drop)));
        match writer.or(reader)? {
            Ok(Ok(())) => None,
            Ok(Err(finding)) => Some(finding),
            Err(error) => Some(Finding::new("register", error.to_string())),
        }
    }

    /// Waits for all, after they were told to stop. Returns the ids of the runs, and the results of
    /// the readers.
    pub(crate) async fn end(mut self) -> Result<(Vec<String>, Readings), Finding> {
        let died = |error: tokio::task::JoinError| Finding::new("register", error.to_string());
        let (mut ids, mut readings) = (Vec::new(), Readings::default());
        while let Some(ended) = self.writers.join_next().await {
            ids.extend(ended.map_err(died)??);
        }
        while let Some(ended) = self.readers.join_next().await {
            let Readings { answered, refused } = ended.map_err(died)??;
            readings.answered += answered;
            readings.refused += refused;
        }
        Ok((ids, readings))
    }
}

/// Counts up registers, one after another, until told to stop; the last one is filled quickly.
async fn write(
    client: Client,
    number: usize,
    known: SharedKnowledge,
    stop: watch::Receiver<bool>,
) -> Result<Vec<String>, Finding> {
    let mut ids = Vec::new();
    while !*stop.borrow() {
        let id = format!("register-{number}-{}", ids.len());
        let start = Register::start(&client, id.as_str()).queue(QUEUE).key(id.as_str());
        let handle = within_patience(&id, "start", start.into_future()).await?;
        *lock(&known) = Known { id: id.clone(), ..Known::default() };
        for count in 1..=HIGHEST {
            lock(&known).asked = count;
            let update = handle.increase().id(format!("{id}-{count}"));
            let counted = within_patience(&id, "update", update.into_future()).await?;
            Finding::check(&id, "the count after an update", count, counted)?;
            lock(&known).acknowledged = count;
            if !*stop.borrow() {
                sleep(UPDATE_PAUSE).await;
            }
        }
        let result = within_patience(&id, "result", handle.result()).await?;
        Finding::check(&id, "the result", HIGHEST, result)?;
        ids.push(id);
    }
    Ok(ids)
}

/// Reads at one node. Reads do not wait for each other: those that a frozen node has not answered
/// are all waiting when it resumes.
async fn read(
    node: Client,
    known: Vec<SharedKnowledge>,
    mut rng: Rng,
    stop: watch::Receiver<bool>,
) -> Result<Readings, Finding> {
    let mut reading = JoinSet::new();
    let mut readings = Readings::default();
    let mut count = |ended: Result<Result<bool, Finding>, tokio::task::JoinError>| {
        match ended.map_err(|error| Finding::new("reader", error.to_string()))?? {
            true => readings.answered += 1,
            false => readings.refused += 1,
        }
        Ok::<_, Finding>(())
    };
    while !*stop.borrow() {
        if let Some(register) = rng.choice(&known) {
            let (node, register, describes) =
                (node.clone(), Arc::clone(register), rng.u8(0..QUERIES) > 0);
            let once = async move { read_once(&node, &register, describes).await };
            reading.spawn(async move {
                tokio::time::timeout(READ_PATIENCE, once).await.unwrap_or(Ok(false))
            });
        }
        while let Some(ended) = reading.try_join_next() {
            count(ended)?;
        }
        sleep(READ_PAUSE).await;
    }
    while let Some(ended) = reading.join_next().await {
        count(ended)?;
    }
    Ok(readings)
}

/// Asks once for the count of a register, or for the length of its history; returns whether there
/// was an answer.
async fn read_once(
    node: &Client,
    register: &SharedKnowledge,
    describes: bool,
) -> Result<bool, Finding> {
    let before = lock(register).clone();
    if before.id.is_empty() {
        return Ok(false);
    }
    let handle = node.handle::<Register>(before.id.as_str());
    let answer = if describes {
        handle.describe().await.map(|run| Reading::Events(run.history_events))
    } else {
        handle.count().await.map(Reading::Count)
    };
    match answer {
        Ok(reading) => {
            let mut after = lock(register);
            before.judge(&after, reading)?;
            after.learn(&before.id, reading);
            Ok(true)
        }
        Err(ClientError::Unavailable(_)) => Ok(false),
        Err(error) => Err(Finding::new(&before.id, format!("a node answered: {error}"))),
    }
}

/// A node's answer about a register.
#[derive(Clone, Copy, Debug)]
enum Reading {
    /// The count that it has reached.
    Count(u64),
    /// Number of events in its history.
    Events(u64),
}

impl Known {
    /// Checks an answer against what was known when the question was asked and when the answer
    /// came.
    fn judge(&self, after: &Self, reading: Reading) -> Result<(), Finding> {
        let (found, least, most) = match reading {
            Reading::Count(count) if self.id == after.id => (count, self.acknowledged, after.asked),
            Reading::Count(count) => (count, self.acknowledged, HIGHEST),
            Reading::Events(events) => (events, self.events, u64::MAX),
        };
        if (least..=most).contains(&found) {
            return Ok(());
        }
        let what = format!("a node answered {reading:?}, which can be {least} to {most} only");
        Err(Finding::new(&self.id, what))
    }

    /// From now on, every answer must include this.
    fn learn(&mut self, id: &str, reading: Reading) {
        if let Reading::Events(events) = reading
            && self.id == id
        {
            self.events = events.max(self.events);
        }
    }
}

/// A poisoned lock is fine: nothing that could panic runs under it.
fn lock(known: &SharedKnowledge) -> MutexGuard<'_, Known> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(acknowledged: u64, asked: u64, events: u64) -> Known {
        Known { id: "register".into(), acknowledged, asked, events }
    }

    #[test]
    fn an_answer_must_include_what_was_acknowledged_before_the_question() {
        let (before, after) = (known(3, 4, 20), known(5, 6, 30));
        for count in 3..=6 {
            before.judge(&after, Reading::Count(count)).unwrap();
        }
        before.judge(&after, Reading::Events(20)).unwrap();
        for wrong in [Reading::Count(2), Reading::Count(7), Reading::Events(19)] {
            before.judge(&after, wrong).unwrap_err();
        }
        let next = Known { id: "next register".into(), ..known(0, 1, 2) };
        before.judge(&next, Reading::Count(HIGHEST)).unwrap();
        before.judge(&next, Reading::Count(2)).unwrap_err();
    }

    #[test]
    fn what_one_node_has_shown_others_must_know() {
        let mut known = known(0, 1, 2);
        known.learn("register", Reading::Events(9));
        known.learn("register", Reading::Events(5));
        known.learn("another", Reading::Events(50));
        assert_eq!(known.events, 9);
    }
}
