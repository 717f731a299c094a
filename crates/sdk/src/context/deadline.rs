//! The deadline of a wait as a value: code that holds it can read, extend and shorten it.

use std::{fmt, rc::Rc, time::Duration};

use abide_core::{ids::TimerId, time::Timestamp};

use crate::executor::{Board, Wait};

/// The deadline of a sleep, or of a wait for a signal or a condition.
///
/// It is taken from a wait that has started (`let timer = ctx.sleep(time).start();`, then
/// `timer.deadline()`) and kept in the state, where handlers of signals and updates can reach it.
/// Clones are the same deadline. The default one belongs to no wait. Queries, validators and
/// conditions can read it, but not move it.
///
/// Moving it moves the existing timer: history gets a TimerRescheduled event, and no timers pile
/// up.
///
/// The order of history decides. A handler that moves the deadline for a message that came before
/// the timer fired wins, even if the timer has fired by the time that the handler runs: that firing
/// is void, and the wait continues. A message that came after the firing is too late, and the move
/// fails with [`RescheduleError::TooLate`].
#[derive(Clone, Default)]
pub struct Deadline {
    timer: Option<(Rc<Board>, TimerId)>,
}

impl Deadline {
    pub(super) fn of(wait: &Wait) -> Self {
        Self { timer: wait.timer().map(|timer| (wait.board(), timer)) }
    }

    /// The current deadline; none when the wait has ended or has not started.
    pub fn at(&self) -> Option<Timestamp> {
        let (board, timer) = self.timer.as_ref()?;
        board.due(timer)
    }

    /// Whether the wait is pending.
    pub fn is_open(&self) -> bool {
        self.at().is_some()
    }

    /// Moves the deadline. The present time ends the wait at once. A time is refused if it was in
    /// the past when the event happened that the code is handling (for example, when its signal
    /// arrived), unless it is later than the current deadline. A time that has passed since then,
    /// because no worker was available, is accepted: the wait then ends at once.
    pub fn reset(&self, at: Timestamp) -> Result<(), RescheduleError> {
        let (board, timer) = self.timer.as_ref().ok_or(RescheduleError::NoDeadline)?;
        board.move_timer(timer, at)
    }

    /// Moves the deadline later by this much, and returns the new one.
    pub fn extend(&self, by: Duration) -> Result<Timestamp, RescheduleError> {
        let (board, timer) = self.timer.as_ref().ok_or(RescheduleError::NoDeadline)?;
        let at = board.due(timer).ok_or(RescheduleError::TooLate)?.saturating_add(by);
        board.move_timer(timer, at)?;
        Ok(at)
    }

    /// The timer's id within the run, by which clients and operators move it.
    pub fn timer_id(&self) -> Option<&TimerId> {
        self.timer.as_ref().map(|(_, timer)| timer)
    }
}

/// Why code cannot move a due time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RescheduleError {
    /// It belongs to no wait: the wait has not started, ended at once, or has no deadline.
    #[error("no wait has begun with this deadline")]
    NoDeadline,
    /// Queries, validators and conditions leave no trace in history, so they cannot move a
    /// deadline.
    #[error("queries, validators and conditions cannot move a deadline; move it in a handler")]
    ReadOnly,
    /// Too late: the deadline has passed, or the wait was given up.
    #[error("too late: the wait is over")]
    TooLate,
    /// The new deadline was in the past when the event happened that the code is handling.
    #[error("the deadline {at} is in the past: it is {now}")]
    Past {
        /// The time to which the code tried to move it.
        at: Timestamp,
        /// The run's time, by which it was judged.
        now: Timestamp,
    },
    /// A wait with a deadline cannot lose it.
    #[error("a deadline cannot be moved to never")]
    Never,
}

impl fmt::Debug for Deadline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at() {
            Some(at) => write!(f, "deadline {at}"),
            None => f.write_str("deadline of no open wait"),
        }
    }
}
