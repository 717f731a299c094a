//! Runs whose only deadline is moved all the time: by signal handlers, by a branch of their own
//! code and by clients from outside, also while no worker is connected. Whatever is killed
//! meanwhile, the order in history decides which moves came in time, and the deadline fires once,
//! at the time of the last move.

use std::{sync::Arc, time::Duration};

use abide::client::{HistoryEvent, RefusalKind};
use abide::{Client, ClientError, RescheduleError, Timestamp, prelude::*};
use fastrand::Rng;
use serde::{Deserialize, Serialize};
use tokio::{sync::watch, task::JoinSet};

use crate::{
    check::Finding,
    deadlines::{self, Asked, Moves},
    journey::QUEUE,
    stopwatch::Stopwatch,
    traveller::within_patience,
};

/// Number of concurrent auctions.
const AUCTIONS: usize = 8;

/// How far moves reach, in milliseconds: about the interval between kills, so that workers often
/// return after a deadline that was moved before it passed.
const LONGEST_MOVE_MS: u64 = 500;

/// The longest pause between two moves, in milliseconds.
const LONGEST_PAUSE_MS: u64 = 250;

/// Parameters of one auction.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Plan {
    /// When it closes unless it is moved, in milliseconds from its start.
    pub(crate) closes_ms: u64,
    /// When its own code moves the deadline, in milliseconds from its start.
    pub(crate) nudge_at_ms: u64,
    /// How far its own code moves the deadline, in milliseconds.
    pub(crate) nudge_ms: u64,
}

/// The reply to code that moved the deadline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Told {
    /// The deadline is now this.
    Moved(Timestamp),
    /// The deadline has already fired.
    TooLate,
    /// The new deadline is in the past.
    Past,
    /// Refused for a reason that should be impossible.
    Refused(String),
}

impl From<Result<Timestamp, RescheduleError>> for Told {
    fn from(moved: Result<Timestamp, RescheduleError>) -> Self {
        match moved {
            Ok(at) => Self::Moved(at),
            Err(RescheduleError::TooLate) => Self::TooLate,
            Err(RescheduleError::Past { .. }) => Self::Past,
            Err(error) => Self::Refused(error.to_string()),
        }
    }
}

/// What an auction observed.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Report {
    /// The reply to each move by its code, in order.
    pub(crate) told: Vec<Told>,
    /// When it closed, by its own clock.
    pub(crate) closed_at: Timestamp,
}

/// Closes at a deadline that may be moved until then, and completes when it is told to.
#[derive(Default)]
pub(crate) struct Auction {
    closing: Deadline,
    told: Vec<Told>,
}

#[workflow]
impl Auction {
    #[run]
    async fn run(ctx: &Context<Self>, plan: Plan) -> abide::Result<Report> {
        let closing = ctx.sleep(Duration::from_millis(plan.closes_ms)).start();
        let deadline = closing.deadline();
        ctx.write(|auction| auction.closing = deadline.clone());
        let branch = ctx.clone();
        let nudged = ctx.spawn(async move {
            branch.sleep(Duration::from_millis(plan.nudge_at_ms)).await?;
            let moved = deadline.extend(Duration::from_millis(plan.nudge_ms));
            branch.write(|auction| auction.told.push(moved.into()));
            Ok::<_, Error>(())
        });
        closing.await?;
        let closed_at = ctx.now();
        nudged.await?;
        ctx.receive(Self::SETTLE).await?;
        Ok(Report { told: ctx.read(|auction| auction.told.clone()), closed_at })
    }

    #[signal]
    pub(crate) fn extend(&mut self, more_ms: u64) {
        let moved = self.closing.extend(Duration::from_millis(more_ms));
        self.told.push(moved.into());
    }

    #[signal]
    pub(crate) fn close_at(&mut self, at: Timestamp) {
        let moved = self.closing.reset(at).map(|()| at);
        self.told.push(moved.into());
    }

    #[signal]
    pub(crate) fn settle();
}

/// Outcome of all auctions.
#[derive(Debug, Default)]
pub(crate) struct Auctioned {
    /// Workflow ids of the runs.
    pub(crate) ids: Vec<String>,
    /// What happened to their deadlines.
    pub(crate) moves: Moves,
}

/// The tasks of all auctions in progress.
pub(crate) struct Auctions(JoinSet<Result<Auctioned, Finding>>);

impl Auctions {
    /// Starts the auctions. Now and then one is planned to last as long as `longest`.
    pub(crate) fn begin(
        client: &Client,
        stopwatch: &Arc<Stopwatch>,
        longest: Duration,
        rng: &mut Rng,
        stop: &watch::Receiver<bool>,
    ) -> Self {
        let mut auctions = JoinSet::new();
        for number in 0..AUCTIONS {
            let (client, stopwatch) = (client.clone(), Arc::clone(stopwatch));
            let auctioneer = Auctioneer { client, stopwatch, longest, rng: rng.fork() };
            auctions.spawn(auctioneer.hold(number, stop.clone()));
        }
        Self(auctions)
    }

    /// The finding of an auction that has ended early, if any.
    pub(crate) fn ended(&mut self) -> Option<Finding> {
        match self.0.try_join_next()? {
            Ok(Ok(_)) => None,
            Ok(Err(finding)) => Some(finding),
            Err(error) => Some(Finding::new("auction", error.to_string())),
        }
    }

    /// Waits for all auctions, after they were told to stop.
    pub(crate) async fn end(mut self) -> Result<Auctioned, Finding> {
        let mut all = Auctioned::default();
        while let Some(ended) = self.0.join_next().await {
            let ended = ended.map_err(|error| Finding::new("auction", error.to_string()))??;
            all.ids.extend(ended.ids);
            all.moves.add(&ended.moves);
        }
        Ok(all)
    }
}

/// A client that starts auctions and moves their deadlines.
struct Auctioneer {
    client: Client,
    stopwatch: Arc<Stopwatch>,
    longest: Duration,
    rng: Rng,
}

impl Auctioneer {
    /// Holds one auction after another until told to stop.
    async fn hold(
        mut self,
        number: usize,
        stop: watch::Receiver<bool>,
    ) -> Result<Auctioned, Finding> {
        let mut done = Auctioned::default();
        while !*stop.borrow() {
            let id = format!("auction-{number}-{}", done.ids.len());
            done.moves.add(&self.auction(&id).await?);
            done.ids.push(id);
        }
        Ok(done)
    }

    fn plan(&mut self) -> Plan {
        let longest_ms = u64::try_from(self.longest.as_millis()).unwrap_or(u64::MAX);
        let long = self.rng.u8(0..4) == 0;
        let longest_ms = if long { longest_ms.max(LONGEST_MOVE_MS) } else { LONGEST_MOVE_MS };
        Plan {
            closes_ms: self.rng.u64(1..longest_ms),
            nudge_at_ms: self.rng.u64(1..2 * LONGEST_MOVE_MS),
            nudge_ms: self.rng.u64(1..LONGEST_MOVE_MS),
        }
    }

    async fn auction(&mut self, id: &str) -> Result<Moves, Finding> {
        let plan = self.plan();
        let start = Auction::start(&self.client, id, plan).queue(QUEUE).key(id);
        let handle = self.call(id, "start", start.into_future()).await?;
        let mut asked = Vec::new();
        for number in 0..self.rng.usize(2..10) {
            let key = format!("{id}-move-{number}");
            asked.extend(self.ask(&handle, id, &key).await?.map(|what| (key, what)));
            let pause_ms = self.rng.u64(0..LONGEST_PAUSE_MS);
            tokio::time::sleep(Duration::from_millis(pause_ms)).await;
        }
        let settle = handle.settle().key(format!("{id}-settle"));
        self.call(id, "settle", settle.into_future()).await?;
        let report = within_patience(id, "result", handle.result()).await?;
        let history = within_patience(id, "history", handle.history().collect()).await?;
        deadlines::check_auction(id, plan, &asked, &report, &HistoryEvent::all_recorded(history))
    }

    /// Moves the deadline in one of the ways. Returns what was acknowledged; `None` if a move from
    /// outside came too late or too early.
    async fn ask(
        &mut self,
        handle: &AuctionHandle,
        id: &str,
        key: &str,
    ) -> Result<Option<Asked>, Finding> {
        let more_ms = self.rng.u64(1..LONGEST_MOVE_MS);
        let at = Timestamp::now().saturating_add(Duration::from_millis(more_ms));
        match self.rng.u8(0..4) {
            0 => {
                let moved = handle.reschedule_timer(deadlines::CLOSING, at).key(key);
                let moved = async { in_time(moved.await.map(drop)) };
                let moved = self.call(id, "move", moved).await?;
                Ok(moved.then_some(Asked::FromOutside(at)))
            }
            1 => {
                let signal = handle.close_at(at).key(key);
                self.call(id, "close_at", signal.into_future()).await?;
                Ok(Some(Asked::Reset(at)))
            }
            _ => {
                let signal = handle.extend(more_ms).key(key);
                self.call(id, "extend", signal.into_future()).await?;
                Ok(Some(Asked::Extend(Duration::from_millis(more_ms))))
            }
        }
    }

    /// Makes a call and measures it.
    async fn call<T>(
        &self,
        id: &str,
        name: &str,
        call: impl Future<Output = Result<T, ClientError>>,
    ) -> Result<T, Finding> {
        within_patience(id, name, self.stopwatch.time(call)).await
    }
}

/// Whether a move from outside took effect. It may come before the first task, after the deadline
/// has fired, or name a time that has passed.
fn in_time(moved: Result<(), ClientError>) -> Result<bool, ClientError> {
    match moved {
        Ok(()) => Ok(true),
        Err(ClientError::Refused(refusal))
            if matches!(
                refusal.kind(),
                RefusalKind::UnknownTimer | RefusalKind::TimerFired | RefusalKind::PastDeadline
            ) =>
        {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}
