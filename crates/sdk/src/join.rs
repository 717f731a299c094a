//! `join!` and [`join_all`]: several futures at once.

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    task::{Context, Poll},
};

/// Runs up to eight futures at once and gives a tuple of their outputs. They are polled in the order in
/// which they are written.
///
/// ```
/// # use abide_sdk::{ActivityDef, Context, Result, join};
/// # async fn example<W>(ctx: &Context<W>, fetch: ActivityDef<(), u32, u32>) -> Result<u32> {
/// let (left, right) = join!(ctx.activity(fetch, 1), ctx.activity(fetch, 2));
/// # Ok(left? + right?)
/// # }
/// ```
#[macro_export]
macro_rules! join {
    ($($future:expr),+ $(,)?) => {
        match ($(::std::pin::pin!(::std::future::IntoFuture::into_future($future)),)+) {
            futures => $crate::join::Joined::join(futures).await,
        }
    };
}

/// Runs any number of futures at once and gives their outputs in the same order.
pub async fn join_all<F: IntoFuture>(futures: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    let pinned = futures.into_iter().map(|future| Box::pin(future.into_future()));
    let mut parts: Vec<_> = pinned.map(Part::Waits).collect();
    poll_fn(|cx| {
        let waiting = parts.iter_mut().filter_map(|part| part.poll(cx).is_pending().then_some(()));
        if waiting.count() == 0 { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    parts.iter_mut().filter_map(Part::take).collect()
}

/// Pinned futures of which all are wanted.
pub trait Joined {
    /// What they give.
    type Output;

    /// Waits for all of them.
    fn join(self) -> impl Future<Output = Self::Output>;
}

/// A future, or what it gave.
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
    ($(($($name:ident $part:ident $index:tt),+))+) => {$(
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
    )+};
}

joined! {
    (A a 0)
    (A a 0, B b 1)
    (A a 0, B b 1, C c 2)
    (A a 0, B b 1, C c 2, D d 3)
    (A a 0, B b 1, C c 2, D d 3, E e 4)
    (A a 0, B b 1, C c 2, D d 3, E e 4, F f 5)
    (A a 0, B b 1, C c 2, D d 3, E e 4, F f 5, G g 6)
    (A a 0, B b 1, C c 2, D d 3, E e 4, F f 5, G g 6, H h 7)
}
