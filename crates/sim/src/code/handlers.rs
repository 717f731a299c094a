//! Slow handlers: they wait, run activities, and may be unfinished when the run ends.

use std::time::Duration;

use abide_sdk::{Context, RawPayload, ReturnedError, future::LocalBoxFuture};

use super::{
    steps::{self, Stop},
    workflow::{Scripted, ignored},
};

/// How long the handler of `poke` takes.
const POKE: Duration = Duration::from_millis(700);

/// A signal with a slow handler, which then reschedules a deadline.
pub(super) fn poke<const N: usize>(
    ctx: Context<Scripted<N>>,
    text: RawPayload,
) -> LocalBoxFuture<'static, ()> {
    Box::pin(async move {
        let slept = ctx.sleep(POKE).await;
        let moved = ctx.write(Scripted::oldest_deadline).extend(POKE);
        let text = steps::text(&text);
        ctx.write(|state| state.note(format!("poke={text}, {slept:?}, {moved:?}")));
    })
}

/// An update that takes as long as the program says.
pub(super) fn accept<const N: usize>(
    ctx: Context<Scripted<N>>,
    _: RawPayload,
) -> LocalBoxFuture<'static, Result<RawPayload, ReturnedError>> {
    Box::pin(async move {
        if let Some(delay) = ctx.read(|state| state.program.update_delay) {
            let slept = ctx.sleep(delay).await;
            slept.or_else(|error| ignored(&ctx, error)).map_err(ReturnedError::new)?;
        }
        Ok(ctx.read(Scripted::result))
    })
}

/// An update that runs an activity.
pub(super) fn work<const N: usize>(
    ctx: Context<Scripted<N>>,
    text: RawPayload,
) -> LocalBoxFuture<'static, Result<RawPayload, ReturnedError>> {
    Box::pin(async move {
        let activity = ctx.read(|state| state.program.update_work.clone());
        let done = steps::run_activity(&ctx, &activity).await;
        done.map_err(|Stop(error)| ReturnedError::new(error))?;
        let text = steps::text(&text);
        ctx.write(|state| state.note(format!("work={text}")));
        Ok(ctx.read(Scripted::result))
    })
}
