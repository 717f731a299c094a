//! A sliding window over an endless source of work: a constant number in flight.

use std::{
    collections::VecDeque,
    fmt,
    future::{Future, IntoFuture, poll_fn},
    task::{Context, Poll},
};

use super::future_set::FutureSet;

/// Keeps at most a fixed number of futures in flight: the next starts when any has ended. Use it
/// for sources that have no end, or whose pages must be fetched; for items that are all known,
/// [`Context::map_bounded`](crate::Context::map_bounded) is shorter.
///
/// Outputs come in the order in which the futures end. Empty the window before the run continues as
/// new. Dropping the window drops the futures in flight, which cancels them.
///
/// ```
/// # use abide_sdk::{ActivityDef, Context, Result, Window};
/// # async fn example<W>(
/// #     ctx: &Context<W>,
/// #     fetch: ActivityDef<(), (u32,), Vec<u32>>,
/// #     work: ActivityDef<(), (u32,), ()>,
/// # ) -> Result<()> {
/// let mut window = Window::new(10);
/// for page in 0.. {
///     let items = ctx.activity(fetch, page).await?;
///     if items.is_empty() {
///         break;
///     }
///     for item in items {
///         if let Some(ended) = window.push(ctx.activity(work, item)).await {
///             ended?;
///         }
///     }
/// }
/// while let Some(ended) = window.next().await {
///     ended?;
/// }
/// # Ok(())
/// # }
/// ```
pub struct Window<F: Future> {
    limit: usize,
    crowd: FutureSet<F>,
    /// Outputs that have not been returned, oldest first.
    ended: VecDeque<F::Output>,
    count: u64,
}

impl<F: Future> Window<F> {
    /// A window for this many futures; zero counts as one.
    pub fn new(limit: usize) -> Self {
        Self { limit: limit.max(1), crowd: FutureSet::new(), ended: VecDeque::new(), count: 0 }
    }

    /// How many futures are in flight.
    pub fn len(&self) -> usize {
        self.crowd.len()
    }

    /// Whether no future is in flight and every output was returned.
    pub fn is_empty(&self) -> bool {
        self.crowd.len() == 0 && self.ended.is_empty()
    }

    /// Starts one more future, after waiting for one to end if the window is full. Returns an
    /// output, if there is one.
    pub async fn push(
        &mut self,
        future: impl IntoFuture<Output = F::Output, IntoFuture = F>,
    ) -> Option<F::Output> {
        poll_fn(|cx| self.poll_room(cx)).await;
        self.count += 1;
        self.crowd.add(self.count, future.into_future());
        poll_fn(|cx| {
            self.poll_woken(cx);
            Poll::Ready(self.ended.pop_front())
        })
        .await
    }

    /// Waits for the next output; none if no future is in flight.
    pub async fn next(&mut self) -> Option<F::Output> {
        poll_fn(|cx| {
            self.poll_woken(cx);
            match self.ended.pop_front() {
                None if self.crowd.len() > 0 => Poll::Pending,
                output => Poll::Ready(output),
            }
        })
        .await
    }

    fn poll_room(&mut self, cx: &Context<'_>) -> Poll<()> {
        self.poll_woken(cx);
        if self.crowd.len() < self.limit { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Polls all woken futures, and keeps the outputs of those that have ended.
    fn poll_woken(&mut self, cx: &Context<'_>) {
        while let Poll::Ready(Some((_, output))) = self.crowd.poll_next(cx) {
            self.ended.push_back(output);
        }
    }
}

impl<F: Future> fmt::Debug for Window<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Window").field("limit", &self.limit).field("len", &self.len()).finish()
    }
}
