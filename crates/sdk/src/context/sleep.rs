//! Waiting for a time.

use std::{rc::Rc, time::Duration};

use abide_core::event::Origin;

use super::operation::{Answer, Operation, Progress, awaitable};
use crate::{
    error::{Error, Result},
    executor::{Board, Resolution},
};

/// A durable sleep; see [`Context::sleep`](super::Context::sleep).
#[derive(Debug)]
#[must_use = "nothing happens until it is awaited"]
pub struct Sleep {
    board: Rc<Board>,
    duration: Duration,
}

impl Sleep {
    pub(super) const fn new(board: Rc<Board>, duration: Duration) -> Self {
        Self { board, duration }
    }
}

awaitable!([] Sleep => Result<()>);

impl Operation for Sleep {
    type Output = Result<()>;

    fn begin(&mut self) -> Progress<Result<()>> {
        if self.duration.is_zero() {
            return Progress::Done(Ok(()));
        }
        Progress::Waits(self.board.start_timer(self.duration, Origin::CreateTimer))
    }

    fn resume(&mut self, answer: Answer) -> Progress<Result<()>> {
        Progress::Done(match answer.0 {
            Resolution::Cancelled => Err(Error::Cancelled),
            _ => Ok(()),
        })
    }
}
