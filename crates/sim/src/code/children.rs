//! Steps that run children, through the context of the SDK.

use std::time::Duration;

use abide_sdk::{
    Context, Error, RawPayload,
    context::{ChildCall, ChildHandle},
    select,
};

use super::{
    steps::{Stopped, record_outcome, signal, text, unique_text},
    workflow::Scripted,
};
use crate::programs::{Care, Child};

/// How long an impatient parent waits before it asks its child to cancel itself.
const PATIENCE: Duration = Duration::from_secs(3);

/// Runs a child of any type.
pub(super) async fn run<const N: usize>(ctx: &Context<Scripted<N>>, child: &Child) -> Stopped {
    match child.number {
        0 => run_typed::<N, 0>(ctx, child).await,
        1 => run_typed::<N, 1>(ctx, child).await,
        2 => run_typed::<N, 2>(ctx, child).await,
        _ => run_typed::<N, 3>(ctx, child).await,
    }
}

async fn run_typed<const N: usize, const M: usize>(
    ctx: &Context<Scripted<N>>,
    child: &Child,
) -> Stopped {
    let call = call::<N, M>(ctx, child);
    let result = match child.care {
        Care::Await => call.await,
        Care::Hold => match call.start().await {
            Ok(handle) => handle.result().await,
            Err(error) => Err(error),
        },
        Care::Hurry => match call.start().await {
            Ok(handle) => hurry(ctx, child, &handle).await?,
            Err(error) => Err(error),
        },
        Care::Leave => call.start().await.map(|_| RawPayload::default()),
    };
    // The child's trace is not part of this run's steps.
    record_outcome(ctx, &child.workflow, result.map(|payload| text(&payload).replace(';', ",")))
}

fn call<const N: usize, const M: usize>(
    ctx: &Context<Scripted<N>>,
    child: &Child,
) -> ChildCall<Scripted<M>> {
    let mut call = ctx
        .child::<Scripted<M>>(child.workflow.as_str(), ())
        .parent_close(child.parent_close)
        .reuse(child.reuse);
    if let Some(limit) = child.run_timeout {
        call = call.run_timeout(limit);
    }
    if let Some(limit) = child.execution_timeout {
        call = call.execution_timeout(limit);
    }
    if let Some(policy) = child.on_cancel {
        call = call.on_cancel(policy);
    }
    if let Some(retry) = &child.retry {
        call = call.retry(retry.clone().into());
    }
    call
}

/// Signals a child and waits briefly for it, then asks it to cancel itself.
async fn hurry<const N: usize, const M: usize>(
    ctx: &Context<Scripted<N>>,
    child: &Child,
    handle: &ChildHandle<Scripted<M>>,
) -> Stopped<Result<RawPayload, Error>> {
    let id = child.workflow.as_str();
    let told = handle.signal(signal::<M>("go"), unique_text(ctx)).await;
    record_outcome(ctx, id, told.map(|()| "signalled".into()))?;
    let result = select! {
        result = handle.result() => result,
        slept = ctx.sleep(PATIENCE) => {
            let asked = match slept {
                Ok(()) => handle.cancel().await,
                Err(error) => Err(error),
            };
            record_outcome(ctx, id, asked.map(|()| "asked to cancel".into()))?;
            handle.result().await
        }
    };
    Ok(result)
}
