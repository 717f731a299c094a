//! Waits for all of several futures, or for the first that succeeds.

use std::{collections::BTreeMap, future::poll_fn};

use super::future_set::FutureSet;

/// Runs any number of futures at once and returns their outputs in the same order. They start in
/// that order, and all run to their end, whatever the outputs of the others.
pub async fn join_all<F: IntoFuture>(futures: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    let mut crowd = crowd(futures);
    let mut outputs = BTreeMap::new();
    while let Some((number, output)) = poll_fn(|cx| crowd.poll_next(cx)).await {
        outputs.insert(number, output);
    }
    outputs.into_values().collect()
}

/// As [`join_all`], for futures that can fail: the first failure drops the others, which cancels
/// what they wait for. If several fail at the same moment, the first in order counts.
pub async fn try_join_all<F, T, E>(futures: impl IntoIterator<Item = F>) -> Result<Vec<T>, E>
where
    F: IntoFuture<Output = Result<T, E>>,
{
    let mut crowd = crowd(futures);
    let mut outputs = BTreeMap::new();
    while let Some((number, output)) = poll_fn(|cx| crowd.poll_next(cx)).await {
        outputs.insert(number, output?);
    }
    Ok(outputs.into_values().collect())
}

/// Runs futures at once until one succeeds, and drops the others, which cancels what they wait for.
/// If none succeeds, returns all failures, in the order of the futures.
///
/// ```
/// # use abide_sdk::{ActivityDef, Context, Error, Result, first_success};
/// # async fn example<W>(ctx: &Context<W>, ask: ActivityDef<(), (String,), u32>) -> Result<u32> {
/// let mirrors = ["north", "south"];
/// let asked = first_success(mirrors.map(|mirror| ctx.activity(ask, mirror.to_owned()))).await;
/// asked.map_err(|failures| Error::new(format!("{} mirrors failed", failures.len())))
/// # }
/// ```
pub async fn first_success<F, T, E>(futures: impl IntoIterator<Item = F>) -> Result<T, Vec<E>>
where
    F: IntoFuture<Output = Result<T, E>>,
{
    let mut crowd = crowd(futures);
    let mut failures = BTreeMap::new();
    while let Some((number, output)) = poll_fn(|cx| crowd.poll_next(cx)).await {
        match output {
            Ok(value) => return Ok(value),
            Err(error) => failures.insert(number, error),
        };
    }
    Err(failures.into_values().collect())
}

fn crowd<F: IntoFuture>(futures: impl IntoIterator<Item = F>) -> FutureSet<F::IntoFuture> {
    let mut crowd = FutureSet::new();
    for (number, future) in (0..).zip(futures) {
        crowd.add(number, future.into_future());
    }
    crowd
}
