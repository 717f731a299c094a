//! Runs that count, and readers that ask each node directly what they have counted to. Whatever a node
//! answers must include all that was acknowledged, by whichever node, before it was asked: a node that
//! was frozen or cut off and has lost its runs may refuse, but never tell of the past.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use abide::{
    Client,
    client::{ClientError, WorkflowHandle},
    prelude::*,
};
use fastrand::Rng;
use tokio::{sync::watch, task::JoinSet, time::sleep};

use super::{check::Finding, journey::QUEUE, traveller::within_patience};

/// How many registers are counted up at a time: enough that each node has some.
const REGISTERS: usize = 8;

/// After so many updates a register is done, and another run begins, which keeps histories short.
const HIGHEST: u64 = 30;

/// Between two updates, and between two readings of one node. A node that goes on after it was frozen
/// has a moment only in which it could tell of the past, so there must be many questions waiting.
const UPDATE_PAUSE: Duration = Duration::from_millis(150);
const READ_PAUSE: Duration = Duration::from_millis(40);

/// One reading in so many is a query, which needs a worker; the others are answered by the node alone.
const QUERIES: u8 = 5;

/// A reading that finds no answer for so long is given up. Longer than any node is frozen, so that
/// those which come in meanwhile are there when it goes on.
const READ_PATIENCE: Duration = Duration::from_secs(20);

/// Counts to [`HIGHEST`].
#[derive(Default)]
pub(super) struct Register {
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
    pub(super) fn increase(&mut self) -> u64 {
        self.count += 1;
        self.count
    }

    #[query]
    pub(super) fn count(&self) -> u64 {
        self.count
    }
}

/// What is known of a register: bounds for what may be read.
#[derive(Clone, Default)]
struct Known {
    id: String,
    /// An update to this count was acknowledged.
    acknowledged: u64,
    /// An update to this count may have been made.
    asked: u64,
    /// A history of so many events was seen.
    events: u64,
}

type Shared = Arc<Mutex<Known>>;

/// What the readers saw.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Readings {
    /// How many were answered, all of them well.
    pub(super) answered: usize,
    /// How many were not: the node could not know.
    pub(super) refused: usize,
}

/// Writers and readers at work.
pub(super) struct Registers {
    writers: JoinSet<Result<Vec<String>, Finding>>,
    readers: JoinSet<Result<Readings, Finding>>,
}

impl Registers {
    /// Counts with a client of all nodes, and reads at each node by itself.
    pub(super) fn begin(
        client: &Client,
        nodes: Vec<Client>,
        rng: &mut Rng,
        stop: &watch::Receiver<bool>,
    ) -> Self {
        let known: Vec<Shared> = (0..REGISTERS).map(|_| Shared::default()).collect();
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

    /// Somebody has found something.
    pub(super) fn ended(&mut self) -> Option<Finding> {
        let writer = self.writers.try_join_next().map(|ended| ended.map(|end| end.map(drop)));
        let reader = self.readers.try_join_next().map(|ended| ended.map(|end| end.map(drop)));
        match writer.or(reader)? {
            Ok(Ok(())) => None,
            Ok(Err(finding)) => Some(finding),
            Err(error) => Some(Finding::new("register", error.to_string())),
        }
    }

    /// Waits for all, which were told to stop. Gives the ids of the runs, and what was read.
    pub(super) async fn end(mut self) -> Result<(Vec<String>, Readings), Finding> {
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

/// Makes registers count, one after the other, until told to stop; the last one is filled quickly.
async fn write(
    client: Client,
    number: usize,
    known: Shared,
    stop: watch::Receiver<bool>,
) -> Result<Vec<String>, Finding> {
    let mut ids = Vec::new();
    while !*stop.borrow() {
        let id = format!("register-{number}-{}", ids.len());
        let start = client.start::<Register>(id.as_str(), ()).queue(QUEUE).key(id.as_str());
        let handle = within_patience(&id, "start", start.into_future()).await?;
        *lock(&known) = Known { id: id.clone(), ..Known::default() };
        for count in 1..=HIGHEST {
            lock(&known).asked = count;
            let update = handle.update(Register::increase, ()).id(format!("{id}-{count}"));
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

/// Reads at one node. Readings do not wait for each other: those that a frozen node has not answered
/// are all there when it goes on.
async fn read(
    node: Client,
    known: Vec<Shared>,
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

/// Asks once what a register has counted to, or how long its history is; whether there was an answer.
async fn read_once(node: &Client, register: &Shared, describes: bool) -> Result<bool, Finding> {
    let before = lock(register).clone();
    if before.id.is_empty() {
        return Ok(false);
    }
    let handle: WorkflowHandle<Register> = node.handle(before.id.as_str());
    let answer = if describes {
        handle.describe().await.map(|run| Reading::Events(run.last_event))
    } else {
        handle.query(Register::count, ()).await.map(Reading::Count)
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

/// What a node said of a register.
#[derive(Clone, Copy, Debug)]
enum Reading {
    /// What it has counted to.
    Count(u64),
    /// How long its history is.
    Events(u64),
}

impl Known {
    /// Whether a node may say so that was asked when this was known and answered when that was.
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

    /// Whoever is asked from now on must know as much.
    fn learn(&mut self, id: &str, reading: Reading) {
        if let Reading::Events(events) = reading
            && self.id == id
        {
            self.events = events.max(self.events);
        }
    }
}

/// Nothing that could panic is done under the lock.
fn lock(known: &Shared) -> MutexGuard<'_, Known> {
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
