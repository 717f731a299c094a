//! Work that waits until its run is in memory, and which run that is.

use abide_core::{
    dispatch::Worker,
    effect::EffectOutcome,
    ids::{EventNumber, RunId, StartId, WorkflowKey},
    operation::{Start, Ticket},
    run::TimerKey,
    time::Timestamp,
};

use super::{
    load::CarryOver, repair::Repair, request::Request, reset::Resetting, start::StartScan,
};
use crate::message::{EffectKey, Envelope, Offer};

/// Work to do once its run is in memory.
#[derive(Clone, Debug)]
pub(super) enum Todo {
    Request(Ticket, Request),
    /// A start whose key no older run has (the search is done).
    Scanned(Box<StartScan>),
    /// A start whose key an older run has; that run does not become the current one.
    Repeated(Ticket, Box<Start>),
    Matched(Offer, Worker),
    Due(Timestamp, TimerKey),
    CheckAgain(TimerKey),
    Grace(EventNumber),
    /// The worker of the attempt is late to present it.
    Await(EventNumber),
    Answered(EffectKey, EffectOutcome),
    /// The worker that has the task is lost.
    LoseTask(StartId),
    TimeOutTask(StartId),
    Finish(Box<CarryOver>),
    Deliver(Box<Envelope>),
    Reoffer,
    Requery(Ticket),
    EnsureRows,
    /// Its task row may be missing.
    CheckTask,
    /// It is deleted.
    Deleted,
    /// A reset that needs the current run of the workflow.
    ResetAfter(Box<Resetting>),
    /// A reset that must read the log of the run.
    ResetRead(Box<Resetting>),
    /// A reset that has read it.
    ResetNow(Box<Resetting>),
    Repair(Box<Repair>),
}

impl Todo {
    /// The match that waits, if it is one.
    pub(super) fn into_match(self) -> Option<(Offer, Worker)> {
        match self {
            Self::Matched(offer, worker) => Some((offer, worker)),
            _ => None,
        }
    }

    /// Whether this goes on with what closed the gate of this run.
    pub(super) fn passes_gate(&self, run: RunId) -> bool {
        match self {
            Self::Deleted | Self::ResetRead(_) | Self::ResetNow(_) => true,
            // The current run may be reset or deleted at the same time.
            Self::ResetAfter(resetting) => resetting.base() == run,
            _ => false,
        }
    }

    /// The workflow that this work names, if any.
    pub(super) fn workflow(&self) -> Option<&WorkflowKey> {
        self.place().map(|(workflow, _)| workflow)
    }

    /// Whether this is meant for the current run of the workflow rather than a particular run.
    pub(super) fn wants_head(&self) -> bool {
        self.place().is_some_and(|(_, run)| run.is_none())
    }

    /// The workflow that this work names, and the run if it names one.
    fn place(&self) -> Option<(&WorkflowKey, Option<RunId>)> {
        match self {
            Self::Request(_, request) => Some(request.place()),
            Self::Scanned(scan) => Some((scan.workflow(), None)),
            Self::ResetAfter(resetting) => Some((resetting.workflow(), None)),
            Self::Deliver(envelope) => {
                let target = &envelope.effect.target;
                Some((&target.workflow, target.run))
            }
            Self::Repeated(..)
            | Self::Matched(..)
            | Self::Due(..)
            | Self::CheckAgain(_)
            | Self::Grace(_)
            | Self::Await(_)
            | Self::CheckTask
            | Self::Deleted
            | Self::ResetRead(_)
            | Self::ResetNow(_)
            | Self::Answered(..)
            | Self::LoseTask(_)
            | Self::TimeOutTask(_)
            | Self::Finish(_)
            | Self::Reoffer
            | Self::Requery(_)
            | Self::EnsureRows
            | Self::Repair(_) => None,
        }
    }
}
