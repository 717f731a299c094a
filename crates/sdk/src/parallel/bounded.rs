//! The same for every item, so many at a time.

use std::{
    collections::BTreeMap,
    future::{IntoFuture, poll_fn},
    ops::ControlFlow,
};

use super::crowd::Crowd;
use crate::context::Context;

impl<W> Context<W> {
    /// Does the same for every item, at most `limit` at a time, and gives what came of each in the order
    /// of the items. The next one begins when any has ended; items are taken from their source only
    /// then.
    ///
    /// It runs in a [scope](Context::scope) of its own, so a cancel request ends those that are under
    /// way, and the rest never begin. A limit of zero counts as one.
    ///
    /// ```
    /// # use abide_sdk::{ActivityDef, Context, Result};
    /// # async fn example<W>(ctx: &Context<W>, resize: ActivityDef<(), u32, u32>) -> Result<usize> {
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

    /// As [`Context::map_bounded`], for what can fail: with the first failure all that is under way is
    /// dropped, which cancels it, and the rest never begin.
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

/// Runs what `map` makes of the items, and shows each end, until there are no more or one breaks off.
async fn for_each<I, F: IntoFuture, B>(
    limit: usize,
    items: impl IntoIterator<Item = I>,
    mut map: impl FnMut(I) -> F,
    mut ended: impl FnMut(u64, F::Output) -> ControlFlow<B>,
) -> Option<B> {
    let mut items = (0..).zip(items).fuse();
    let mut crowd = Crowd::new();
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
