//! A call of an activity's function: the future that runs the code, which carries the definition in
//! its type. So the function stays a function, and its name stands for the activity.

use std::{
    fmt,
    future::Future,
    marker::PhantomData,
    panic::Location,
    pin::Pin,
    task::{Context, Poll},
};

use super::ActivityDef;
use crate::{arguments::ArgumentList, executor, future::BoxFuture};

/// A type that stands for an activity: number `N` of the activities that share the state `Self`.
/// Implemented by `#[activity]` and `#[activities]`.
pub trait Defines<const N: usize>: 'static {
    /// The state that it shares with other activities; `()` if none.
    type State: 'static;
    /// The types of its arguments, as a tuple.
    type Arguments: ArgumentList;
    /// The type of its result, without the `Result` around it.
    type Value: 'static;
    /// What the function returns.
    type Output;

    /// The activity as a value.
    const DEFINITION: ActivityDef<Self::State, Self::Arguments, Self::Value>;
}

/// A call of a function that is an activity.
#[diagnostic::on_unimplemented(
    message = "this function is not an activity",
    note = "put `#[activity]` on it"
)]
pub trait Call: Future + Send {
    /// The state that the activity shares with others; `()` if none.
    type State: 'static;
    /// The types of its arguments, as a tuple.
    type Arguments: ArgumentList;
    /// The type of its result, without the `Result` around it.
    type Value: 'static;

    /// The activity as a value.
    const DEFINITION: ActivityDef<Self::State, Self::Arguments, Self::Value>;
}

/// The future of an activity's function. It runs the code directly: in a unit test, or in other
/// code outside workflows. Workflow code that awaits it is stopped, because the code would run
/// again on every replay: workflows call `ctx.activity(name, arguments)`.
#[must_use = "nothing happens until it is awaited"]
pub struct Running<'a, D: Defines<N>, const N: usize = 0> {
    code: BoxFuture<'a, D::Output>,
    called_at: &'static Location<'static>,
    definition: PhantomData<fn() -> D>,
}

impl<'a, D: Defines<N>, const N: usize> Running<'a, D, N> {
    /// A call that runs this code.
    #[track_caller]
    pub fn new(code: impl Future<Output = D::Output> + Send + 'a) -> Self {
        Self { code: Box::pin(code), called_at: Location::caller(), definition: PhantomData }
    }
}

impl<D: Defines<N>, const N: usize> Future for Running<'_, D, N> {
    type Output = D::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<D::Output> {
        if executor::runs_here() {
            executor::stop_awaited_activity(D::DEFINITION.name(), self.called_at);
        }
        self.code.as_mut().poll(cx)
    }
}

impl<D: Defines<N>, const N: usize> Call for Running<'_, D, N> {
    type State = D::State;
    type Arguments = D::Arguments;
    type Value = D::Value;

    const DEFINITION: ActivityDef<D::State, D::Arguments, D::Value> = D::DEFINITION;
}

impl<D: Defines<N>, const N: usize> fmt::Debug for Running<'_, D, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "call of {:?}", D::DEFINITION)
    }
}
