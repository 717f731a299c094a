//! Waiting for a time.

use abide_core::event::Origin;

use super::{
    operation::{Operation, OperationResult, Pending, Progress, awaitable},
    site::Site,
    terms::{Limit, StatedTerms, described, guarded},
};
use crate::{
    error::{Error, Result},
    executor::Resolution,
};

/// A durable sleep; see [`Context::sleep`](super::Context::sleep).
#[derive(Debug)]
#[must_use = "nothing happens until it is awaited"]
pub struct Sleep {
    board: Site,
    limit: Limit,
    said: StatedTerms,
}

/// A started sleep: a timer whose [`Deadline`](super::Deadline) can be moved.
pub type Timer = Pending<Sleep>;

impl Sleep {
    pub(super) fn new(board: Site, limit: Limit) -> Self {
        Self { board, limit, said: StatedTerms::default() }
    }
}

described!([] Sleep, said);
guarded!([] Sleep, said);
awaitable!([] Sleep => Result<()>);

impl Operation for Sleep {
    type Output = Result<()>;

    fn refused(&self) -> bool {
        self.board.refuses()
    }

    fn begin(&mut self) -> Progress<Result<()>> {
        let now = self.board.now();
        let fire_at = self.limit.from(now);
        match self.said.terms() {
            Err(error) => Progress::Done(Err(error)),
            Ok(_) if fire_at <= now => Progress::Done(Ok(())),
            Ok(terms) => {
                Progress::Waits(self.board.start_timer(fire_at, Origin::CreateTimer, terms))
            }
        }
    }

    fn resume(&mut self, answer: OperationResult) -> Progress<Result<()>> {
        Progress::Done(match answer.0 {
            Resolution::Cancelled => Err(Error::Cancelled),
            _ => Ok(()),
        })
    }
}
