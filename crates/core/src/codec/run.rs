//! Events of a run as a whole.

use super::table::{enumerations, messages};
use crate::event::{
    CompletedUpdate, Initiator, Parent, PreviousRun, ResetFrom, ResetTo, RunCancelRequested,
    RunCancelled, RunCompleted, RunContinuedAsNew, RunFailed, RunPaused, RunReference, RunSpec,
    RunStarted, RunTerminated, RunTimedOut, RunUnpaused,
};

messages! {
    RunSpec {
        workflow_type,
        queue,
        input,
        header,
        execution_timeout,
        run_timeout,
        task_timeout,
        retry,
        cron,
        memo,
        search_attributes,
    }
    RunStarted {
        namespace,
        workflow,
        run,
        ordinal,
        spec,
        identity,
        key,
        first_run,
        original_run,
        previous,
        attempt,
        expires_at,
        first_task_at,
        parent,
        root,
        terminate_keys,
        reset_keys,
        reset,
        schedule,
    }
    ResetFrom { base, copied, at, reason, key }
    ResetTo { run, copied, key }
    PreviousRun {
        run,
        initiator,
        failure,
        last_result,
        signal_keys,
        reschedule_keys,
        completed_updates,
        cancel_keys,
        pause_keys,
        unpause_keys,
        signal_digests,
    }
    CompletedUpdate { update, run, asked }
    Parent { run, initiated, ordinal }
    RunReference { workflow, run }
    RunCompleted { result, next_run }
    RunFailed { failure, retry_state, next_run }
    RunTimedOut { retry_state, next_run }
    RunCancelRequested { reason, identity, key, source, received_at }
    RunCancelled { details }
    RunTerminated { reason, identity, details, key, reset }
    RunContinuedAsNew { next_run, spec, signals, updates }
    RunPaused { reason, identity, key }
    RunUnpaused { reason, identity, key }
}

enumerations! {
    Initiator { ContinueAsNew, Retry, Cron, Reset }
}
