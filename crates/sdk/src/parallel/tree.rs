//! Reducing many values to one, level by level.

use std::future::IntoFuture;

use crate::{context::Context, select_macro::Either};

impl<W> Context<W> {
    /// Reduces values to one by a tree: groups of `fan_in` neighbours become one value each, at
    /// most `limit` groups at a time, until one value is left. A value that is alone in its group
    /// moves up unchanged; without values there is no result. The first failure cancels all groups
    /// in flight.
    ///
    /// Groups keep the order of the values, so `reduce` need not be commutative. A fan-in below two
    /// counts as two.
    ///
    /// ```
    /// # use abide_sdk::{ActivityDef, Context, Result};
    /// # async fn example<W>(
    /// #     ctx: &Context<W>,
    /// #     count: ActivityDef<(), (u32,), u64>,
    /// #     add: ActivityDef<(), (Vec<u64>,), u64>,
    /// # ) -> Result<u64> {
    /// let counts = ctx.try_map_bounded(50, 0..1_000, |shard| ctx.activity(count, shard)).await?;
    /// let total = ctx.reduce_tree(50, 10, counts, |group| ctx.activity(add, group)).await?;
    /// Ok(total.unwrap_or_default())
    /// # }
    /// ```
    pub async fn reduce_tree<T, F, E>(
        &self,
        limit: usize,
        fan_in: usize,
        values: impl IntoIterator<Item = T>,
        mut reduce: impl FnMut(Vec<T>) -> F,
    ) -> Result<Option<T>, E>
    where
        F: IntoFuture<Output = Result<T, E>>,
    {
        let mut values: Vec<T> = values.into_iter().collect();
        while values.len() > 1 {
            let groups = groups(values, fan_in.max(2));
            let level = self.try_map_bounded(limit, groups, |group| {
                let node = match <[T; 1]>::try_from(group) {
                    Ok([alone]) => Either::First(alone),
                    Err(group) => Either::Other(reduce(group).into_future()),
                };
                async {
                    match node {
                        Either::First(alone) => Ok(alone),
                        Either::Other(reduced) => reduced.await,
                    }
                }
            });
            values = level.await?;
        }
        Ok(values.pop())
    }
}

fn groups<T>(values: Vec<T>, size: usize) -> impl Iterator<Item = Vec<T>> {
    let mut values = values.into_iter();
    std::iter::from_fn(move || {
        let group: Vec<T> = values.by_ref().take(size).collect();
        (!group.is_empty()).then_some(group)
    })
}
