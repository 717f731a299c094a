//! The span of an attempt: what is logged inside it says which attempt it is.

use abide_core::visible::visible;
use tracing::{Span, info_span};

use crate::activity::ActivityInfo;

/// The span around the code of an attempt.
pub(super) fn of_attempt(info: &ActivityInfo) -> Span {
    let spec = &info.given.spec;
    info_span!(
        "activity",
        namespace = %visible(info.workflow.namespace.as_str()),
        workflow_id = %visible(info.workflow.workflow.as_str()),
        run_id = %info.run,
        activity_type = spec.activity_type,
        activity_id = %spec.activity,
        attempt = info.given.attempt,
    )
}
