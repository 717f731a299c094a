//! Deliberate bugs. A saboteur sits between the machines and the world and alters what passes; the
//! machines themselves are unaware of it. Each bug is one that an implementation could have, and
//! the checks must find it within a stated number of seeds.
//!
//! - `batches`: what is written.
//! - `keys`: how requests with a known key are taken.
//! - `machines`: inputs and outputs of the node machines.
//! - `messages`: inputs and outputs of the shard machines.
//! - `nodes`: how nodes share the shards.
//! - `programs`: what the code of workflows does.
//! - `reads`: what machines read.
//! - `waits`: what is written and answered about waits and their deadlines.

use std::collections::BTreeMap;

use abide_core::{
    ids::{RunId, ShardId},
    time::Timestamp,
};
use abide_shard::message::Output;
use bytes::Bytes;

use crate::{checks::borders::Accepted, rng::Rng};

mod batches;
mod keys;
mod machines;
mod messages;
mod nodes;
mod programs;
mod reads;
mod waits;

macro_rules! bugs {
    ($($bug:ident $name:literal $within:literal $what:literal,)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Bug {
            $(#[doc = $what] $bug,)*
        }

        impl Bug {
            pub const ALL: &'static [Self] = &[$(Self::$bug,)*];

            /// Name on the command line.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$bug => $name,)*
                }
            }

            pub const fn what(self) -> &'static str {
                match self {
                    $(Self::$bug => $what,)*
                }
            }

            /// Number of seeds within which it must be found.
            pub const fn found_within(self) -> u64 {
                match self {
                    $(Self::$bug => $within,)*
                }
            }
        }
    };
}

bugs! {
    EarlyAcknowledgement "early-acknowledgement" 20
        "A commit counts as done before the store has written it.",
    EarlyDispatch "early-dispatch" 20
        "An activity is sent to its worker before its start is committed.",
    EarlyAnswer "early-answer" 50
        "An effect is acknowledged to its source before it took place.",
    LostCommit "lost-commit" 20
        "A commit that was never written counts as done.",
    UnknownTakenAsDone "unknown-taken-as-done" 200
        "A commit of unknown outcome counts as done.",
    TornBatch "torn-batch" 200
        "A crash writes one half of a batch.",
    StaleWriter "stale-writer" 500
        "The store accepts writes of a former owner.",
    LostDueRow "lost-due-row" 50
        "An entry of the due index is not written.",
    LostWaitRow "lost-wait-row" 50
        "A wait is not written.",
    WaitRowNotMoved "wait-row-not-moved" 50
        "The row of a wait keeps its old deadline when that is rescheduled.",
    LostTaskRow "lost-task-row" 50
        "A task is not written.",
    LostOutboxRow "lost-outbox-row" 100
        "An effect on another workflow is not written.",
    LostInboxRow "lost-inbox-row" 1000
        "The answer of an effect is not written.",
    LostRunRow "lost-run-row" 50
        "A change of a run's row is not written.",
    LostAttribute "lost-attribute" 200
        "A value of a search attribute is not indexed.",
    KeptAttribute "kept-attribute" 200
        "A value of a search attribute that has changed stays in the index.",
    KeptDueRow "kept-due-row" 50
        "An entry of the due index is not removed.",
    OldDueRow "old-due-row" 50
        "A timer that is rescheduled keeps the due row of its old deadline.",
    KeptWaitRow "kept-wait-row" 50
        "A wait is not removed.",
    KeptTaskRow "kept-task-row" 50
        "A task is not removed.",
    KeptOutboxRow "kept-outbox-row" 100
        "A settled effect is not removed.",
    OpenAfterClose "open-after-close" 50
        "The row of a closed run still says that it is running.",
    StartKeyMissing "start-key-missing" 50
        "The row of a run lacks the key of its start.",
    LostNotes "lost-notes" 50
        "The notes of a log row are not written.",
    LostBufferedInput "lost-buffered-input" 50
        "An input that came while a task was started is not written.",
    SwappedRows "swapped-rows" 100
        "Two log rows of one batch have each other's events.",
    EventInFuture "event-in-future" 20
        "An event is written with a time in the future.",
    SnapshotNumber "snapshot-number" 20
        "A snapshot claims to hold one log row more than it does.",
    OutdatedSnapshot "outdated-snapshot" 50
        "A snapshot has the state of the one before it.",
    ClockAhead "clock-ahead" 50
        "A machine is woken with a clock that is ahead, so timers fire early.",
    ClockNeverBack "clock-never-back" 50
        "A machine holds on to the latest time that a clock has shown.",
    LaterClock "later-clock" 500
        "A signal is handled at a later time than that of its event, because another clock saw it arrive.",
    OldDeadline "old-deadline" 100
        "A timer that was postponed fires at its original deadline.",
    Oversleeping "oversleeping" 100
        "A machine is woken long after it asked to be.",
    StaleLogRead "stale-log-read" 100
        "A read of a log misses its last row.",
    BlindInbox "blind-inbox" 1000
        "A repeated effect does not find the answer of the first.",
    BlindOutbox "blind-outbox" 500
        "Effects in flight are forgotten when a shard is opened.",
    BlindTasks "blind-tasks" 500
        "Tasks that waited are forgotten when a shard is opened.",
    BlindTimers "blind-timers" 100
        "A read of the due index misses its last entry.",
    WorkflowNotFound "workflow-not-found" 50
        "A search for the current run of a workflow finds none.",
    LostMatch "lost-match" 50
        "A match of work and worker gets lost on its way to the shard.",
    LostChildClose "lost-child-close" 200
        "The close of a child is acknowledged but not recorded.",
    WrongChildOutcome "wrong-child-outcome" 100
        "A parent gets another outcome of its child than the recorded one.",
    IgnoredParentClose "ignored-parent-close" 500
        "What a closed parent does to its children is acknowledged but not done.",
    BorderOpen "border-open" 200
        "A namespace accepts commands of another, although it is not configured to.",
    BorderShut "border-shut" 200
        "A namespace refuses commands of another, although it is configured to accept them.",
    LostSuccessor "lost-successor" 100
        "A run closes, and the run that follows it is not written.",
    KeptOpen "kept-open" 200
        "A start that ends the open run of the workflow leaves it open.",
    KeyDropped "key-dropped" 200
        "A repeated request has lost its key.",
    ReusedSignalKey "reused-signal-key" 500
        "A signal with the key of another is acknowledged as that one.",
    ReusedUpdateId "reused-update-id" 500
        "An update with the id of another is acknowledged as that one.",
    ReusedStartKey "reused-start-key" 500
        "A start with the key of another is acknowledged as that one.",
    RepeatRefused "repeat-refused" 200
        "A repeated request is refused as one that reuses its key.",
    MoveWithoutKey "move-without-key" 500
        "A repeated reschedule of a timer is not recognised and applied again.",
    TamperedToken "tampered-token" 2000
        "The result of an old start of an activity is taken for that of the current one.",
    DuplicateDispatch "duplicate-dispatch" 20
        "An activity is sent to its worker twice.",
    WrongLastEvent "wrong-last-event" 20
        "A worker replays one event less than there is.",
    SwappedCommands "swapped-commands" 20
        "A worker sends two commands in another order than its code asked for them.",
    DeadlineIgnored "deadline-ignored" 50
        "A condition counts as satisfied although its deadline came first.",
    DeadlineTooEager "deadline-too-eager" 50
        "A condition counts as timed out although it held first.",
    TimerLeftBehind "timer-left-behind" 50
        "A condition is satisfied and its timer is left to fire.",
    LocalValueChanged "local-value-changed" 100
        "The result of a local activity is recorded as another than its code got.",
    DetachmentLost "detachment-lost" 200
        "That an attempt is completed from outside is not written.",
    AnsweredTwice "answered-twice" 200
        "Two reports for one attempt are both acknowledged as accepted.",
    LostMarker "lost-marker" 50
        "A value that code cannot compute again is not recorded.",
    SignalLeftBehind "signal-left-behind" 200
        "A run that continues as new does not take its unread signals along.",
    UpdateLeftBehind "update-left-behind" 500
        "A run that continues as new does not take its unfinished updates along.",
    UnfinishedUpdate "unfinished-update" 500
        "A run that waits for its handlers is completed without the outcome of an update.",
    CleanupCutShort "cleanup-cut-short" 200
        "A cancelled run ends before the last step of its cleanup.",
    CleanupTwice "cleanup-twice" 200
        "A cancelled run cleans up twice.",
    Unshielded "unshielded" 200
        "A cancel request reaches what is shielded from it.",
    StepNotUndone "step-not-undone" 200
        "A saga that fails does not undo its last step.",
    UndoneAtOnce "undone-at-once" 200
        "A saga is undone all at once, not the last step first.",
    BoundIgnored "bound-ignored" 200
        "One more than allowed is in flight.",
    FiringBeatsMove "firing-beats-move" 200
        "A deadline fires although code has rescheduled it.",
    WrongOutcome "wrong-outcome" 100
        "The caller of an update gets another outcome than the recorded one.",
    RejectionAsAcceptance "rejection-as-acceptance" 100
        "A rejected update is acknowledged to its caller as accepted.",
    BlockedUntold "blocked-untold" 500
        "The caller of an update is not told that the run is blocked.",
    AnswerWithoutLease "answer-without-lease" 1000
        "A node answers without checking its lease.",
    UnlistedShards "unlisted-shards" 200
        "A node opens shards without listing them in its row first.",
    EarlyTakeover "early-takeover" 100
        "A node takes shards over before their owner was silent for a whole lease.",
    ServingWithoutRow "serving-without-row" 500
        "A node goes on serving after another one has taken its row.",
    WorkWithoutLease "work-without-lease" 1000
        "A node dispatches work without checking its lease.",
    LapseIgnored "lapse-ignored" 200
        "A shard goes on as before when the lease of its node is over.",
    ReleasedEarly "released-early" 500
        "A shard that is handed over counts as released before its commit is answered.",
    UntoldLinkEnd "untold-link-end" 100
        "A node does not notice that the link to another one is gone.",
    UntoldLink "untold-link" 1000
        "A node does not notice that another one begins a new link to it.",
    OldLinkEnd "old-link-end" 500
        "The late end of a link that was replaced counts as that of the new one.",
    UntoldStreamEnd "untold-stream-end" 200
        "A node does not notice that a worker's stream has ended.",
    UntoldShards "untold-shards" 200
        "The shards of a node do not learn that a worker's session has ended.",
    SignalsNotKept "signals-not-kept" 200
        "A reset does not send the later signals to the new run.",
    LostAdoption "lost-adoption" 2000
        "A child does not learn that its parent was reset.",
    LostScheduledStart "lost-scheduled-start" 50
        "The start of a run by a schedule is acknowledged, and the run never starts.",
    LostScheduledEnd "lost-scheduled-end" 50
        "A schedule does not learn that a run which it started has ended.",
    KeptRun "kept-run" 100
        "A deletion is acknowledged, and the run is still there.",
    LostCredit "lost-credit" 50
        "A worker whose match came to nothing does not get its credit back.",
    LostUndelivered "lost-undelivered" 500
        "A match with work of a shard that has ended is forgotten.",
    LostDecline "lost-decline" 200
        "A node does not learn that no worker takes the work that it has passed on.",
    LostForeignMatch "lost-foreign-match" 50
        "A node does not learn that a worker of another one takes its work.",
    LostForeignWork "lost-foreign-work" 50
        "Work gets lost on its way to the node of its worker, and the link stays.",
    UntoldSpare "untold-spare" 50
        "Other nodes do not learn that workers have credit to lend.",
    OvertakenSpare "overtaken-spare" 50
        "Other nodes get stale information about credit last.",
    MatchedTwice "matched-twice" 50
        "A shard is notified twice that a worker takes its work.",
    LostRefill "lost-refill" 500
        "Shards do not learn that a queue has room again.",
    HoldIgnored "hold-ignored" 200
        "A worker that does not read is given more and more.",
    LostResume "lost-resume" 500
        "A worker that reads again is given nothing more.",
    OldStream "old-stream" 50
        "Work is sent on a stream that another one has replaced.",
    CallNotWoken "call-not-woken" 50
        "A call that waits for its shard is not tried when the shard is there.",
    LostLoan "lost-loan" 500
        "A worker whose match came to nothing at another node does not get its credit back.",
    ForgottenCommit "forgotten-commit" 500
        "A shard that is handed over lets answers out without waiting for its commit.",
    WrongOwner "wrong-owner" 1000
        "A call reaches a node that has handed the shard over, and is answered there.",
    UntoldSessionEnd "untold-session-end" 1000
        "Other nodes do not learn that a worker's session has ended.",
}

/// Injects one bug into a world, at random times of its own.
#[derive(Debug)]
pub struct Saboteur {
    bug: Option<Bug>,
    rng: Rng,
    /// Outputs that leave a machine too early.
    early: Vec<Output>,
    /// Latest time that a clock has shown.
    latest: Timestamp,
    /// Commits that were acknowledged before they were written, by machine.
    answered: BTreeMap<u32, u32>,
    snapshots: BTreeMap<RunId, Bytes>,
    deadlines: waits::Deadlines,
    /// Machines of shards that were handed over.
    retired: BTreeMap<(usize, ShardId), u32>,
    remembered: machines::Remembered,
    firsts: keys::Firsts,
}

impl Saboteur {
    pub const fn new(bug: Option<Bug>, seed: u64) -> Self {
        Self {
            bug,
            rng: Rng::new(seed ^ 0x5ab0_7a6e),
            early: Vec::new(),
            latest: Timestamp::EPOCH,
            answered: BTreeMap::new(),
            snapshots: BTreeMap::new(),
            deadlines: waits::Deadlines::new(),
            retired: BTreeMap::new(),
            remembered: machines::Remembered::new(),
            firsts: keys::Firsts::new(),
        }
    }

    /// Whether this bug is active and strikes now.
    fn strikes(&mut self, bug: Bug) -> bool {
        self.bug == Some(bug) && self.rng.chance(150)
    }

    /// Which commands between namespaces a shard accepts.
    pub fn borders(&self, accepted: &Accepted) -> Accepted {
        match self.bug {
            Some(Bug::BorderOpen) => Accepted::all(),
            Some(Bug::BorderShut) => Accepted::default(),
            _ => accepted.clone(),
        }
    }

    /// Outputs that leave a machine too early.
    pub fn take_early(&mut self) -> Vec<Output> {
        std::mem::take(&mut self.early)
    }

    /// Whether a machine is woken too late.
    pub fn oversleeps(&mut self) -> bool {
        self.strikes(Bug::Oversleeping)
    }

    /// What a machine's clock shows when it is woken.
    pub fn clock(&mut self, clock: Timestamp, tick: bool) -> Timestamp {
        if tick && self.strikes(Bug::ClockAhead) {
            return clock.saturating_add(std::time::Duration::from_secs(2));
        }
        self.latest = self.latest.max(clock);
        if self.bug == Some(Bug::ClockNeverBack) { self.latest } else { clock }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn bugs_are_told_apart_and_bounded() {
        let names: BTreeSet<_> = Bug::ALL.iter().map(|bug| bug.name()).collect();
        assert_eq!(names.len(), Bug::ALL.len());
        assert!(names.len() >= 25);
        assert!(Bug::ALL.iter().all(|bug| bug.found_within() <= 10_000));
    }
}
