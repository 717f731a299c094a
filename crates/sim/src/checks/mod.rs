//! What must hold in every world, one function per invariant.
//!
//! - `ledger`: the committed state, folded as it is written. Everything else is compared with it.
//! - `records`: every record fits what came before it; numbers, times, order, timers, activities.
//! - `writers`: who may write, and that rows and snapshots match the log.
//! - `keys`: a key stands for one request.
//! - `promises`: what callers were told is in the store, once.
//! - `dispatches`: work is durable before workers get it, and never dispatched twice where that is
//!   forbidden.
//! - `replays`: every history replays, whole and at every cut.
//! - `races`: order in history decides between a wait and its deadline.
//! - `signals`: code reads each signal once, and waits for none that has arrived.
//! - `families`: parents and children, effects on other workflows.
//! - `borders`: commands between namespaces.
//! - `chains`: runs of one workflow follow each other, one at a time.
//! - `course`: resets and deletions.
//! - `updates`: an update has one outcome, the same for all callers.
//! - `cleanups`: a cancelled run has cleaned up, once and in order.
//! - `sagas`: the steps of a failed saga are undone once and in order.
//! - `schedules`: each time of a schedule is dealt with once.
//! - `crowds`: never more than allowed are in flight.
//! - `rows`: rows are the projection of the folded runs, no more and no less.
//! - `waits`: after every commit, waits, due times and effects have their rows, and there are no
//!   others.
//! - `settled`: what could continue has continued.
//! - `reads`: no reply is older than what was committed when it was requested.

use std::fmt;

use abide_core::ids::RunId;

pub mod borders;
pub mod chains;
pub mod cleanups;
pub mod course;
pub mod crowds;
pub mod dispatches;
pub mod families;
pub mod keys;
pub mod ledger;
pub mod promises;
pub mod races;
pub mod reads;
pub mod records;
pub mod replays;
pub mod rows;
pub mod sagas;
pub mod schedules;
pub mod searches;
pub mod settled;
pub mod signals;
pub mod updates;
pub mod waits;
pub mod writers;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub check: Check,
    /// The run concerned, if it is about one.
    pub run: Option<RunId>,
    pub what: String,
}

impl Violation {
    /// A violation by a run.
    pub fn of(check: Check, run: RunId, what: impl Into<String>) -> Self {
        Self { check, run: Some(run), what: what.into() }
    }

    /// A violation that concerns no particular run.
    pub fn new(check: Check, what: impl Into<String>) -> Self {
        Self { check, run: None, what: what.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.check, self.what)?;
        match self.run {
            Some(run) => write!(f, " (run {run})"),
            None => Ok(()),
        }
    }
}

/// The outcome of a check.
pub type Checked = Result<(), Violation>;

macro_rules! checks {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Check {
            $($(#[$doc])* $name,)*
        }

        impl fmt::Display for Check {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $(Self::$name => $text,)*
                })
            }
        }
    };
}

checks! {
    /// Events are dense, rows are dense, logs fold.
    LogDense = "log is dense",
    /// Times of events never go backwards and are never in the future.
    Times = "times are monotonic",
    /// A run starts at the time of its node's clock.
    Starts = "runs start at the true time",
    /// Order of events: starts, completions, commands, inputs, close.
    Order = "order of events",
    /// A timer fires once, not early, and not after it was cancelled.
    Timers = "timers",
    /// A timer fires when it is due, unless a fault delays it.
    Punctual = "timers are punctual",
    /// An activity closes once.
    Activities = "activities",
    /// Only the owner of a shard writes to it, and every claim raises the epoch.
    Epochs = "epochs",
    /// One commit at a time.
    OneCommit = "one commit at a time",
    /// A snapshot is the fold of the log up to its row.
    Snapshots = "snapshots",
    /// What a caller was told was committed before.
    AckedIsDurable = "acknowledged is durable",
    /// Nothing acknowledged is lost.
    NothingLost = "nothing acknowledged is lost",
    /// No input is applied twice.
    NothingTwice = "nothing is applied twice",
    /// A key stands for one request.
    Keys = "a key is one request",
    /// Descriptions of a run match its log.
    Shown = "shown is folded",
    /// Work is durable before a worker gets it.
    DurableDispatch = "dispatch is durable",
    /// Work is not dispatched again after it ended, and at-most-once work never twice.
    NoSecondDispatch = "no second dispatch",
    /// Right code fits every history.
    Replays = "history replays",
    /// Code reads a signal once, and no signal is left behind.
    Signals = "signals are read once",
    /// The first event in history wins a race.
    Races = "first in history wins",
    /// A parent knows the state of its children.
    Families = "parent and child agree",
    /// A command reaches another namespace only if that accepts it.
    Borders = "namespaces have borders",
    /// Runs of a workflow are a chain with one current run.
    Chains = "chain of runs",
    /// A reset copies a history as it is, and carries over what it should.
    Resets = "resets copy",
    /// A deleted run was over, and leaves nothing.
    Deletions = "deleted leaves nothing",
    /// An update has one outcome.
    Updates = "one outcome of an update",
    /// Cleanup runs once.
    Cleanups = "cleanup runs once",
    /// A saga is undone once and in order.
    Sagas = "sagas are undone once",
    /// Never more than allowed are in flight.
    Crowds = "crowds keep their bounds",
    /// Each time of a schedule starts one run, or is left out.
    Schedules = "schedules keep their times",
    /// An effect takes place once.
    Effects = "effects once",
    /// Rows are the projection of the runs.
    Rows = "rows are the projection",
    /// A search finds the runs whose log says so, and no others.
    Searches = "searches find what was set",
    /// Every wait has a row, and every row belongs to an open wait.
    WaitRows = "a row for every wait",
    /// A timer has at most one due row, for its current due time.
    DueRows = "one due row per timer",
    /// Everything that could continue has continued.
    Liveness = "liveness",
    /// Recovery changes nothing.
    Recovery = "recovery changes nothing",
    /// No shard is served by two nodes with valid leases.
    Leases = "one owner with a good lease",
    /// A node without a valid lease dispatches no work and leaves no caller waiting.
    Withheld = "nothing without a lease",
    /// Every call is answered eventually.
    Answered = "calls are answered",
    /// A reply is not older than what was committed when it was requested.
    Reads = "no answer is old",
    /// A worker gets no more work than it has credit for, and no credit is lost.
    Credits = "credit is conserved",
    /// A worker that does not read gets little.
    Unread = "little waits unread",
    /// All shards learn of the end of a session.
    Sessions = "lost sessions hold nothing",
    /// No machine panics.
    NoPanic = "no panic",
}
