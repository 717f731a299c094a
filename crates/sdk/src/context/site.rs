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
    /// An operation of the caller. One that the SDK composes, such as an approval, has no line in the
    /// user's code.
    #[track_caller]
    pub(super) fn here(board: &Rc<Board>) -> Self {
        let place = Location::caller();
        Self { board: board.clone(), place: (!is_own(place)).then_some(place) }
    }

    /// An operation of the SDK itself.
    pub(super) fn nowhere(board: &Rc<Board>) -> Self {
        Self { board: board.clone(), place: None }
    }

    /// Whether the scope is cancelled, so that the operation may not start. It is asked before each
    /// start: from here on, commands come from this place.
    pub(super) fn refuses(&self) -> bool {
        self.board.mark(self.place);
        self.board.refuses()
    }
}

/// Whether the place is in the source of this crate.
fn is_own(place: &Location<'_>) -> bool {
    let source = file!().strip_suffix("context/site.rs");
    source.is_some_and(|source| place.file().starts_with(source))
}

impl Deref for Site {
    type Target = Rc<Board>;

    fn deref(&self) -> &Rc<Board> {
        &self.board
    }
}
