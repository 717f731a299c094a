//! Saga: steps in several systems, none of which knows of the others. When one fails, those before it
//! are undone, the last one first; and what could not be undone is told.

use abide::{ClientError, NotUndone, prelude::*, testing::TestEnvironment};

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

#[derive(Default)]
struct Trip;

#[workflow]
impl Trip {
    #[run]
    async fn run(ctx: &Context<Self>, place: String) -> abide::Result<Vec<String>> {
        // Ordinary workflow code: after a crash it goes on where it was, also in the middle of undoing.
        // A cancel request undoes too, and does not reach what undoes.
        let trip = Saga::new().run(ctx, async |saga| {
            let mut bookings = Vec::new();
            for what in ["flight", "hotel", "car"] {
                let booking = ctx.activity(book, (what.to_owned(), place.clone())).await?;
                // Begins only if a later step fails. It is retried like any activity, so that it
                // should be in the end whatever happens.
                let undo = ctx.activity(cancel_booking, booking.clone());
                saga.undo(format!("cancel the {what}"), undo);
                bookings.push(booking);
            }
            Ok(bookings)
        });
        trip.await
    }
}

#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    let env = TestEnvironment::new().await;
    let activities = |worker: abide::Worker| worker.activity(book).activity(cancel_booking);
    env.worker(|worker| activities(worker.workflow::<Trip>())).await?;

    for place in ["Oslo", "Rome"] {
        let trip = env.client().start::<Trip>(format!("trip-{place}"), place.to_owned()).await?;
        match trip.result().await {
            Err(ClientError::RunFailed(failure)) => {
                println!("{place}: {}", failure.message);
                // For programs: somebody must see to these.
                for left in NotUndone::in_failure(&failure) {
                    println!("{place}: not undone: {}", left.step);
                }
            }
            other => println!("unexpected: {other:?}"),
        }
    }
    Ok(())
}
