//! Updates: input that code may reject, and that has an outcome.

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
    arguments::ArgumentList,
    context::Context,
    future::LocalBoxFuture,
    panic::message,
    payload::{self, Arguments, PayloadError, PayloadValue},
    returned::ReturnedError,
};

/// An update as a value: of workflow `W`, with arguments of types `I` and result `O`.
pub struct UpdateDef<W: 'static, I: ArgumentList, O: 'static> {
    name: &'static str,
    arguments: Arguments<I>,
    validate: Option<Validator<W, I::Value>>,
    code: UpdateCode<W, I, O>,
}

/// Judges an update by the state and the arguments, and changes neither. It is part of the
/// workflow's code: it runs again on replay.
pub type Validator<W, I> = fn(&W, &I) -> Result<(), ReturnedError>;

/// The code of an update that runs as a task.
pub type UpdateTask<W, I, O> =
    fn(Context<W>, I) -> LocalBoxFuture<'static, Result<O, ReturnedError>>;

/// The handler of an accepted update.
pub enum UpdateCode<W: 'static, I: ArgumentList, O: 'static> {
    /// Changes the state at once.
    Apply(fn(&mut W, I::Value) -> Result<O, ReturnedError>),
    /// Runs as a task beside the run.
    Task(UpdateTask<W, I::Value, O>),
}

definition!(UpdateDef<W, I: ArgumentList, O>, "update");

impl<W, I: ArgumentList, O> Clone for UpdateCode<W, I, O> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<W, I: ArgumentList, O> Copy for UpdateCode<W, I, O> {}

impl<W, I: ArgumentList, O> UpdateDef<W, I, O> {
    /// An update with this name.
    #[doc(hidden)]
    pub const fn new(
        name: &'static str,
        arguments: Arguments<I>,
        code: UpdateCode<W, I, O>,
    ) -> Self {
        Self { name, arguments, validate: None, code }
    }

    /// The same update with a validator, which can reject it.
    #[must_use]
    #[doc(hidden)]
    pub const fn validated(mut self, validate: Validator<W, I::Value>) -> Self {
        self.validate = Some(validate);
        self
    }
}

impl<W, I: ArgumentList, O: PayloadValue> UpdateDef<W, I, O> {
    fn panicked(&self, panic: &(dyn Any + Send)) -> Failure {
        let message = format!("validator of update {} panicked: {}", self.name, message(panic));
        Failure { message, error_type: "Panic".into(), ..Failure::default() }
    }

    /// Decodes a result from its payloads.
    pub fn decode(&self, result: &[Payload]) -> Result<O, PayloadError> {
        payload::decode(result)
            .map_err(|error: PayloadError| error.of(format!("result of update {}", self.name)))
    }
}

/// An update without the types of its arguments and result.
pub trait UpdateHandler<W>: Sync {
    /// The name under which clients send the update.
    fn name(&self) -> &'static str;

    /// Decodes the arguments and runs the validator; on success calls `accept` and starts the
    /// handler. A failure rejects the update, and so does a validator that panics.
    fn admit(
        &self,
        ctx: &Context<W>,
        input: &[Payload],
        accept: &mut dyn FnMut(),
    ) -> Result<UpdateProgress, Failure>;
}

/// The progress of an accepted update.
pub enum UpdateProgress {
    /// The handler has finished with this outcome.
    Done(Result<Payloads, Failure>),
    /// The handler is this task, which returns the outcome.
    Task(LocalBoxFuture<'static, Result<Payloads, Failure>>),
}

impl<W, I: ArgumentList, O: PayloadValue> UpdateHandler<W> for UpdateDef<W, I, O> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn admit(
        &self,
        ctx: &Context<W>,
        input: &[Payload],
        accept: &mut dyn FnMut(),
    ) -> Result<UpdateProgress, Failure> {
        let input =
            self.decode_input(input).map_err(|error| ReturnedError::new(error).into_failure())?;
        if let Some(validate) = self.validate {
            // A validator has no effects, so one that panics has only rejected the update.
            let judge = || ctx.look(|state| validate(state, &input));
            catch_unwind(AssertUnwindSafe(judge))
                .map_err(|panic| self.panicked(&*panic))?
                .map_err(ReturnedError::into_failure)?;
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

fn outcome<O: PayloadValue>(result: Result<O, ReturnedError>) -> Result<Payloads, Failure> {
    let encode = |value| payload::encode(&value).map_err(ReturnedError::new);
    result.and_then(encode).map_err(ReturnedError::into_failure)
}
