//! The arguments of a definition: their types as a list, and what callers may pass for them.
//!
//! A caller passes `()` for no argument, the value itself for one, and a tuple for several. Text
//! may be passed as `&str`, and what can be cloned by reference. Other conversions are left to the
//! caller, so that literals such as `5`, `None` and `vec![]` get their types from the definition;
//! `collect()` and `into()` need theirs spelled out.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

/// The types of the arguments of a definition, as a tuple: `()`, `(A,)`, `(A, B)` and so on.
pub trait ArgumentList: Sized + 'static {
    /// The arguments as code gets them: `()`, the argument itself, or a tuple of several.
    type Value: 'static;
}

impl ArgumentList for () {
    type Value = ();
}

impl<A: 'static> ArgumentList for (A,) {
    type Value = A;
}

/// What a caller may pass for these arguments: `()` for none, the argument itself for one, a tuple
/// for several.
#[diagnostic::on_unimplemented(
    message = "expected the arguments `{I}`, found `{Self}`",
    label = "expected `{I}`",
    note = "pass `()` for no argument, the argument itself for one, a tuple for several"
)]
pub trait IntoArguments<I: ArgumentList> {
    /// The arguments as code gets them.
    fn into_arguments(self) -> I::Value;
}

impl IntoArguments<()> for () {
    fn into_arguments(self) {}
}

impl<A: 'static, T: IntoArgument<A>> IntoArguments<(A,)> for T {
    fn into_arguments(self) -> A {
        self.into_argument()
    }
}

/// What a caller may pass for an argument of type `T`: a `T`, a reference to one, or `&str` for text.
#[diagnostic::on_unimplemented(
    message = "expected an argument `{T}`, found `{Self}`",
    label = "expected `{T}`"
)]
pub trait IntoArgument<T> {
    /// The argument.
    fn into_argument(self) -> T;
}

impl<T> IntoArgument<T> for T {
    fn into_argument(self) -> T {
        self
    }
}

/// The argument is cloned; the caller keeps its own for the next step.
impl<T: Clone> IntoArgument<T> for &T {
    fn into_argument(self) -> T {
        self.clone()
    }
}

macro_rules! text {
    ($($from:ty => $to:ty),+ $(,)?) => {$(
        impl IntoArgument<$to> for $from {
            fn into_argument(self) -> $to {
                self.into()
            }
        }
    )+};
}

text! {
    &str => String,
    &str => Box<str>,
    &str => Arc<str>,
    &str => PathBuf,
    &Path => PathBuf,
}

macro_rules! several {
    ($(($($name:ident $passed:ident $index:tt),+))+) => {$(
        impl<$($name: 'static),+> ArgumentList for ($($name,)+) {
            type Value = Self;
        }

        impl<$($name: 'static, $passed: IntoArgument<$name>),+> IntoArguments<($($name,)+)>
            for ($($passed,)+)
        {
            fn into_arguments(self) -> ($($name,)+) {
                ($(self.$index.into_argument(),)+)
            }
        }
    )+};
}

several! {
    (A P 0, B Q 1)
    (A P 0, B Q 1, C R 2)
    (A P 0, B Q 1, C R 2, D S 3)
    (A P 0, B Q 1, C R 2, D S 3, E T 4)
    (A P 0, B Q 1, C R 2, D S 3, E T 4, F U 5)
    (A P 0, B Q 1, C R 2, D S 3, E T 4, F U 5, G V 6)
    (A P 0, B Q 1, C R 2, D S 3, E T 4, F U 5, G V 6, H W 7)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of<I: ArgumentList>(passed: impl IntoArguments<I>) -> I::Value {
        passed.into_arguments()
    }

    #[test]
    fn literals_get_their_types_from_the_definition() {
        of::<()>(());
        assert_eq!(of::<(u64,)>(5), 5);
        assert_eq!(of::<(Option<u8>,)>(None), None);
        assert_eq!(of::<(Vec<u8>,)>(vec![]), Vec::<u8>::new());
        assert_eq!(of::<((u8, u16),)>((1, 2)), (1, 2));
    }

    #[test]
    fn what_is_needed_again_is_passed_by_reference() {
        let (name, items) = ("Ada".to_owned(), vec![1_u8, 2]);
        assert_eq!(of::<(String, Vec<u8>)>((&name, &items)), (name, items));
    }

    #[test]
    fn text_is_passed_as_it_is_written() {
        assert_eq!(of::<(String,)>("Ada"), "Ada");
        assert_eq!(of::<(String,)>("Ada".to_owned()), "Ada");
        assert_eq!(of::<(String, u8)>(("Ada", 7)), ("Ada".to_owned(), 7));
        assert_eq!(of::<(PathBuf, Arc<str>)>(("a/b", "c")), (PathBuf::from("a/b"), "c".into()));
    }
}
