//! What names an activity in code: its function, or its definition.

use super::{ActivityDef, Call};
use crate::arguments::ArgumentList;

/// Names an activity: a function with `#[activity]`, such as `greet` or `Shop::charge`, or a
/// definition. `M` tells the kinds of names apart; the compiler finds it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an activity",
    label = "not an activity",
    note = "put `#[activity]` on the function, and name it without calling it: \
            `ctx.activity(greet, name)`"
)]
pub trait Activity<M> {
    /// The state that it shares with other activities; `()` if none.
    type State: 'static;
    /// The types of its arguments, as a tuple.
    type Arguments: ArgumentList<Value = Self::Input>;
    /// Its arguments: `()`, the argument itself, or a tuple of several.
    type Input: 'static;
    /// The type of its result.
    type Output: 'static;

    /// Returns the activity as a value.
    fn definition(self) -> ActivityDef<Self::State, Self::Arguments, Self::Output>;
}

#[diagnostic::do_not_recommend]
impl<S, I: ArgumentList, O> Activity<Self> for ActivityDef<S, I, O> {
    type State = S;
    type Arguments = I;
    type Input = I::Value;
    type Output = O;

    fn definition(self) -> Self {
        self
    }
}

macro_rules! functions {
    ($(($($argument:ident)*))+) => {$(
        impl<F, C, $($argument),*> Activity<fn($($argument),*) -> C> for F
        where
            F: Fn($($argument),*) -> C,
            C: Call,
        {
            type State = C::State;
            type Arguments = C::Arguments;
            type Input = <C::Arguments as ArgumentList>::Value;
            type Output = C::Value;

            fn definition(self) -> ActivityDef<C::State, C::Arguments, C::Value> {
                C::DEFINITION
            }
        }
    )+};
}

// The state, the context and eight arguments.
functions! {
    ()
    (A1)
    (A1 A2)
    (A1 A2 A3)
    (A1 A2 A3 A4)
    (A1 A2 A3 A4 A5)
    (A1 A2 A3 A4 A5 A6)
    (A1 A2 A3 A4 A5 A6 A7)
    (A1 A2 A3 A4 A5 A6 A7 A8)
    (A1 A2 A3 A4 A5 A6 A7 A8 A9)
    (A1 A2 A3 A4 A5 A6 A7 A8 A9 A10)
}
