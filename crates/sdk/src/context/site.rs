//! The line of user code that an operation comes from.

use std::{ops::Deref, panic::Location, rc::Rc};

use crate::executor::Board;

/// The board, for an operation that user code made at one place. The place is for messages only: it
/// is never recorded, and a run that moves to other lines still fits its history.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    board: Rc<Board>,
    place: Option<&'static Location<'static>>,
}

impl Site {
    /// An operation of the caller.
    #[track_caller]
    pub(super) fn here(board: &Rc<Board>) -> Self {
        Self { board: board.clone(), place: Some(Location::caller()) }
    }

    /// An operation of the SDK itself.
    pub(super) fn nowhere(board: &Rc<Board>) -> Self {
        Self { board: board.clone(), place: None }
    }

    /// Whether the scope is cancelled, so that the operation may not start. It is asked before each
    /// start: from here on, commands come from this place.
    pub(super) fn refuses(&self) -> bool {
        if let Some(place) = self.place {
            self.board.mark(place);
        }
        self.board.refuses()
    }
}

impl Deref for Site {
    type Target = Rc<Board>;

    fn deref(&self) -> &Rc<Board> {
        &self.board
    }
}
