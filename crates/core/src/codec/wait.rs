//! Condition waits.

use super::table::messages;
use crate::event::{
    Condition, WaitCancelled, WaitDescribed, WaitOpened, WaitSatisfied, WaitSpec, WaitTimedOut,
};

messages! {
    WaitOpened { spec, task_completed }
    WaitSpec { wait, condition, timer, details }
    Condition { key, fingerprint }
    WaitDescribed { wait, opened, details }
    WaitSatisfied { wait, opened, condition }
    WaitTimedOut { wait, opened, condition }
    WaitCancelled { wait, opened }
}
