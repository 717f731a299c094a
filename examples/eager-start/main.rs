//! Eager start: a user waits for the answer, so the first step must not wait for a poll. The engine
//! hands work to a worker with free capacity as soon as it is durable; and with engine, worker and
//! client in one process there is no network in between. There is nothing to configure.

use std::time::{Duration, Instant};

use abide::{embedded::Embedded, prelude::*};

#[activity]
async fn reserve(seat: u32) -> String {
    format!("seat {seat} is yours")
}

/// The activity, too, goes directly to the worker that scheduled it, together with the reply to its
/// workflow task: it does not go through the queue.
#[workflow]
async fn reservation(ctx: &Context, seat: u32) -> abide::Result<String> {
    ctx.activity(reserve, seat).await
}

#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    let engine = Embedded::in_memory().await;
    engine.worker().workflow::<reservation>().activity(reserve).spawn();
    let client = engine.client();

    // A request of a web server, from start to result. The first one also waits for the worker.
    let reserve = async |seat: u32| {
        let reservation = reservation::start(&client, format!("seat-{seat}"), seat).await?;
        reservation.result().await
    };
    println!("{}", reserve(1).await?);

    let begun = Instant::now();
    for seat in 2..=50 {
        reserve(seat).await?;
    }
    let each = begun.elapsed() / 49;
    println!("each in much less than a second: {}", each < Duration::from_millis(500));
    Ok(())
}
