//! Commands of workflow code. Each command but one becomes exactly one event, in order, right after
//! the TaskCompleted of its task; replay matches these events. Rejecting an update writes no event.

use std::panic::Location;

use crate::{
    event::{
        ActivitySpec, CancelMode, ChildSpec, Marker, RunSpec, Target, TimerSpec, UpdateOutcome,
        UpdateRequest, WaitDetails, WaitSpec,
    },
    failure::Failure,
    ids::{ActivityId, EventNumber, TimerId, UpdateId, WaitId},
    payload::{Extension, PayloadMap, Payloads},
    time::Timestamp,
};

/// A command of workflow code.
#[derive(Clone, Debug, PartialEq)]
pub struct Command {
    pub ask: Ask,
    /// Data that a gateway stores with the resulting event.
    pub extension: Extension,
    pub place: SourcePlace,
}

impl From<Ask> for Command {
    fn from(ask: Ask) -> Self {
        Self { ask, extension: Extension::new(), place: SourcePlace::default() }
    }
}

/// Where code issued a command, for messages to people. It identifies nothing and is never written:
/// all places are equal.
#[derive(Clone, Copy, Debug, Default)]
pub struct SourcePlace(pub Option<&'static Location<'static>>);

impl PartialEq for SourcePlace {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for SourcePlace {}

/// What a command requests.
#[derive(Clone, Debug, PartialEq)]
pub enum Ask {
    /// Runs an activity: ActivityScheduled.
    ScheduleActivity(ActivitySpec),
    /// Cancels an activity: ActivityCancelRequested, and ActivityCancelled if no attempt is
    /// running.
    CancelActivity(ActivityId),
    /// Starts a timer: TimerStarted.
    StartTimer(TimerSpec),
    /// Changes a due time: TimerRescheduled.
    RescheduleTimer { timer: TimerId, fire_at: Timestamp },
    /// Cancels a timer: TimerCancelled.
    CancelTimer(TimerId),
    /// Waits for a condition: WaitOpened. With a deadline, its StartTimer follows immediately.
    OpenWait(WaitSpec),
    /// Changes what people see about a wait: WaitDescribed.
    DescribeWait { wait: WaitId, details: WaitDetails },
    /// Ends a wait whose condition holds: WaitSatisfied. Preceded by the CancelTimer of an unfired
    /// deadline.
    SatisfyWait(WaitId),
    /// Ends a wait whose deadline fired first: WaitTimedOut.
    TimeOutWait(WaitId),
    /// Stops waiting: WaitCancelled. Preceded by the CancelTimer of an unfired deadline.
    CancelWait(WaitId),
    /// Starts a child: ChildInitiated.
    StartChild(Box<ChildSpec>),
    /// Signals another workflow: ExternalSignalInitiated.
    SignalExternal {
        target: Target,
        name: String,
        input: Payloads,
        /// Context propagated to the receiver.
        header: PayloadMap,
    },
    /// Cancels or terminates another workflow: ExternalCancelInitiated.
    CancelExternal { target: Target, mode: CancelMode, reason: String },
    /// Records a value: MarkerRecorded.
    RecordMarker(Marker),
    /// Changes search attributes: SearchAttributesUpserted.
    UpsertSearchAttributes(PayloadMap),
    /// Changes the memo: MemoUpserted.
    UpsertMemo(PayloadMap),
    /// Accepts an update: UpdateAccepted.
    AcceptUpdate {
        update: UpdateId,
        /// The request, so that the update can be accepted although the server has lost it.
        request: UpdateRequest,
    },
    /// Rejects an update: no event.
    RejectUpdate { update: UpdateId, failure: Failure },
    /// Completes an accepted update: UpdateCompleted.
    CompleteUpdate { update: UpdateId, outcome: UpdateOutcome },
    /// Closes with a result: RunCompleted. Every close must be the last command.
    CompleteRun(Payloads),
    /// Closes with a failure: RunFailed.
    FailRun(Failure),
    /// Closes as cancelled: RunCancelled.
    CancelRun(Payloads),
    /// Closes and continues in a new run: RunContinuedAsNew.
    ContinueAsNew(Box<ContinueAsNew>),
}

/// How a run continues in a new one.
#[derive(Clone, Debug, PartialEq)]
pub struct ContinueAsNew {
    pub spec: RunSpec,
    /// Signals that code has not read, by event number.
    pub signals: Vec<EventNumber>,
    /// Accepted updates without an outcome.
    pub updates: Vec<UpdateId>,
}

impl Ask {
    /// Whether the command closes the run.
    pub const fn closes(&self) -> bool {
        matches!(
            self,
            Self::CompleteRun(_) | Self::FailRun(_) | Self::CancelRun(_) | Self::ContinueAsNew(_)
        )
    }

    /// Name of the event that the command becomes; `None` for a rejected update.
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
