//! `select!`: the first of several futures.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

/// Waits for the first of several futures and runs its branch.
///
/// The futures are polled in the order in which they are written, so that of two that are ready the
/// first wins, also on replay. The others are dropped before the branch runs, which gives up what
/// they wait for. A branch may use `?`, `return` and `break`; its pattern must always match.
///
/// ```
/// # use std::time::Duration;
/// # use abide_sdk::{Context, Result, SignalDef, select};
/// # async fn example<W>(ctx: &Context<W>, paid: SignalDef<W, (u32,)>) -> Result<Option<u32>> {
/// select! {
///     payment = ctx.receive(paid) => Ok(Some(payment?)),
///     slept = ctx.sleep(Duration::from_secs(60)) => {
///         slept?;
///         Ok(None)
///     }
/// }
/// # }
/// ```
#[macro_export]
macro_rules! select {
    // All branches are parsed: wait, then match.
    (@read [$(($pattern:pat, $future:expr, $body:expr))+]) => {{
        let selected = match $crate::select!(@pinned $($future),+) {
            mut branches => ::std::future::poll_fn(|cx| {
                $crate::select_macro::Branches::poll_first(&mut branches, cx)
            })
            .await,
        };
        $crate::select!(@match selected; $(($pattern, $body))+)
    }};
    // Parses one branch.
    (@read [$($read:tt)*] $pattern:pat = $future:expr => $body:block, $($rest:tt)*) => {
        $crate::select!(@read [$($read)* ($pattern, $future, $body)] $($rest)*)
    };
    (@read [$($read:tt)*] $pattern:pat = $future:expr => $body:block $($rest:tt)*) => {
        $crate::select!(@read [$($read)* ($pattern, $future, $body)] $($rest)*)
    };
    (@read [$($read:tt)*] $pattern:pat = $future:expr => $body:expr, $($rest:tt)*) => {
        $crate::select!(@read [$($read)* ($pattern, $future, $body)] $($rest)*)
    };
    (@read [$($read:tt)*] $pattern:pat = $future:expr => $body:expr) => {
        $crate::select!(@read [$($read)* ($pattern, $future, $body)])
    };
    // The futures as nested pairs.
    (@pinned $future:expr) => {
        ::std::pin::pin!(::std::future::IntoFuture::into_future($future))
    };
    (@pinned $future:expr, $($rest:expr),+) => {
        ($crate::select!(@pinned $future), $crate::select!(@pinned $($rest),+))
    };
    // The branch of the future that was ready.
    (@match $selected:expr; ($pattern:pat, $body:expr)) => {
        match $selected {
            $pattern => $body,
        }
    };
    (@match $selected:expr; ($pattern:pat, $body:expr) $($rest:tt)+) => {
        match $selected {
            $crate::select_macro::Either::First($pattern) => $body,
            $crate::select_macro::Either::Other(other) => $crate::select!(@match other; $($rest)+),
        }
    };
    ($($branches:tt)+) => {
        $crate::select!(@read [] $($branches)+)
    };
}

/// The output of the first of several futures, or of one of the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Either<A, B> {
    /// The first future was ready.
    First(A),
    /// One of the other futures was ready.
    Other(B),
}

/// Pinned futures of which one is awaited: one, or a pair of the first and the others.
pub trait Branches {
    /// The output of the future that is ready first.
    type Output;

    /// Polls in order until one is ready.
    fn poll_first(&mut self, cx: &mut Context<'_>) -> Poll<Self::Output>;
}

impl<A: Future> Branches for Pin<&mut A> {
    type Output = A::Output;

    fn poll_first(&mut self, cx: &mut Context<'_>) -> Poll<A::Output> {
        self.as_mut().poll(cx)
    }
}

impl<A: Future, B: Branches> Branches for (Pin<&mut A>, B) {
    type Output = Either<A::Output, B::Output>;

    fn poll_first(&mut self, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.0.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Either::First(output)),
            Poll::Pending => self.1.poll_first(cx).map(Either::Other),
        }
    }
}
