//! Signals: input that needs no answer. A signal is applied to the state, starts a task, or is kept
//! until the run receives it.

use abide_core::payload::{Payload, Payloads};

use super::definition;
use crate::{
    arguments::ArgumentList,
    context::Context,
    future::LocalBoxFuture,
    payload::{Arguments, PayloadError},
};

/// A signal as a value: of workflow `W`, with arguments of types `I`.
pub struct SignalDef<W: 'static, I: ArgumentList> {
    name: &'static str,
    arguments: Arguments<I>,
    code: SignalCode<W, I>,
}

/// What happens when the signal arrives.
pub enum SignalCode<W: 'static, I: ArgumentList> {
    /// It is kept until the run receives it.
    Keep,
    /// It changes the state at once.
    Apply(fn(&mut W, I::Value)),
    /// It starts a task beside the run.
    Task(fn(Context<W>, I::Value) -> LocalBoxFuture<'static, ()>),
}

definition!(SignalDef<W, I: ArgumentList>, "signal");

impl<W, I: ArgumentList> Clone for SignalCode<W, I> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<W, I: ArgumentList> Copy for SignalCode<W, I> {}

impl<W, I: ArgumentList> SignalDef<W, I> {
    /// A signal with this name.
    #[doc(hidden)]
    pub const fn new(name: &'static str, arguments: Arguments<I>, code: SignalCode<W, I>) -> Self {
        Self { name, arguments, code }
    }
}

/// A signal without the type of its arguments.
pub trait SignalHandler<W>: Sync {
    /// The name under which clients send the signal.
    fn name(&self) -> &'static str;

    /// Whether the signal is kept until the run receives it; then no code runs when it arrives.
    fn kept(&self) -> bool;

    /// Handles a signal that has arrived.
    fn arrive(&self, ctx: &Context<W>, input: &[Payload]) -> Result<Arrival, PayloadError>;
}

/// The effect of a signal that has arrived.
pub enum Arrival {
    /// It is kept until the run receives it.
    Kept,
    /// The handler has changed the state.
    Applied,
    /// The handler is this task, which has not started.
    Task(LocalBoxFuture<'static, ()>),
}

impl<W, I: ArgumentList> SignalHandler<W> for SignalDef<W, I> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn kept(&self) -> bool {
        matches!(self.code, SignalCode::Keep)
    }

    fn arrive(&self, ctx: &Context<W>, input: &[Payload]) -> Result<Arrival, PayloadError> {
        Ok(match self.code {
            SignalCode::Keep => {
                // A signal that cannot be decoded must not reach the run, which could only fail on
                // it.
                self.decode_input(input)?;
                Arrival::Kept
            }
            SignalCode::Apply(apply) => {
                let input = self.decode_input(input)?;
                ctx.write(|state| apply(state, input));
                Arrival::Applied
            }
            SignalCode::Task(task) => Arrival::Task(task(ctx.clone(), self.decode_input(input)?)),
        })
    }
}
