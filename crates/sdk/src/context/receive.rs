//! Waiting for a signal, of one kind or any, forever or with a deadline.

use std::{fmt, marker::PhantomData, time::Duration};

use abide_core::{
    payload::{Payload, Payloads},
    time::Timestamp,
};

use super::{
    operation::{Operation, OperationResult, Progress, awaitable},
    outcome::Outcome,
    site::Site,
    terms::{Limit, StatedTerms, described, guarded},
    timeout::Timeout,
};
use crate::{
    arguments::ArgumentList,
    definition::{SignalDef, SignalHandler as _},
    error::{Error, Result},
    executor::{Received, Resolution},
};

/// A wait for a signal; see [`Context::receive`](super::Context::receive) and
/// [`Context::receive_any`](super::Context::receive_any).
#[must_use = "nothing happens until it is awaited"]
pub struct Receive<S> {
    board: Site,
    signal: S,
    said: StatedTerms,
}

/// Which signals a wait takes. Implemented by this crate alone.
pub trait Expected: fmt::Debug + Unpin {
    /// The output of the wait.
    type Output;

    /// The signal's name; empty for any.
    #[doc(hidden)]
    fn name(&self) -> &'static str;

    /// Checks that the signal can be waited for.
    #[doc(hidden)]
    fn check(&self) -> Result<()>;

    /// Decodes a received signal.
    #[doc(hidden)]
    fn read(&self, name: String, input: Payloads) -> Result<Self::Output>;
}

impl<W, I: ArgumentList> Expected for SignalDef<W, I> {
    type Output = I::Value;

    fn name(&self) -> &'static str {
        Self::name(self)
    }

    fn check(&self) -> Result<()> {
        if self.kept() {
            return Ok(());
        }
        let message =
            format!("{self:?} has a handler, so it cannot be received; declare it without a body");
        Err(Error::new(message))
    }

    fn read(&self, _: String, input: Payloads) -> Result<I::Value> {
        Ok(self.decode_input(&input)?)
    }
}

/// Matches every signal that no handler takes.
pub struct Any<W>(PhantomData<fn() -> W>);

impl<W> Any<W> {
    pub(super) const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<W> Expected for Any<W> {
    type Output = AnySignal<W>;

    fn name(&self) -> &'static str {
        ""
    }

    fn check(&self) -> Result<()> {
        Ok(())
    }

    fn read(&self, name: String, input: Payloads) -> Result<AnySignal<W>> {
        Ok(AnySignal { name, input, workflow: PhantomData })
    }
}

/// A signal of any name; see [`Context::receive_any`](super::Context::receive_any).
pub struct AnySignal<W> {
    name: String,
    input: Payloads,
    workflow: PhantomData<fn() -> W>,
}

impl<W> AnySignal<W> {
    /// The name with which the signal was sent.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The decoded arguments, if it is this signal.
    pub fn read<I: ArgumentList>(&self, signal: SignalDef<W, I>) -> Option<Result<I::Value>> {
        let same = self.name == signal.name();
        same.then(|| signal.decode_input(&self.input).map_err(Error::from))
    }

    /// The encoded arguments, one payload each.
    pub fn payloads(&self) -> &[Payload] {
        &self.input
    }
}

impl<S: Expected> Receive<S> {
    pub(super) fn new(board: Site, signal: S) -> Self {
        Self { board, signal, said: StatedTerms::default() }
    }

    /// Waits for at most this long. Zero takes only a signal that has arrived already.
    pub fn timeout(self, timeout: Duration) -> Timeout<Receive<S>> {
        Timeout { wait: self, limit: Limit::After(timeout) }
    }

    /// Waits until this time at the latest.
    pub fn until(self, deadline: Timestamp) -> Timeout<Receive<S>> {
        Timeout { wait: self, limit: Limit::At(deadline) }
    }

    fn begin(&mut self, limit: Option<Limit>) -> Progress<Result<Outcome<S::Output>>> {
        let terms = match self.signal.check().and_then(|()| self.said.terms()) {
            Ok(terms) => terms,
            Err(error) => return Progress::Done(Err(error)),
        };
        let until = limit.map(|limit| limit.from(self.board.now()));
        match self.board.receive(self.signal.name(), until, terms) {
            Received::TimedOut => Progress::Done(Ok(Outcome::TimedOut)),
            Received::Waits(wait) => Progress::Waits(wait),
        }
    }

    fn received(&self, resolution: Resolution) -> Progress<Result<Outcome<S::Output>>> {
        Progress::Done(match resolution {
            Resolution::Signal(signal) => {
                self.signal.read(signal.name, signal.input).map(Outcome::InTime)
            }
            Resolution::Cancelled => Err(Error::Cancelled),
            _ => Ok(Outcome::TimedOut),
        })
    }
}

described!([S: Expected] Receive<S>, said);
described!([S: Expected] Timeout<Receive<S>>, wait.said);
guarded!([S: Expected] Timeout<Receive<S>>, wait.said);
awaitable!([S: Expected] Receive<S> => Result<S::Output>);
awaitable!([S: Expected] Timeout<Receive<S>> => Result<Outcome<S::Output>>);

impl<S: Expected> Operation for Timeout<Receive<S>> {
    type Output = Result<Outcome<S::Output>>;

    fn refused(&self) -> bool {
        self.wait.board.refuses()
    }

    fn begin(&mut self) -> Progress<Self::Output> {
        self.wait.begin(Some(self.limit))
    }

    fn resume(&mut self, answer: OperationResult) -> Progress<Self::Output> {
        self.wait.received(answer.0)
    }
}

impl<S: Expected> Operation for Receive<S> {
    type Output = Result<S::Output>;

    fn refused(&self) -> bool {
        self.board.refuses()
    }

    fn begin(&mut self) -> Progress<Self::Output> {
        Self::begin(self, None).without_deadline()
    }

    fn resume(&mut self, answer: OperationResult) -> Progress<Self::Output> {
        self.received(answer.0).without_deadline()
    }
}

impl<S: Expected> fmt::Debug for Receive<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "receive {:?}", self.signal)
    }
}

impl<W> fmt::Debug for Any<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any signal")
    }
}

impl<W> fmt::Debug for AnySignal<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "signal {}", self.name)
    }
}
