//! Activities.

use super::table::{enumerations, messages};
use crate::event::{
    ActivityCancelRequested, ActivityCancelled, ActivityCompleted, ActivityFailed,
    ActivityScheduled, ActivitySpec, ActivityStarted, ActivityTimedOut, Delivery,
};

messages! {
    ActivityScheduled { spec, execution, task_completed }
    ActivitySpec {
        activity,
        activity_type,
        queue,
        input,
        header,
        schedule_to_close,
        schedule_to_start,
        start_to_close,
        heartbeat,
        retry,
        delivery,
        retry_of,
        attempt,
    }
    ActivityStarted { scheduled, attempt, at, identity, last_failure }
    ActivityCompleted { scheduled, result, identity }
    ActivityFailed { scheduled, failure, retry_state, identity }
    ActivityTimedOut { scheduled, kind, failure, retry_state }
    ActivityCancelRequested { scheduled, task_completed }
    ActivityCancelled { scheduled, details, identity }
}

enumerations! {
    Delivery { AtLeastOnce, AtMostOnce }
}
