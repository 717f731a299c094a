//! A window that slides over work without end: a constant number under way.

use std::{
    collections::VecDeque,
    fmt,
    future::{Future, IntoFuture, poll_fn},
    task::{Context, Poll},
};

use super::crowd::Crowd;

/// Keeps at most so many futures under way: the next begins when any has ended. For sources that have
/// no end, or whose pages must be fetched; for items that are all there,
/// [`Context::map_bounded`](crate::Context::map_bounded) is shorter.
///
/// Outputs come in the order in which the futures end. Before a run continues as new it empties its
/// window. Dropping the window drops what is under way, which cancels it.
///
/// ```
/// # use abide_sdk::{ActivityDef, Context, Result, Window};
/// # async fn example<W>(
/// #     ctx: &Context<W>,
/// #     fetch: ActivityDef<(), u32, Vec<u32>>,
/// #     work: ActivityDef<(), u32, ()>,
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
    crowd: Crowd<F>,
    /// Those that have ended and were not given yet, oldest first.
    ended: VecDeque<F::Output>,
    count: u64,
}

impl<F: Future> Window<F> {
    /// A window for so many futures; zero counts as one.
    pub fn new(limit: usize) -> Self {
        Self { limit: limit.max(1), crowd: Crowd::new(), ended: VecDeque::new(), count: 0 }
    }

    /// How many are under way.
    pub fn len(&self) -> usize {
        self.crowd.len()
    }

    /// Nothing is under way, and every output was given.
    pub fn is_empty(&self) -> bool {
        self.crowd.len() == 0 && self.ended.is_empty()
    }

    /// Begins one more, after waiting for one to end if the window is full. Gives an output, if one is
    /// there.
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

    /// Waits for the next that ends; none if nothing is under way.
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

    /// Polls all that were woken, and keeps the outputs of those that have ended.
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
