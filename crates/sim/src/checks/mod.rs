//! What must be true of every world, one function per invariant.
//!
//! - `ledger`: what is committed, folded as it is written. Everything else is judged against it.
//! - `records`: every record fits what came before it; numbers, times, order, timers, activities.
//! - `writers`: who may write, and that rows and snapshots are written as the log says.
//! - `promises`: what callers were told is in the store, once.
//! - `dispatches`: what workers were given was durable before, and never given twice where it must not.
//! - `replays`: every history replays, whole and at every cut.
//! - `races`: order in history decides between a wait and its deadline.
//! - `signals`: code reads each signal once, and waits for none that is there.
//! - `families`: parents and children, effects on other workflows.
//! - `chains`: runs of one workflow follow each other, one at a time.
//! - `updates`: one outcome for an update, the same for all who ask.
//! - `cleanups`: a cancelled run has cleaned up, once and in order.
//! - `sagas`: what a saga undoes is undone once and in order.
//! - `crowds`: never more than allowed is under way.
//! - `rows`: rows are the projection of the folded runs, no more and no less.
//! - `waits`: after every commit, waits, due times and effects have their rows, and nothing else has.
//! - `settled`: what could go on has gone on.
//! - `reads`: no answer is older than what was committed when it was asked for.

use std::fmt;

use abide_core::ids::RunId;

pub mod chains;
pub mod cleanups;
pub mod crowds;
pub mod dispatches;
pub mod families;
pub mod ledger;
pub mod promises;
pub mod races;
pub mod reads;
pub mod records;
pub mod replays;
pub mod rows;
pub mod sagas;
pub mod settled;
pub mod signals;
pub mod updates;
pub mod waits;
pub mod writers;

/// Something that must never happen, and did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The invariant.
    pub check: Check,
    /// The run concerned, if it is about one.
    pub run: Option<RunId>,
    /// What is wrong.
    pub what: String,
}

impl Violation {
    /// A violation by a run.
    pub fn of(check: Check, run: RunId, what: impl Into<String>) -> Self {
        Self { check, run: Some(run), what: what.into() }
    }

    /// A violation by no run in particular.
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
        /// An invariant.
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
    /// Times of events never run backwards and are never in the future.
    Times = "times are monotonic",
    /// A run starts at the time that its node's clock shows.
    Starts = "runs start at the true time",
    /// Order of events: starts, completions, commands, inputs, close.
    Order = "order of events",
    /// A timer fires once, not early, and not after it was cancelled.
    Timers = "timers",
    /// A timer fires when it is due, unless something is in the way.
    Punctual = "timers are punctual",
    /// An activity has one end.
    Activities = "activities",
    /// Only the owner of a shard writes to it, and every claim raises the epoch.
    Epochs = "epochs",
    /// One commit at a time.
    OneCommit = "one commit at a time",
    /// A snapshot is the fold of the log up to its row.
    Snapshots = "snapshots",
    /// What a caller was told is committed when it is told.
    AckedIsDurable = "acknowledged is durable",
    /// Nothing acknowledged is lost.
    NothingLost = "nothing acknowledged is lost",
    /// No input is applied twice.
    NothingTwice = "nothing is applied twice",
    /// What is shown of a run is what its log says.
    Shown = "shown is folded",
    /// Work is durable before a worker gets it.
    DurableDispatch = "dispatch is durable",
    /// Work is not given again after its end, and at-most-once work never twice.
    NoSecondDispatch = "no second dispatch",
    /// Right code fits every history.
    Replays = "history replays",
    /// Code reads a signal once, and no signal is left behind.
    Signals = "signals are read once",
    /// What comes first in history wins.
    Races = "first in history wins",
    /// A parent knows how its children stand.
    Families = "parent and child agree",
    /// Runs of a workflow are a chain with one current run.
    Chains = "chain of runs",
    /// An update has one outcome.
    Updates = "one outcome of an update",
    /// Cleanup runs once.
    Cleanups = "cleanup runs once",
    /// A saga is undone once and in order.
    Sagas = "sagas are undone once",
    /// Never more than allowed is under way.
    Crowds = "crowds keep their bounds",
    /// An effect takes place once.
    Effects = "effects once",
    /// Rows are the projection of the runs.
    Rows = "rows are the projection",
    /// Every wait has its row, and every row of a wait is of an open one.
    WaitRows = "a row for every wait",
    /// A timer has one due row at most, for its present deadline.
    DueRows = "one due row per timer",
    /// Everything that could go on has gone on.
    Liveness = "liveness",
    /// Recovery changes nothing.
    Recovery = "recovery changes nothing",
    /// No shard is served by two nodes whose leases are good.
    Leases = "one owner with a good lease",
    /// A node without a good lease gives no work out and keeps nobody waiting.
    Withheld = "nothing without a lease",
    /// Whoever calls is answered in the end.
    Answered = "calls are answered",
    /// An answer is not older than what was committed when it was asked for.
    Reads = "no answer is old",
    /// A worker gets no more work than it asked for, and what it asked for is not forgotten.
    Credits = "credit is conserved",
    /// All shards learn of the end of a session.
    Sessions = "lost sessions hold nothing",
    /// A machine did not panic.
    NoPanic = "no panic",
}
