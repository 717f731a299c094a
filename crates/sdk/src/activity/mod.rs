//! Activities: async functions with side effects, as values that a workflow calls and a worker
//! runs.

mod call;
mod cancel;
mod context;
mod error;
mod local;
mod named;

use std::{fmt, sync::Arc};

use abide_core::{
    failure,
    payload::{Payload, Payloads},
};

use self::error::ErrorMeaning;
pub use self::{
    call::{Call, Defines, Running},
    cancel::{CancelToken, Cancelled},
    context::{ActivityContext, ActivityInfo, AttemptLink},
    error::ActivityError,
    local::{LocalActivity, LocalEnd, LocalVerdict},
    named::Activity,
};
use crate::{
    arguments::ArgumentList,
    failure::Failure,
    future::BoxFuture,
    payload::{self, Arguments, PayloadError, PayloadValue},
    returned::ReturnedError,
};

/// The code of an activity.
pub type ActivityFn<S, I, O> =
    for<'a> fn(&'a S, ActivityContext, I) -> BoxFuture<'a, Result<O, ReturnedError>>;

/// An activity as a value: shared state `S`, arguments of types `I`, result `O`. Made by
/// `#[activity]`.
pub struct ActivityDef<S: 'static, I: ArgumentList, O: 'static> {
    name: &'static str,
    arguments: Arguments<I>,
    code: ActivityFn<S, I::Value, O>,
}

impl<S, I: ArgumentList, O> Clone for ActivityDef<S, I, O> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S, I: ArgumentList, O> Copy for ActivityDef<S, I, O> {}

impl<S, I: ArgumentList, O> ActivityDef<S, I, O> {
    /// An activity with this registered name.
    #[doc(hidden)]
    pub const fn new(
        name: &'static str,
        arguments: Arguments<I>,
        code: ActivityFn<S, I::Value, O>,
    ) -> Self {
        Self { name, arguments, code }
    }

    /// The name under which the activity is registered and recorded in history.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Encodes the arguments, one payload each.
    pub fn encode(&self, input: &I::Value) -> Result<Payloads, PayloadError> {
        self.arguments.encode(input).map_err(|error| error.of(self.input_subject()))
    }

    fn input_subject(&self) -> String {
        format!("input of activity {}", self.name)
    }

    pub(crate) fn decode_input(&self, input: &[Payload]) -> Result<I::Value, PayloadError> {
        self.arguments.decode(input).map_err(|error| error.of(self.input_subject()))
    }
}

impl<S, I: ArgumentList, O: PayloadValue> ActivityDef<S, I, O> {
    /// Decodes a result from the payloads that history records.
    pub fn decode(&self, result: &[Payload]) -> Result<O, PayloadError> {
        payload::decode(result)
            .map_err(|error: PayloadError| error.of(format!("result of activity {}", self.name)))
    }
}

impl<S, I: ArgumentList, O> fmt::Debug for ActivityDef<S, I, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "activity {}", self.name)
    }
}

/// Activities that share state. Made by `#[activities]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no activities",
    note = "put `#[activities]` on its impl block and `#[activity]` on the methods"
)]
pub trait Activities: Send + Sync + Sized + 'static {
    /// All activities of the impl block.
    #[doc(hidden)]
    const ACTIVITIES: &'static [&'static dyn ActivityHandler<Self>];
}

/// An activity without the types of its arguments and result.
pub trait ActivityHandler<S>: Send + Sync {
    /// The name under which the activity is registered.
    fn name(&self) -> &'static str;

    /// Combines the activity with its state, ready to run.
    fn bind(&self, shared: Arc<S>) -> Arc<dyn ActivityCode>;
}

/// An activity as a worker runs it.
pub trait ActivityCode: Send + Sync {
    /// Runs one attempt. The future may panic if the activity does.
    fn run(&self, ctx: ActivityContext, input: Payloads) -> BoxFuture<'static, ActivityEnd>;
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ActivityEnd {
    /// The activity returned this result.
    Completed(Payloads),
    /// The activity returned an error; it is retried as policy and error say.
    Failed(Failure),
    /// The activity stopped because it was asked to.
    Cancelled(Payloads),
    /// Still open: another process completes it.
    Later,
}

impl ActivityEnd {
    /// The end that matches an activity's return value.
    pub(crate) fn of<O: PayloadValue>(result: Result<O, ReturnedError>) -> Self {
        match result.map(|value| payload::encode(&value)) {
            Ok(Ok(result)) => Self::Completed(result),
            Ok(Err(error)) => {
                Self::Failed(ReturnedError::new(error.of("result")).into_failure().into())
            }
            Err(returned) => match returned.find().map(ActivityError::ending) {
                Some(ErrorMeaning::Cancelled(details)) => Self::Cancelled(details.clone()),
                Some(ErrorMeaning::Later) => Self::Later,
                Some(ErrorMeaning::Failed) | None => Self::Failed(returned.into_failure().into()),
            },
        }
    }

    /// The failure of an attempt whose arguments cannot be decoded: a retry is useless.
    pub(crate) fn unreadable(error: PayloadError) -> Self {
        let failure = ReturnedError::new(error).into_failure();
        Self::Failed(failure::Failure { non_retryable: true, ..failure }.into())
    }
}

impl<S, I, O> ActivityHandler<S> for ActivityDef<S, I, O>
where
    S: Send + Sync + 'static,
    I: ArgumentList<Value: Send>,
    O: PayloadValue,
{
    fn name(&self) -> &'static str {
        self.name
    }

    fn bind(&self, shared: Arc<S>) -> Arc<dyn ActivityCode> {
        Arc::new(BoundActivity { definition: *self, shared })
    }
}

struct BoundActivity<S: 'static, I: ArgumentList, O: 'static> {
    definition: ActivityDef<S, I, O>,
    shared: Arc<S>,
}

impl<S, I, O> ActivityCode for BoundActivity<S, I, O>
where
    S: Send + Sync + 'static,
    I: ArgumentList<Value: Send>,
    O: PayloadValue,
{
    fn run(&self, ctx: ActivityContext, input: Payloads) -> BoxFuture<'static, ActivityEnd> {
        let (definition, shared) = (self.definition, self.shared.clone());
        Box::pin(async move {
            match definition.decode_input(&input) {
                Ok(input) => ActivityEnd::of((definition.code)(&shared, ctx, input).await),
                Err(error) => ActivityEnd::unreadable(error),
            }
        })
    }
}
