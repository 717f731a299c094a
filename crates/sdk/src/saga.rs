//! Sagas: steps in other systems that are undone when a later step fails. A saga is ordinary
//! workflow code, so replay restores it after every crash; it records nothing of its own.

use serde::{Deserialize, Serialize};

use abide_core::failure;

use crate::{
    context::Context,
    error::{Error, Result},
    failure::Failure,
    future::LocalBoxFuture,
    join_all, payload,
    returned::BoxError,
};

/// The error type of a failure that says which steps could not be undone.
const ERROR_TYPE: &str = "SagaNotUndone";

/// How many steps a message names before it only counts them.
const NAMED: usize = 5;

/// Steps that are undone when a later one fails, or when the run is asked to cancel itself.
///
/// ```
/// # use abide_sdk::{ActivityDef, Context, Result, Saga};
/// # async fn example<W>(
/// #     ctx: &Context<W>,
/// #     book_room: ActivityDef<(), (String,), u32>,
/// #     release_room: ActivityDef<(), (u32,), ()>,
/// #     charge: ActivityDef<(), (u32,), ()>,
/// # ) -> Result<u32> {
/// let room = Saga::new().run(ctx, async |saga| {
///     let room = ctx.activity(book_room, "Ada").await?;
///     saga.undo("release the room", ctx.activity(release_room, room));
///     ctx.activity(charge, room).await?;
///     Ok(room)
/// });
/// # room.await
/// # }
/// ```
///
/// A cancel request ends the step in flight, and then all steps are undone; it does not reach the
/// code that undoes them.
#[derive(Default)]
#[must_use = "a saga does nothing until it is run"]
pub struct Saga {
    undos: Vec<Undo>,
    at_once: bool,
}

/// The code that undoes one step. It starts when it is first polled.
struct Undo {
    step: String,
    action: LocalBoxFuture<'static, Result<()>>,
}

/// A saga failed, and not all of its steps could be undone.
#[derive(Debug, thiserror::Error)]
#[error("{cause}; {}", told(undo_failures))]
#[non_exhaustive]
pub struct SagaFailure {
    /// The failure of the step, or the cancellation.
    pub cause: Error,
    /// The steps that remain, in the order in which they were to be undone.
    pub undo_failures: Vec<UndoFailure>,
}

/// A step that could not be undone.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UndoFailure {
    /// The name given to [`Saga::undo`].
    pub step: String,
    /// Why it could not be undone.
    pub failure: Failure,
}

impl Saga {
    /// A saga that is undone step by step, the last step first.
    pub fn new() -> Self {
        Self::default()
    }

    /// Undoes all steps at once instead.
    pub fn undo_at_once(mut self) -> Self {
        self.at_once = true;
        self
    }

    /// Adds the code that undoes a step:
    /// `saga.undo("release the room", ctx.activity(release, room))`, or an async block. It starts
    /// only when the saga is undone.
    ///
    /// If the failure of a step does not say whether it took effect, such as an activity that timed
    /// out, it is safer to add its undo before the step starts.
    pub fn undo<F, T, E>(&mut self, step: impl Into<String>, undo: F)
    where
        F: IntoFuture<Output = Result<T, E>, IntoFuture: 'static>,
        E: Into<BoxError> + 'static,
    {
        let undo = undo.into_future();
        let action = async move { undo.await.map(drop).map_err(Error::from_source) };
        self.undos.push(Undo { step: step.into(), action: Box::pin(action) });
    }

    /// Runs the steps, and undoes those that ran if one of them fails or is cancelled. The error is
    /// that of the steps, or [`Error::Saga`] if not all could be undone.
    ///
    /// Steps that continue as new are not undone, and the next run does not know them.
    pub async fn run<W, T>(
        mut self,
        ctx: &Context<W>,
        steps: impl AsyncFnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let cause = match steps(&mut self).await {
            Ok(value) => return Ok(value),
            Err(next @ Error::ContinueAsNew(_)) => return Err(next),
            Err(cause) => cause,
        };
        let undo_failures = self.undo_all(ctx).await;
        if undo_failures.is_empty() {
            return Err(cause);
        }
        Err(Error::Saga(Box::new(SagaFailure { cause, undo_failures })))
    }

    /// Undoes all steps so far, and returns those that could not be undone. A failure does not stop
    /// the others; each step is undone once, however often this is called.
    pub async fn undo_all<W>(&mut self, ctx: &Context<W>) -> Vec<UndoFailure> {
        let undos = std::mem::take(&mut self.undos).into_iter().rev();
        let at_once = self.at_once;
        ctx.shield(async move {
            if at_once {
                return join_all(undos.map(Undo::run)).await.into_iter().flatten().collect();
            }
            let mut undo_failures = Vec::new();
            for undo in undos {
                undo_failures.extend(undo.run().await);
            }
            undo_failures
        })
        .await
    }
}

impl Undo {
    async fn run(self) -> Option<UndoFailure> {
        let failure = self.action.await.err()?.to_failure().into();
        Some(UndoFailure { step: self.step, failure })
    }
}

impl SagaFailure {
    /// The failure that history records: the failure of the saga as its cause, and the remaining
    /// steps in its details.
    pub(crate) fn to_failure(&self) -> failure::Failure {
        let written: Vec<_> = self.undo_failures.iter().map(Written::from).collect();
        failure::Failure {
            message: self.to_string(),
            error_type: ERROR_TYPE.into(),
            details: payload::encode(&written).unwrap_or_default(),
            causes: self.cause.to_failure().into(),
            ..failure::Failure::default()
        }
    }
}

impl UndoFailure {
    /// The steps that could not be undone, from the failure of a run or of a child; empty if the
    /// failure names none.
    pub fn in_failure(failure: &Failure) -> Vec<Self> {
        let told = failure.chain().filter(|failure| failure.error_type() == ERROR_TYPE);
        let read = |failure: &Failure| payload::decode::<Vec<Written>>(failure.details()).ok();
        told.filter_map(read).flatten().map(Self::from).collect()
    }
}

impl std::fmt::Debug for Saga {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let steps: Vec<_> = self.undos.iter().map(|undo| &undo.step).collect();
        f.debug_struct("Saga").field("steps", &steps).field("at_once", &self.at_once).finish()
    }
}

/// A step that could not be undone, as encoded in the details of a failure.
#[derive(Serialize, Deserialize)]
struct Written {
    step: String,
    /// The message of the failure, and those of its causes.
    messages: Vec<String>,
    error_type: String,
}

impl From<&UndoFailure> for Written {
    fn from(UndoFailure { step, failure }: &UndoFailure) -> Self {
        let messages = failure.chain().map(|failure| failure.message().to_owned()).collect();
        Self { step: step.clone(), messages, error_type: failure.error_type().to_owned() }
    }
}

impl From<Written> for UndoFailure {
    fn from(Written { step, messages, error_type }: Written) -> Self {
        let said = |message| failure::Failure { message, ..failure::Failure::default() };
        let mut messages = messages.into_iter().map(said);
        let failure = messages.next().unwrap_or_default();
        let failure = failure::Failure { error_type, causes: messages.collect(), ..failure };
        Self { step, failure: failure.into() }
    }
}

/// The first steps by name, the rest by number: a message is for people, and has a bound.
fn told(undo_failures: &[UndoFailure]) -> String {
    let told = |UndoFailure { step, failure }: &UndoFailure| format!("{step} ({failure})");
    let mut shown: Vec<_> = undo_failures.iter().take(NAMED).map(told).collect();
    if let Some(more) = undo_failures.len().checked_sub(NAMED).filter(|more| *more > 0) {
        shown.push(format!("and {more} more"));
    }
    format!("not undone: {}", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_names_some_steps_and_the_details_have_all() {
        let step = |number: usize| UndoFailure {
            step: format!("step {number}"),
            failure: failure::Failure { message: "no".into(), ..Default::default() }.into(),
        };
        let undo_failures: Vec<_> = (0..100).map(step).collect();
        let saga = SagaFailure { cause: Error::Cancelled, undo_failures: undo_failures.clone() };
        let failure = saga.to_failure();
        let message = "cancelled; not undone: step 0 (no), step 1 (no), step 2 (no), step 3 (no), \
                       step 4 (no), and 95 more";
        assert_eq!(failure.message, message);
        assert_eq!(UndoFailure::in_failure(&failure.into()), undo_failures);
    }
}
