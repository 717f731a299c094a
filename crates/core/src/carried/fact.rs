//! User data in events.

use super::{Carried, Carrier, carriers};
use crate::{
    event::*,
    schedule::{Schedule, ScheduleState},
};

impl Carrier for Event {
    fn collect<'a>(&'a mut self, carried: &mut Carried<'a>) {
        let Self { body, number: _, time: _ } = self;
        body.fact_mut().collect(carried);
    }
}

/// Matches every fact, and collects from it.
macro_rules! facts {
    ($($name:ident,)*) => {
        impl Carrier for Fact {
            fn collect<'a>(&'a mut self, carried: &mut Carried<'a>) {
                match self { $(Self::$name(fact) => fact.collect(carried),)* }
            }
        }
    };
}

facts! {
    RunStarted,
    RunCompleted,
    RunFailed,
    RunTimedOut,
    RunCancelRequested,
    RunCancelled,
    RunTerminated,
    RunContinuedAsNew,
    RunPaused,
    RunUnpaused,
    TaskScheduled,
    TaskStarted,
    TaskCompleted,
    TaskFailed,
    TaskTimedOut,
    ActivityScheduled,
    ActivityStarted,
    ActivityCompleted,
    ActivityFailed,
    ActivityTimedOut,
    ActivityCancelRequested,
    ActivityCancelled,
    TimerStarted,
    TimerRescheduled,
    TimerFired,
    TimerCancelled,
    WaitOpened,
    WaitDescribed,
    WaitSatisfied,
    WaitTimedOut,
    WaitCancelled,
    SignalReceived,
    UpdateAdmitted,
    UpdateAccepted,
    UpdateCompleted,
    ChildInitiated,
    ChildStarted,
    ChildStartFailed,
    ChildCompleted,
    ChildFailed,
    ChildTimedOut,
    ChildCancelled,
    ChildTerminated,
    ExternalSignalInitiated,
    ExternalSignalDelivered,
    ExternalSignalFailed,
    ExternalCancelInitiated,
    ExternalCancelDelivered,
    ExternalCancelFailed,
    MarkerRecorded,
    SearchAttributesUpserted,
    MemoUpserted,
}

impl Carrier for UpdateOutcome {
    fn collect<'a>(&'a mut self, carried: &mut Carried<'a>) {
        match self {
            Self::Completed(result) => result.collect(carried),
            Self::Failed(failure) => failure.collect(carried),
        }
    }
}

carriers! {
    // Search attributes are read by the engine, for lists.
    RunSpec {
        input, header, memo;
        workflow_type, queue, execution_timeout, run_timeout, task_timeout, retry, cron,
        search_attributes,
    }
    RunStarted {
        spec, previous, reset, schedule;
        namespace, workflow, run, ordinal, identity, key, first_run, original_run, attempt,
        expires_at, first_task_at, parent, root, terminate_keys, reset_keys,
    }
    ResetFrom { base; copied, at, reason, key }
    PreviousRun {
        failure, last_result;
        run, initiator, signal_keys, reschedule_keys, completed_updates, cancel_keys, pause_keys,
        unpause_keys, signal_digests,
    }
    ScheduleState {
        schedule;
        revision, created_at, changed_at, paused, note, considered, next, wake_at, waiting,
        backfills, running, recent, starts, skipped, missed,
    }
    Schedule { run; spec, workflow, overlap, catch_up, pause_on_failure, remaining }
    RunCompleted { result; next_run }
    RunFailed { failure; retry_state, next_run }
    RunTimedOut { ; retry_state, next_run }
    RunCancelRequested { ; reason, identity, key, source, received_at }
    RunCancelled { details; }
    RunTerminated { details; reason, identity, key, reset }
    RunContinuedAsNew { spec; next_run, signals, updates }
    RunPaused { ; reason, identity, key }
    RunUnpaused { ; reason, identity, key }

    TaskScheduled { ; queue, attempt, timeout }
    TaskStarted { ; scheduled, start, identity, history_bytes, suggest_continue_as_new }
    TaskCompleted { ; scheduled, started, identity, build, flags, sdk_metadata }
    TaskFailed { failure; scheduled, started, cause, identity, build, blocked }
    TaskTimedOut { ; scheduled, started }

    ActivityScheduled { spec; execution, task_completed }
    ActivitySpec {
        input, header;
        activity, activity_type, queue, schedule_to_close, schedule_to_start, start_to_close,
        heartbeat, retry, delivery, retry_of, attempt,
    }
    ActivityStarted { last_failure; scheduled, attempt, at, identity }
    ActivityCompleted { result; scheduled, identity }
    ActivityFailed { failure; scheduled, retry_state, identity }
    ActivityTimedOut { failure; scheduled, kind, retry_state }
    ActivityCancelRequested { ; scheduled, task_completed }
    ActivityCancelled { details; scheduled, identity }

    // What people see of a wait stays readable: lists and inboxes show it.
    TimerStarted { ; spec, task_completed }
    TimerRescheduled { ; timer, fire_at, by }
    TimerFired { ; timer, started, fire_at }
    TimerCancelled { ; timer, started }
    WaitOpened { ; spec, task_completed }
    WaitDescribed { ; wait, opened, details }
    WaitSatisfied { ; wait, opened, condition }
    WaitTimedOut { ; wait, opened, condition }
    WaitCancelled { ; wait, opened }

    SignalReceived { input, header; name, identity, key, source, received_at }
    UpdateRequest { input, header; name, identity }
    UpdateAdmitted { request; update }
    UpdateAccepted { request; update }
    UpdateCompleted { outcome; update, accepted }

    ChildInitiated { child; run, task_completed }
    ChildSpec { spec; workflow, parent_close, reuse, retry_of, attempt, recorded_retry }
    ChildStarted { ; initiated, run }
    ChildStartFailed { ; initiated, cause }
    ChildCompleted { result; initiated, run }
    ChildFailed { failure; initiated, run, retry_state }
    ChildTimedOut { ; initiated, run, retry_state }
    ChildCancelled { details; initiated, run }
    ChildTerminated { ; initiated, run, reason }
    ExternalSignalInitiated { input, header; target, name, task_completed }
    ExternalSignalDelivered { ; initiated }
    ExternalSignalFailed { ; initiated, cause }
    ExternalCancelInitiated { ; target, mode, reason, task_completed }
    ExternalCancelDelivered { ; initiated }
    ExternalCancelFailed { ; initiated, cause }

    MarkerRecorded { marker; task_completed }
    Marker { details, failure, header; kind, id }
    SearchAttributesUpserted { ; attributes, task_completed }
    MemoUpserted { memo; task_completed }
}
