//! User data in what clients and workers send and get.

use super::{Carried, Carrier, carriers};
use crate::{
    attempt::AttemptReport,
    batch::{Batch, BatchAction, BatchSpec, Batches},
    command::{Ask, Command, ContinueAsNew},
    effect::RunOutcome,
    operation::{
        AnyOperation, CallError, ChangeSchedule, Closed, CreateSchedule, Query, QueryAnswer,
        QueryRequest, ReadOperation, ReportAttempt, RunOperation, ScheduleDescription, Signal,
        Start, StartUpdate, Started, Terminate, Update, UpdateAnswer,
    },
    report::{Report, TaskCompletion},
    run::{ActivityGiven, Description, Resolution, ShownActivity, Stage, TaskTrouble},
    schedule::ScheduleChange,
};

carriers! {
    Start { spec, signal, update; workflow, identity, key, conflict, reuse, begin }
    StartUpdate { request; update, until, wait_while_blocked }
    Signal { signal; target, extension }
    Terminate { details; target, reason, identity, key }
    Update { request; target, update, until, wait_while_blocked }
    Query { query; target }
    QueryRequest { input, header; name }
    ReportAttempt { report; attempt }

    Started { update; run, started }
    Closed { outcome; run, how, next_run }
    CreateSchedule { schedule; workflow, paused, note, trigger, identity, key }
    ChangeSchedule { change; workflow, revision, identity, key }
    ScheduleDescription { state; workflow, run, next_times }
    // Waits are shown to people without keys.
    Description {
        outcome, memo, trouble, activities;
        workflow, run, workflow_type, queue, status, liveness, resume_sources, first_run, reset_from, attempt,
        parent, started_at, begins_at, closed_at, deadline, next_run, last_event, history_bytes,
        cancel_requested, search_attributes, waits, children, updates,
    }
    BatchSpec { action; id, query, rate, reason, identity }
    Batch {
        spec;
        state, started_at, ended_at, total, done, failed, failures, position, driver, beat,
    }
    TaskTrouble { failure; attempt, failed_at, not_before, cause, blocked }
    ShownActivity {
        last_failure, heartbeat;
        activity, activity_type, queue, attempt, phase, cancel_requested,
    }

    ActivityGiven { spec, heartbeat; execution, attempt, scheduled_at }

    TaskCompletion { commands; flags, sdk_metadata, force_next, eager_activities }
    Command { ask; extension, place }
    ContinueAsNew { spec; signals, updates }
}

impl Carrier for AnyOperation {
    fn collect<'a>(&'a mut self, carried: &mut Carried<'a>) {
        match self {
            Self::Run(operation) => operation.collect(carried),
            // Filters are compared with what the store can read.
            Self::Read(operation) => {
                if let ReadOperation::StartBatch(start) = &mut **operation {
                    start.spec.collect(carried);
                }
            }
        }
    }
}

impl Carrier for RunOperation {
    fn collect<'a>(&'a mut self, carried: &mut Carried<'a>) {
        match self {
            Self::Start(start) => start.collect(carried),
            Self::Signal(signal) => signal.collect(carried),
            Self::Terminate(terminate) => terminate.collect(carried),
            Self::Update(update) => update.collect(carried),
            Self::Query(query) => query.collect(carried),
            Self::ReportAttempt(report) => report.collect(carried),
            Self::CreateSchedule(create) => create.collect(carried),
            Self::ChangeSchedule(change) => change.collect(carried),
            Self::Cancel(_)
            | Self::Pause(_)
            | Self::Unpause(_)
            | Self::RescheduleTimer(_)
            | Self::Repair(_)
            | Self::AwaitUpdate(_)
            | Self::Describe(_)
            | Self::AwaitClose(_)
            | Self::AwaitEvents(_)
            | Self::AwaitWaits(_)
            | Self::Delete(_)
            | Self::Reset(_)
            | Self::DeleteSchedule(_)
            | Self::DescribeSchedule(_) => {}
        }
    }
}

impl Carrier for Batches {
    fn collect<'a>(&'a mut self, carried: &mut Carried<'a>) {
        self.0.iter_mut().for_each(|batch| batch.collect(carried));
    }
}

impl Carrier for BatchAction {
    fn collect<'a>(&'a mut self, carried: &mut Carried<'a>) {
        match self {
            Self::Signal { input, name: _ } => input.collect(carried),
            Self::Cancel | Self::Terminate | Self::Delete | Self::Reset { .. } => {}
        }
    }
}

impl Carrier for QueryAnswer {
    fn collect<'a>(&'a mut self, carried: &mut Carried<'a>) {
        self.0.collect(carried);
    }
}

impl Carrier for ScheduleChange {
    fn collect<'a>(&'a mut self, carried: &mut Carried<'a>) {
        match self {
            Self::Updated(schedule) => schedule.collect(carried),
            Self::Paused { .. }
            | Self::Unpaused { .. }
            | Self::Triggered { .. }
            | Self::Backfilled { .. } => {}
        }
    }
}

impl Carrier for UpdateAnswer {
    fn collect<'a>(&'a mut self, carried: &mut Carried<'a>) {
        match self {
            Self::Reached { stage, run: _ } => match stage {
                Stage::Completed(outcome) => outcome.collect(carried),
                Stage::Rejected(failure) => failure.collect(carried),
                Stage::Admitted | Stage::Accepted | Stage::CompletedIn(_) => {}
            },
            Self::Rejected(failure) => failure.collect(carried),
        }
    }
}

/// Errors of a call quote no payloads.
impl Carrier for CallError {
    fn collect<'a>(&'a mut self, _: &mut Carried<'a>) {}
}

impl Carrier for RunOutcome {
    fn collect<'a>(&'a mut self, carried: &mut Carried<'a>) {
        match self {
            Self::Completed(payloads) | Self::Cancelled(payloads) => payloads.collect(carried),
            Self::Failed { failure, retry_state: _ } => failure.collect(carried),
            Self::TimedOut { .. } | Self::Terminated { .. } => {}
        }
    }
}

impl Carrier for AttemptReport {
    fn collect<'a>(&'a mut self, carried: &mut Carried<'a>) {
        match self {
            Self::Resolved(resolution) => resolution.collect(carried),
            Self::Heartbeat(details) => details.collect(carried),
        }
    }
}

impl Carrier for Resolution {
    fn collect<'a>(&'a mut self, carried: &mut Carried<'a>) {
        match self {
            Self::Completed(payloads) | Self::Cancelled(payloads) => payloads.collect(carried),
            Self::Failed(failure) => failure.collect(carried),
        }
    }
}

impl Carrier for Report {
    fn collect<'a>(&'a mut self, carried: &mut Carried<'a>) {
        match self {
            Self::CompleteTask(_, completion) => completion.collect(carried),
            Self::FailTask { failure, token: _, cause: _, blocked: _ } => failure.collect(carried),
            Self::AnswerQuery(_, answer) => answer.collect(carried),
            Self::ResolveActivity(_, resolution) => resolution.collect(carried),
            Self::Heartbeat(_, details) => details.collect(carried),
            Self::DetachAttempt(_) | Self::PresentAttempt(..) => {}
        }
    }
}

impl Carrier for Ask {
    fn collect<'a>(&'a mut self, carried: &mut Carried<'a>) {
        match self {
            Self::ScheduleActivity(spec) => spec.collect(carried),
            Self::StartChild(child) => child.collect(carried),
            Self::SignalExternal { input, header, target: _, name: _ } => {
                input.collect(carried);
                header.collect(carried);
            }
            Self::RecordMarker(marker) => marker.collect(carried),
            Self::UpsertMemo(memo) => memo.collect(carried),
            Self::AcceptUpdate { request, update: _ } => request.collect(carried),
            Self::RejectUpdate { failure, update: _ } => failure.collect(carried),
            Self::CompleteUpdate { outcome, update: _ } => outcome.collect(carried),
            Self::CompleteRun(payloads) | Self::CancelRun(payloads) => payloads.collect(carried),
            Self::FailRun(failure) => failure.collect(carried),
            Self::ContinueAsNew(next) => next.collect(carried),
            Self::CancelActivity(_)
            | Self::StartTimer(_)
            | Self::RescheduleTimer { .. }
            | Self::CancelTimer(_)
            | Self::OpenWait(_)
            | Self::DescribeWait { .. }
            | Self::SatisfyWait(_)
            | Self::TimeOutWait(_)
            | Self::CancelWait(_)
            | Self::CancelExternal { .. }
            | Self::UpsertSearchAttributes(_) => {}
        }
    }
}
