//! Saga: a trip of three bookings; when the last one fails, the others are undone, newest first.

use abide::{embedded::Embedded, prelude::*};

#[activity]
async fn book(what: String) -> Result<(), ActivityError> {
    if what == "car" {
        return Err(ActivityError::new("no car left").non_retryable());
    }
    println!("booked a {what}");
    Ok(())
}

#[activity]
async fn cancel(what: String) {
    println!("cancelled the {what}");
}

#[workflow]
async fn trip(ctx: &Context) -> abide::Result<String> {
    let booked = Saga::new().run(ctx, async |saga| {
        for what in ["hotel", "flight", "car"] {
            ctx.activity(book, what).await?;
            saga.undo(what, ctx.activity(cancel, what));
        }
        Ok("booked".to_owned())
    });
    booked.await
}

#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    let engine = Embedded::open("saga.db").await?;
    engine.worker().workflow::<trip>().activity(book).activity(cancel).spawn();
    let trip = trip::start(&engine.client(), "trip-1").await?;
    match trip.result().await {
        Ok(done) => println!("{done}"),
        Err(error) => println!("failed: {error}"),
    }
    Ok(())
}
