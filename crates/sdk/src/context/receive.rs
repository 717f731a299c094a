//! Waiting for a signal, for ever or for some time.

use std::{fmt, rc::Rc, time::Duration};

use super::operation::{Answer, Operation, Progress, awaitable};
use crate::{
    definition::{SignalDef, SignalHandler as _},
    error::{Error, Result},
    executor::{Board, Received, Resolution},
};

/// A wait for a signal; see [`Context::receive`](super::Context::receive).
#[must_use = "nothing happens until it is awaited"]
pub struct Receive<W: 'static, I: 'static> {
    board: Rc<Board>,
    signal: SignalDef<W, I>,
}

/// A wait for a signal that ends after some time.
#[must_use = "nothing happens until it is awaited"]
pub struct ReceiveWithin<W: 'static, I: 'static> {
    receive: Receive<W, I>,
    timeout: Duration,
}

/// What a wait with a deadline came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome<T> {
    /// The signal came in time.
    Received(T),
    /// It did not.
    TimedOut,
}

impl<T> Outcome<T> {
    /// The signal did not come in time.
    pub const fn timed_out(&self) -> bool {
        matches!(self, Self::TimedOut)
    }

    /// What came, if it came.
    pub fn received(self) -> Option<T> {
        match self {
            Self::Received(value) => Some(value),
            Self::TimedOut => None,
        }
    }
}

impl<W, I> Receive<W, I> {
    pub(super) const fn new(board: Rc<Board>, signal: SignalDef<W, I>) -> Self {
        Self { board, signal }
    }

    /// Waits for at most this long. Zero takes only what is there already.
    pub const fn timeout(self, timeout: Duration) -> ReceiveWithin<W, I> {
        ReceiveWithin { receive: self, timeout }
    }

    fn begin(&self, timeout: Option<Duration>) -> Progress<Result<Outcome<I>>> {
        if !self.signal.kept() {
            return Progress::Done(Err(Error::fail(format!(
                "{:?} has a handler, so it cannot be received; declare it without a body",
                self.signal
            ))));
        }
        match self.board.receive(self.signal.name(), timeout) {
            Received::Signal(signal) => self.received(Resolution::Signal(signal)),
            Received::TimedOut => Progress::Done(Ok(Outcome::TimedOut)),
            Received::Waits(wait) => Progress::Waits(wait),
        }
    }

    fn received(&self, resolution: Resolution) -> Progress<Result<Outcome<I>>> {
        Progress::Done(match resolution {
            Resolution::Signal(signal) => {
                let input = self.signal.decode_input(&signal.input);
                input.map(Outcome::Received).map_err(Error::from)
            }
            Resolution::Cancelled => Err(Error::Cancelled),
            _ => Ok(Outcome::TimedOut),
        })
    }
}

awaitable!([W, I] Receive<W, I> => Result<I>);
awaitable!([W, I] ReceiveWithin<W, I> => Result<Outcome<I>>);

impl<W, I> Operation for ReceiveWithin<W, I> {
    type Output = Result<Outcome<I>>;

    fn begin(&mut self) -> Progress<Self::Output> {
        self.receive.begin(Some(self.timeout))
    }

    fn resume(&mut self, answer: Answer) -> Progress<Self::Output> {
        self.receive.received(answer.0)
    }
}

impl<W, I> Operation for Receive<W, I> {
    type Output = Result<I>;

    fn begin(&mut self) -> Progress<Self::Output> {
        without_deadline(Self::begin(self, None))
    }

    fn resume(&mut self, answer: Answer) -> Progress<Self::Output> {
        without_deadline(self.received(answer.0))
    }
}

fn without_deadline<I>(progress: Progress<Result<Outcome<I>>>) -> Progress<Result<I>> {
    match progress {
        Progress::Waits(wait) => Progress::Waits(wait),
        Progress::Done(Ok(Outcome::Received(value))) => Progress::Done(Ok(value)),
        Progress::Done(Ok(Outcome::TimedOut)) => {
            Progress::Done(Err(Error::fail("a wait without deadline was timed out")))
        }
        Progress::Done(Err(error)) => Progress::Done(Err(error)),
    }
}

impl<W, I> fmt::Debug for Receive<W, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "receive {:?}", self.signal)
    }
}

impl<W, I> fmt::Debug for ReceiveWithin<W, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} within {:?}", self.receive, self.timeout)
    }
}
