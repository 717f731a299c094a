//! What workflow code asks for. Each command but one becomes exactly one event, in order, right after
//! the TaskCompleted of its task; that is what replay matches. Rejecting an update leaves nothing.

use crate::{
    event::{
        ActivitySpec, CancelMode, ChildSpec, Marker, Outcome, RunSpec, Target, TimerSpec,
        UpdateRequest, WaitDetails, WaitSpec,
    },
    failure::Failure,
    ids::{ActivityId, EventNumber, TimerId, UpdateId, WaitId},
    payload::{Extension, PayloadMap, Payloads},
    time::Timestamp,
};

/// One request of workflow code.
#[derive(Clone, Debug, PartialEq)]
pub struct Command {
    /// What is asked for.
    pub ask: Ask,
    /// What a gateway keeps with the event that it becomes.
    pub extension: Extension,
}

impl From<Ask> for Command {
    fn from(ask: Ask) -> Self {
        Self { ask, extension: Extension::new() }
    }
}

/// What workflow code can ask for.
#[derive(Clone, Debug, PartialEq)]
pub enum Ask {
    /// Run an activity: ActivityScheduled.
    ScheduleActivity(ActivitySpec),
    /// Cancel an activity: ActivityCancelRequested, and ActivityCancelled if no attempt runs.
    CancelActivity(ActivityId),
    /// Wake at a time: TimerStarted.
    StartTimer(TimerSpec),
    /// Move a due time: TimerRescheduled.
    RescheduleTimer {
        /// The timer.
        timer: TimerId,
        /// The new due time.
        fire_at: Timestamp,
    },
    /// Forget a timer: TimerCancelled.
    CancelTimer(TimerId),
    /// Wait for a condition: WaitOpened. With a deadline, its StartTimer follows at once.
    OpenWait(WaitSpec),
    /// Change what people are shown about a wait: WaitDescribed.
    DescribeWait {
        /// The wait.
        wait: WaitId,
        /// What is shown from now on.
        details: WaitDetails,
    },
    /// The condition holds: WaitSatisfied. The CancelTimer of an unfired deadline comes before it.
    SatisfyWait(WaitId),
    /// The deadline fired first: WaitTimedOut.
    TimeOutWait(WaitId),
    /// Stop waiting: WaitCancelled. The CancelTimer of an unfired deadline comes before it.
    CancelWait(WaitId),
    /// Start a child: ChildInitiated.
    StartChild(Box<ChildSpec>),
    /// Signal another workflow: ExternalSignalInitiated.
    SignalExternal {
        /// Whom.
        target: Target,
        /// The signal's name.
        name: String,
        /// Arguments.
        input: Payloads,
        /// Context that is passed along.
        header: PayloadMap,
    },
    /// Make another workflow end: ExternalCancelInitiated.
    CancelExternal {
        /// Whom.
        target: Target,
        /// How.
        mode: CancelMode,
        /// Why.
        reason: String,
    },
    /// Record a value: MarkerRecorded.
    RecordMarker(Marker),
    /// Change search attributes: SearchAttributesUpserted.
    UpsertSearchAttributes(PayloadMap),
    /// Change the memo: MemoUpserted.
    UpsertMemo(PayloadMap),
    /// Accept an update: UpdateAccepted.
    AcceptUpdate {
        /// The update.
        update: UpdateId,
        /// The request, so that it can be accepted although the server has forgotten it.
        request: UpdateRequest,
    },
    /// Refuse an update: no event.
    RejectUpdate {
        /// The update.
        update: UpdateId,
        /// Why.
        failure: Failure,
    },
    /// Give an accepted update its outcome: UpdateCompleted.
    CompleteUpdate {
        /// The update.
        update: UpdateId,
        /// What came of it.
        outcome: Outcome,
    },
    /// End with a result: RunCompleted. Must be last, as every close.
    CompleteRun(Payloads),
    /// End with a failure: RunFailed.
    FailRun(Failure),
    /// End by cancelling: RunCancelled.
    CancelRun(Payloads),
    /// End and go on in a new run: RunContinuedAsNew.
    ContinueAsNew(Box<ContinueAsNew>),
}

/// How a run goes on in a new one.
#[derive(Clone, Debug, PartialEq)]
pub struct ContinueAsNew {
    /// What the new run runs.
    pub spec: RunSpec,
    /// Signals that code has not read, by number of their events.
    pub signals: Vec<EventNumber>,
    /// Accepted updates without an outcome.
    pub updates: Vec<UpdateId>,
}

impl Ask {
    /// Ends the run.
    pub const fn closes(&self) -> bool {
        matches!(
            self,
            Self::CompleteRun(_) | Self::FailRun(_) | Self::CancelRun(_) | Self::ContinueAsNew(_)
        )
    }

    /// The name of the event that the command becomes; none for a rejected update.
    pub const fn event_name(&self) -> Option<&'static str> {
        Some(match self {
            Self::ScheduleActivity(_) => "ActivityScheduled",
            Self::CancelActivity(_) => "ActivityCancelRequested",
            Self::StartTimer(_) => "TimerStarted",
            Self::RescheduleTimer { .. } => "TimerRescheduled",
            Self::CancelTimer(_) => "TimerCancelled",
            Self::OpenWait(_) => "WaitOpened",
            Self::DescribeWait { .. } => "WaitDescribed",
            Self::SatisfyWait(_) => "WaitSatisfied",
            Self::TimeOutWait(_) => "WaitTimedOut",
            Self::CancelWait(_) => "WaitCancelled",
            Self::StartChild(_) => "ChildInitiated",
            Self::SignalExternal { .. } => "ExternalSignalInitiated",
            Self::CancelExternal { .. } => "ExternalCancelInitiated",
            Self::RecordMarker(_) => "MarkerRecorded",
            Self::UpsertSearchAttributes(_) => "SearchAttributesUpserted",
            Self::UpsertMemo(_) => "MemoUpserted",
            Self::AcceptUpdate { .. } => "UpdateAccepted",
            Self::RejectUpdate { .. } => return None,
            Self::CompleteUpdate { .. } => "UpdateCompleted",
            Self::CompleteRun(_) => "RunCompleted",
            Self::FailRun(_) => "RunFailed",
            Self::CancelRun(_) => "RunCancelled",
            Self::ContinueAsNew(_) => "RunContinuedAsNew",
        })
    }
}
