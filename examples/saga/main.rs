//! Saga: steps in several systems that know nothing of each other. When one fails, the earlier
//! steps are undone, the last one first; and the error names what could not be undone.

use abide::{ClientError, UndoFailure, prelude::*, testing::TestEnvironment};

#[activity]
async fn book(what: String, place: String) -> Result<String, ActivityError> {
    match (&*what, &*place) {
        ("car", _) => Err(ActivityError::new("no car is left").non_retryable()),
        _ => {
            println!("booked a {what} in {place}");
            Ok(format!("{what} in {place}"))
        }
    }
}

#[activity]
async fn cancel_booking(booking: String) -> Result<(), ActivityError> {
    if booking == "flight in Rome" {
        return Err(ActivityError::new("too late to cancel").non_retryable());
    }
    println!("cancelled the {booking}");
    Ok(())
}

#[workflow]
async fn trip(ctx: &Context, place: String) -> abide::Result<Vec<String>> {
    // Ordinary workflow code: after a crash it continues where it was, also in the middle of
    // undoing. A cancel request also undoes the steps, and does not interrupt that.
    let trip = Saga::new().run(ctx, async |saga| {
        let mut bookings = Vec::new();
        for what in ["flight", "hotel", "car"] {
            let booking = ctx.activity(book, (what, &place)).await?;
            // Runs only if a later step fails. It is retried like any activity, so it should
            // succeed eventually.
            let undo = ctx.activity(cancel_booking, &booking);
            saga.undo(format!("cancel the {what}"), undo);
            bookings.push(booking);
        }
        Ok(bookings)
    });
    trip.await
}

#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    let env = TestEnvironment::with(|worker| {
        worker.workflow::<trip>().activity(book).activity(cancel_booking)
    })
    .await?;

    for place in ["Oslo", "Rome"] {
        let trip = trip::start(&env.client(), format!("trip-{place}"), place).await?;
        match trip.result().await {
            Err(ClientError::RunFailed(failure)) => {
                println!("{place}: {failure}");
                // For programs: these need attention.
                for left in UndoFailure::in_failure(&failure) {
                    println!("{place}: not undone: {}", left.step);
                }
            }
            other => println!("unexpected: {other:?}"),
        }
    }
    Ok(())
}
