//! Updates: input that code may refuse, and that has an outcome.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
};

use abide_core::{
    failure::Failure,
    payload::{Payload, Payloads},
};

use super::definition;
use crate::{
    context::Context,
    future::LocalBoxFuture,
    panic::message,
    payload::{self, Arguments, Data, PayloadError},
    raised::Raised,
};

/// An update as a value: of workflow `W`, with arguments `I` and result `O`.
pub struct UpdateDef<W: 'static, I: 'static, O: 'static> {
    name: &'static str,
    arguments: Arguments<I>,
    validate: Option<Validator<W, I>>,
    code: UpdateCode<W, I, O>,
}

/// Judges an update by the state and the arguments, and changes neither. It is part of the workflow's
/// code: it runs again on replay.
pub type Validator<W, I> = fn(&W, &I) -> Result<(), Raised>;

/// What carries out an accepted update.
pub enum UpdateCode<W: 'static, I: 'static, O: 'static> {
    /// A change of the state, at once.
    Apply(fn(&mut W, I) -> Result<O, Raised>),
    /// A task of its own.
    Task(fn(Context<W>, I) -> LocalBoxFuture<'static, Result<O, Raised>>),
}

definition!(UpdateDef<W, I, O>, "update");

impl<W, I, O> Clone for UpdateCode<W, I, O> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<W, I, O> Copy for UpdateCode<W, I, O> {}

impl<W, I, O> UpdateDef<W, I, O> {
    /// An update of this wire name.
    pub const fn new(
        name: &'static str,
        arguments: Arguments<I>,
        code: UpdateCode<W, I, O>,
    ) -> Self {
        Self { name, arguments, validate: None, code }
    }

    /// The same update, refused where `validate` says so.
    #[must_use]
    pub const fn validated(mut self, validate: Validator<W, I>) -> Self {
        self.validate = Some(validate);
        self
    }
}

impl<W, I, O: Data> UpdateDef<W, I, O> {
    fn panicked(&self, panic: &(dyn Any + Send)) -> Failure {
        let message = format!("validator of update {} panicked: {}", self.name, message(panic));
        Failure { message, error_type: "Panic".into(), ..Failure::default() }
    }

    /// The result as it was sent.
    pub fn decode(&self, result: &[Payload]) -> Result<O, PayloadError> {
        payload::decode(result)
            .map_err(|error: PayloadError| error.of(format!("result of update {}", self.name)))
    }
}

/// An update without the types of its arguments and result.
pub trait UpdateHandler<W>: Sync {
    /// The name on the wire.
    fn name(&self) -> &'static str;

    /// Reads the arguments and lets the validator judge them; on success calls `accept` and begins.
    /// A failure refuses the update, and so does a validator that panics.
    fn admit(
        &self,
        ctx: &Context<W>,
        input: &[Payload],
        accept: &mut dyn FnMut(),
    ) -> Result<UpdateProgress, Failure>;
}

/// How far an accepted update has come.
pub enum UpdateProgress {
    /// It has its outcome.
    Done(Result<Payloads, Failure>),
    /// A task is to be run, which gives the outcome.
    Task(LocalBoxFuture<'static, Result<Payloads, Failure>>),
}

impl<W, I, O: Data> UpdateHandler<W> for UpdateDef<W, I, O> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn admit(
        &self,
        ctx: &Context<W>,
        input: &[Payload],
        accept: &mut dyn FnMut(),
    ) -> Result<UpdateProgress, Failure> {
        let input = self.decode_input(input).map_err(|error| Raised::new(error).into_failure())?;
        if let Some(validate) = self.validate {
            // A validator leaves nothing behind, so one that panics has only refused the update.
            let judge = || ctx.look(|state| validate(state, &input));
            catch_unwind(AssertUnwindSafe(judge))
                .map_err(|panic| self.panicked(&*panic))?
                .map_err(Raised::into_failure)?;
        }
        accept();
        Ok(match self.code {
            UpdateCode::Apply(apply) => {
                UpdateProgress::Done(outcome(ctx.write(|state| apply(state, input))))
            }
            UpdateCode::Task(task) => {
                let task = task(ctx.clone(), input);
                UpdateProgress::Task(Box::pin(async move { outcome(task.await) }))
            }
        })
    }
}

fn outcome<O: Data>(result: Result<O, Raised>) -> Result<Payloads, Failure> {
    let encode = |value| payload::encode(&value).map_err(Raised::new);
    result.and_then(encode).map_err(Raised::into_failure)
}
