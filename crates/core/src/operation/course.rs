//! Changes of a run's course: it goes back to an earlier task, or is deleted.

use super::RunTarget;
use crate::{
    ids::Key,
    run::{Reapply, ResetPoint},
};

/// Deletes a closed run: its log, its rows and its keys. The target must name the run, because a repeat
/// finds nothing that it could be recognised by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delete {
    pub target: RunTarget,
    pub identity: String,
}

/// Goes back to an earlier workflow task of a run, in a new run. The answer names the new run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reset {
    pub target: RunTarget,
    pub to: ResetPoint,
    /// Which later inputs the new run gets.
    pub reapply: Reapply,
    pub reason: String,
    pub identity: String,
    pub key: Option<Key>,
}
