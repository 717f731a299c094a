//! Children, and signals and cancel requests to other workflows.

use super::table::{enumerations, messages};
use crate::event::{
    CancelMode, ChildCancelled, ChildCompleted, ChildFailed, ChildInitiated, ChildSpec,
    ChildStartFailed, ChildStarted, ChildTerminated, ChildTimedOut, DeliveryFailure,
    ExternalCancelDelivered, ExternalCancelFailed, ExternalCancelInitiated,
    ExternalSignalDelivered, ExternalSignalFailed, ExternalSignalInitiated, ParentClosePolicy,
    ReusePolicy, Target,
};

messages! {
    ChildInitiated { child, run, task_completed }
    ChildSpec { workflow, spec, parent_close, reuse, retry_of, attempt, recorded_retry }
    ChildStarted { initiated, run }
    ChildStartFailed { initiated, cause }
    ChildCompleted { initiated, run, result }
    ChildFailed { initiated, run, failure, retry_state }
    ChildTimedOut { initiated, run, retry_state }
    ChildCancelled { initiated, run, details }
    ChildTerminated { initiated, run, reason }
    Target { workflow, run, child }
    ExternalSignalInitiated { target, name, input, header, task_completed }
    ExternalSignalDelivered { initiated }
    ExternalSignalFailed { initiated, cause }
    ExternalCancelInitiated { target, mode, reason, task_completed }
    ExternalCancelDelivered { initiated }
    ExternalCancelFailed { initiated, cause }
}

enumerations! {
    ParentClosePolicy { Terminate, Abandon, RequestCancel }
    ReusePolicy { Allow, AllowIfFailed, Reject }
    CancelMode { Request, Terminate }
    DeliveryFailure { NotFound, Closed, AlreadyExists, LimitExceeded, NamespaceNotFound, NamespaceRefused, Refused }
}
