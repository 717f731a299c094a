//! `join!` and `try_join!`: several futures of different types at once.

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    task::{Context, Poll},
};

/// Runs up to eight futures at once and returns a tuple of their outputs. They are polled in the
/// order in which they are written.
///
/// ```
/// # use abide_sdk::{ActivityDef, Context, Result, join};
/// # async fn example<W>(ctx: &Context<W>, fetch: ActivityDef<(), (u32,), u32>) -> Result<u32> {
/// let (left, right) = join!(ctx.activity(fetch, 1), ctx.activity(fetch, 2));
/// # Ok(left? + right?)
/// # }
/// ```
#[macro_export]
macro_rules! join {
    ($($future:expr),+ $(,)?) => {
        match ($(::std::pin::pin!(::std::future::IntoFuture::into_future($future)),)+) {
            futures => $crate::join_macro::Joined::join(futures).await,
        }
    };
}

/// Runs up to eight fallible futures at once, and returns a tuple of their values, or the first
/// failure. A failure drops the others, which cancels what they wait for. All failures have the
/// same type.
///
/// ```
/// # use abide_sdk::{ActivityDef, Context, Result, try_join};
/// # async fn example<W>(ctx: &Context<W>, fetch: ActivityDef<(), (u32,), u32>) -> Result<u32> {
/// let (left, right) = try_join!(ctx.activity(fetch, 1), ctx.activity(fetch, 2))?;
/// # Ok(left + right)
/// # }
/// ```
#[macro_export]
macro_rules! try_join {
    ($($future:expr),+ $(,)?) => {{
        let joined = match ($(::std::pin::pin!(::std::future::IntoFuture::into_future($future)),)+) {
            futures => $crate::join_macro::TryJoined::try_join(futures).await,
        };
        joined
    }};
}

/// Pinned futures that are all awaited.
pub trait Joined {
    /// A tuple of their outputs.
    type Output;

    /// Waits for all of them.
    fn join(self) -> impl Future<Output = Self::Output>;
}

/// Pinned futures that are all awaited, unless one fails.
pub trait TryJoined {
    /// A tuple of their values.
    type Values;
    /// The error type that they share.
    type Error;

    /// Waits for all of them, or for the first failure.
    fn try_join(self) -> impl Future<Output = Result<Self::Values, Self::Error>>;
}

/// A future, or its output.
enum Part<F: Future> {
    Waits(F),
    Done(F::Output),
    Taken,
}

impl<F: Future + Unpin> Part<F> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Self::Waits(future) = self {
            match Pin::new(future).poll(cx) {
                Poll::Ready(output) => *self = Self::Done(output),
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Ready(())
    }

    fn take(&mut self) -> Option<F::Output> {
        match std::mem::replace(self, Self::Taken) {
            Self::Done(output) => Some(output),
            Self::Waits(_) | Self::Taken => None,
        }
    }
}

macro_rules! joined {
    ($(($($name:ident $value:ident $part:ident $index:tt),+))+) => {$(
        impl<$($name: Future + Unpin),+> Joined for ($($name,)+) {
            type Output = ($($name::Output,)+);

            async fn join(self) -> Self::Output {
                let ($(mut $part,)+) = ($(Part::Waits(self.$index),)+);
                poll_fn(|cx| {
                    let polled = [$($part.poll(cx)),+];
                    if polled.iter().any(Poll::is_pending) {
                        return Poll::Pending;
                    }
                    match ($($part.take(),)+) {
                        ($(Some($part),)+) => Poll::Ready(($($part,)+)),
                        _ => Poll::Pending,
                    }
                })
                .await
            }
        }

        impl<Z, $($name, $value),+> TryJoined for ($($name,)+)
        where
            $($name: Future<Output = Result<$value, Z>> + Unpin),+
        {
            type Values = ($($value,)+);
            type Error = Z;

            async fn try_join(self) -> Result<Self::Values, Z> {
                let ($(mut $part,)+) = ($(Part::Waits(self.$index),)+);
                poll_fn(|cx| {
                    let mut waits = false;
                    $(
                        waits |= $part.poll(cx).is_pending();
                        if let Part::Done(Err(_)) = &$part {
                            if let Some(Err(error)) = $part.take() {
                                return Poll::Ready(Err(error));
                            }
                        }
                    )+
                    if waits {
                        return Poll::Pending;
                    }
                    match ($($part.take(),)+) {
                        ($(Some(Ok($part)),)+) => Poll::Ready(Ok(($($part,)+))),
                        _ => Poll::Pending,
                    }
                })
                .await
            }
        }
    )+};
}

joined! {
    (A S a 0)
    (A S a 0, B T b 1)
    (A S a 0, B T b 1, C U c 2)
    (A S a 0, B T b 1, C U c 2, D V d 3)
    (A S a 0, B T b 1, C U c 2, D V d 3, E W e 4)
    (A S a 0, B T b 1, C U c 2, D V d 3, E W e 4, F X f 5)
    (A S a 0, B T b 1, C U c 2, D V d 3, E W e 4, F X f 5, G Y g 6)
    (A S a 0, B T b 1, C U c 2, D V d 3, E W e 4, F X f 5, G Y g 6, H Q h 7)
}
