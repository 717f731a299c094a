//! The same activity several times concurrently, by every means of the SDK.

use abide_sdk::{
    Context, Error, RawPayload, Window, context::ActivityCall, first_success, join_all,
};

use super::{
    steps::{Stopped, call, record_outcome, text},
    workflow::Scripted,
};
use crate::programs::{Crowd, Order, Quirk};

/// Prefix of each activity's argument.
pub const CROWD: &str = "crowd";

/// Runs them, and records the outcome of each, in order.
pub(super) async fn run<const N: usize>(ctx: &Context<Scripted<N>>, crowd: &Crowd) -> Stopped {
    let number = ctx.write(Scripted::next_number);
    let one_more = usize::from(ctx.read(|state| state.program.quirk) == Some(Quirk::BoundIgnored));
    let bound = match crowd.order {
        Order::All | Order::First => crowd.count,
        Order::Bounded(bound) | Order::BoundedUntilFailure(bound) | Order::Window(bound) => bound,
    };
    let member =
        |index: usize| call(ctx, &crowd.activity, &format!("{CROWD}{number}.{index}.{bound}"));
    let members = (0..crowd.count).map(member);
    let results = match crowd.order {
        Order::All => join_all(members).await,
        Order::First => match first_success(members).await {
            Ok(first) => vec![Ok(first)],
            Err(failures) => failures.into_iter().map(Err).collect(),
        },
        Order::Bounded(bound) => ctx.map_bounded(bound + one_more, 0..crowd.count, member).await,
        Order::BoundedUntilFailure(bound) => {
            match ctx.try_map_bounded(bound + one_more, 0..crowd.count, member).await {
                Ok(all) => all.into_iter().map(Ok).collect(),
                Err(failure) => vec![Err(failure)],
            }
        }
        Order::Window(bound) => slide(bound + one_more, members).await,
    };
    for result in results {
        record_outcome(ctx, CROWD, result.map(|payload| text(&payload)))?;
    }
    Ok(())
}

async fn slide(
    bound: usize,
    members: impl Iterator<Item = ActivityCall<RawPayload>>,
) -> Vec<Result<RawPayload, Error>> {
    let mut window = Window::new(bound);
    let mut results = Vec::new();
    for member in members {
        results.extend(window.push(member).await);
    }
    while let Some(result) = window.next().await {
        results.push(result);
    }
    results
}
