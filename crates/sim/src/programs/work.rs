//! What programs have others do: activities, alone, within the task, in crowds and in sagas; and children.

use std::time::Duration;

use abide_core::{
    event::{Delivery, ParentClosePolicy, ReusePolicy},
    retry::RetryPolicy,
};
use abide_sdk::OnCancel;

/// An activity.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Activity {
    /// Its type.
    pub activity_type: &'static str,
    /// How it is retried; recorded retries are made by the run.
    pub retry: Option<RetryPolicy>,
    /// How often an attempt may reach a worker.
    pub delivery: Delivery,
    /// Limits one attempt.
    pub start_to_close: Option<Duration>,
    /// Limits the silence of an attempt.
    pub heartbeat: Option<Duration>,
    /// What becomes of it when the wait for it is cancelled.
    pub on_cancel: OnCancel,
    /// When the run gives it up, and it alone.
    pub give_up: Option<Duration>,
}

/// A local activity.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Local {
    /// Its type.
    pub activity_type: &'static str,
    /// How it is retried.
    pub retry: RetryPolicy,
    /// A longer delay before a retry is a timer.
    pub longest_delay: Option<Duration>,
}

/// The same activity, several times.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Crowd {
    /// What each does.
    pub activity: Activity,
    /// How many there are.
    pub count: usize,
    /// How they are run.
    pub order: Order,
}

/// How several activities are run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// All at once, and all are wanted.
    #[default]
    All,
    /// All at once, and the first success is wanted.
    First,
    /// At most so many at a time.
    Bounded(usize),
    /// The same, until one fails.
    BoundedUntilFailure(usize),
    /// A window of this size slides over them.
    Window(usize),
}

/// Steps that are undone together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Saga {
    /// What is done and undone, one after the other.
    pub steps: Vec<Undoable>,
    /// What comes after them; a failure of it undoes them too.
    pub last: Activity,
    /// They are undone all at once, not step by step.
    pub at_once: bool,
}

/// A step of a saga.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Undoable {
    /// It cannot always be undone.
    pub stubborn: bool,
}

/// A child.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Child {
    /// The number of its type.
    pub number: usize,
    /// Its workflow id.
    pub workflow: String,
    /// How it is retried; recorded retries are new children.
    pub retry: Option<RetryPolicy>,
    /// What becomes of it when its parent closes first.
    pub parent_close: ParentClosePolicy,
    /// Whether it may have an id that was used before.
    pub reuse: ReusePolicy,
    /// Limits each of its runs.
    pub run_timeout: Option<Duration>,
    /// Limits all of its runs together.
    pub execution_timeout: Option<Duration>,
    /// What becomes of it when the wait for it is cancelled; none leaves it to the SDK.
    pub on_cancel: Option<OnCancel>,
    /// What its parent does with it.
    pub care: Care,
}

/// What a parent does with its child.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Care {
    /// Waits for its result.
    #[default]
    Await,
    /// Waits until it runs, then for its result.
    Hold,
    /// Signals it, and after a while asks it to cancel itself.
    Hurry,
    /// Waits until it runs, and for nothing more.
    Leave,
}
