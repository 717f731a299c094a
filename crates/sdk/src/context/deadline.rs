//! The deadline of a wait in the hands of code: read, extended, shortened, by whoever holds it.

use std::{fmt, rc::Rc, time::Duration};

use abide_core::{ids::TimerId, time::Timestamp};

use crate::executor::{Board, Wait};

/// The deadline of a sleep, or of a wait for a signal or a condition.
///
/// It is taken from a wait that has begun (`let timer = ctx.sleep(time).start();`, then
/// `timer.deadline()`) and kept in the state, where handlers of signals and updates can reach it. Clones
/// are the same deadline. The default one belongs to no wait. Queries, validators and conditions can
/// read it, but not move it.
///
/// Moving it moves the one timer that is there: history gets a TimerRescheduled, and nothing piles up.
///
/// Order in history decides. A handler that moves the deadline for a message that came before the timer
/// fired wins, even if the timer has fired by the time that the handler runs: that firing is void, and
/// the wait goes on. A message that came after the firing is too late, and the move says so by
/// [`MoveError::Over`].
#[derive(Clone, Default)]
pub struct Deadline {
    timer: Option<(Rc<Board>, TimerId)>,
}

impl Deadline {
    pub(super) fn of(wait: &Wait) -> Self {
        Self { timer: wait.timer().map(|timer| (wait.board(), timer)) }
    }

    /// When the wait ends at the latest; none when it is over or has not begun.
    pub fn at(&self) -> Option<Timestamp> {
        let (board, timer) = self.timer.as_ref()?;
        board.due(timer)
    }

    /// The wait goes on.
    pub fn is_open(&self) -> bool {
        self.at().is_some()
    }

    /// Moves the deadline. The present time ends the wait at once. A time that had passed already when that
    /// happened which the code handles (when its signal arrived, say) is refused, unless it is later than
    /// the deadline as it stands. One that has passed since, because no worker was there, counts: the
    /// wait then ends at once.
    pub fn reset(&self, at: Timestamp) -> Result<(), MoveError> {
        let (board, timer) = self.timer.as_ref().ok_or(MoveError::NoDeadline)?;
        board.move_timer(timer, at)
    }

    /// Moves the deadline so much later than it is, and gives the new one.
    pub fn extend(&self, by: Duration) -> Result<Timestamp, MoveError> {
        let (board, timer) = self.timer.as_ref().ok_or(MoveError::NoDeadline)?;
        let at = board.due(timer).ok_or(MoveError::Over)?.saturating_add(by);
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
pub enum MoveError {
    /// It is the deadline of no wait: of one that has not begun, was over at once, or has none.
    #[error("no wait that has begun has this deadline")]
    NoDeadline,
    /// Queries, validators and conditions leave no trace, so they can move nothing.
    #[error("queries, validators and conditions cannot move a deadline; handlers can")]
    OnlyLooking,
    /// Too late: the deadline has come, or nobody waits any more.
    #[error("too late: the wait is over")]
    Over,
    /// The new deadline had passed already when that happened which the code handles.
    #[error("the deadline {at} has passed already: it is {now}")]
    Past {
        /// The deadline that was asked for.
        at: Timestamp,
        /// The run's time.
        now: Timestamp,
    },
    /// A wait that has a deadline keeps one.
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
