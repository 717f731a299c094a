//! Runs the same code for every item, with a bounded number at a time.

use std::{
    collections::BTreeMap,
    future::{IntoFuture, poll_fn},
    ops::ControlFlow,
};

use super::future_set::FutureSet;
use crate::context::Context;

impl<W> Context<W> {
    /// Runs `map` for every item, at most `limit` at a time, and returns the outputs in the order
    /// of the items. The next one starts when any has ended; an item is taken from its source only
    /// then.
    ///
    /// It runs in its own [scope](Context::scope), so a cancel request ends those in flight, and
    /// the rest never start. A limit of zero counts as one.
    ///
    /// ```
    /// # use abide_sdk::{ActivityDef, Context, Result};
    /// # async fn example<W>(ctx: &Context<W>, resize: ActivityDef<(), (u32,), u32>) -> Result<usize> {
    /// let resized = ctx.map_bounded(20, 0..5_000, |image| ctx.activity(resize, image)).await;
    /// Ok(resized.iter().filter(|result| result.is_ok()).count())
    /// # }
    /// ```
    pub async fn map_bounded<I, F: IntoFuture>(
        &self,
        limit: usize,
        items: impl IntoIterator<Item = I>,
        map: impl FnMut(I) -> F,
    ) -> Vec<F::Output> {
        let mut outputs = BTreeMap::new();
        let each = for_each(limit, items, map, |number, output| {
            outputs.insert(number, output);
            ControlFlow::<()>::Continue(())
        });
        self.scope(each).await;
        outputs.into_values().collect()
    }

    /// As [`Context::map_bounded`], for code that can fail: the first failure drops all futures in
    /// flight, which cancels them, and the rest never start.
    pub async fn try_map_bounded<I, F, T, E>(
        &self,
        limit: usize,
        items: impl IntoIterator<Item = I>,
        map: impl FnMut(I) -> F,
    ) -> Result<Vec<T>, E>
    where
        F: IntoFuture<Output = Result<T, E>>,
    {
        let mut outputs = BTreeMap::new();
        let each = for_each(limit, items, map, |number, output| match output {
            Ok(value) => {
                outputs.insert(number, value);
                ControlFlow::Continue(())
            }
            Err(error) => ControlFlow::Break(error),
        });
        match self.scope(each).await {
            Some(error) => Err(error),
            None => Ok(outputs.into_values().collect()),
        }
    }
}

/// Runs `map` on the items, and passes each output on, until there are no more or one breaks off.
async fn for_each<I, F: IntoFuture, B>(
    limit: usize,
    items: impl IntoIterator<Item = I>,
    mut map: impl FnMut(I) -> F,
    mut ended: impl FnMut(u64, F::Output) -> ControlFlow<B>,
) -> Option<B> {
    let mut items = (0..).zip(items).fuse();
    let mut crowd = FutureSet::new();
    loop {
        while crowd.len() < limit.max(1) {
            let Some((number, item)) = items.next() else { break };
            crowd.add(number, map(item).into_future());
        }
        let (number, output) = poll_fn(|cx| crowd.poll_next(cx)).await?;
        if let ControlFlow::Break(value) = ended(number, output) {
            return Some(value);
        }
    }
}
