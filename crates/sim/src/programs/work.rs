//! Work of programs: activities, alone, local, in crowds and in sagas; and children.

use std::time::Duration;

use abide_core::{event::Delivery, retry::RetryPolicy};
use abide_sdk::{OnCancel, ParentClosePolicy, ReusePolicy};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Activity {
    pub activity_type: &'static str,
    /// Retry policy; the run itself makes recorded retries.
    pub retry: Option<RetryPolicy>,
    /// How many times an attempt may reach a worker.
    pub delivery: Delivery,
    /// Limits one attempt.
    pub start_to_close: Option<Duration>,
    /// Limits the time between two heartbeats.
    pub heartbeat: Option<Duration>,
    /// What happens to it when the wait for it is cancelled.
    pub on_cancel: OnCancel,
    /// When the run cancels it, and it alone.
    pub give_up: Option<Duration>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Local {
    pub activity_type: &'static str,
    pub retry: RetryPolicy,
    /// A longer delay before a retry becomes a timer.
    pub longest_delay: Option<Duration>,
}

/// The same activity, several times.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Crowd {
    pub activity: Activity,
    pub count: usize,
    pub order: Order,
}

/// How several activities are run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// All concurrently, waiting for all.
    #[default]
    All,
    /// All concurrently, waiting for the first success.
    First,
    /// At most this many at a time.
    Bounded(usize),
    /// At most this many at a time, until one fails.
    BoundedUntilFailure(usize),
    /// A sliding window of this size.
    Window(usize),
}

/// Steps that are undone together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Saga {
    /// Steps, taken one after the other.
    pub steps: Vec<Undoable>,
    /// Activity after the steps; its failure undoes them too.
    pub last: Activity,
    /// Whether they are undone concurrently, not step by step.
    pub at_once: bool,
}

/// A step of a saga.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Undoable {
    /// Whether undoing it may fail.
    pub stubborn: bool,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Child {
    /// Number of its workflow type.
    pub number: usize,
    pub workflow: String,
    /// Retry policy; recorded retries are new children.
    pub retry: Option<RetryPolicy>,
    /// What happens to it when its parent closes first.
    pub parent_close: ParentClosePolicy,
    /// Whether it may have an id that was used before.
    pub reuse: ReusePolicy,
    /// Limits each of its runs.
    pub run_timeout: Option<Duration>,
    /// Limits all of its runs together.
    pub execution_timeout: Option<Duration>,
    /// What happens to it when the wait for it is cancelled; `None` uses the SDK's default.
    pub on_cancel: Option<OnCancel>,
    pub care: Care,
}

/// What a parent does with its child.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Care {
    /// Waits for its result.
    #[default]
    Await,
    /// Waits until it has started, then for its result.
    Hold,
    /// Signals it, and after a while requests its cancellation.
    Hurry,
    /// Waits until it has started, and for nothing more.
    Leave,
}
