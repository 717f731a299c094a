//! Early return with local activities: the fastest answer that is still durable. The check runs
//! inside the first task of the run, so that task answers the caller's update; the rest of the work
//! follows afterwards.

use abide::{ConflictPolicy, prelude::*, testing::TestEnvironment};

/// Fast, and idempotent: it only reads.
#[activity]
async fn check_seat(seat: u32) -> Result<(), ActivityError> {
    match seat {
        13 => Err(ActivityError::new("there is no such seat").non_retryable()),
        _ => Ok(()),
    }
}

/// Slow: an ordinary activity, with durable attempts and retries for as long as it takes.
#[activity]
async fn print_ticket(ctx: ActivityContext, seat: u32) -> Result<String, ActivityError> {
    match ctx.attempt() {
        1..=5 => Err(ActivityError::new("the printer is out of paper")),
        _ => Ok(format!("ticket for seat {seat}")),
    }
}

#[derive(Default)]
struct Ticket {
    checked: Option<Result<(), String>>,
}

#[workflow]
impl Ticket {
    #[run]
    async fn run(ctx: &Context<Self>, seat: u32) -> abide::Result<String> {
        let checked = match ctx.local_activity(check_seat, seat).await {
            Err(Error::Activity(failed)) => Err(failed.failure.to_string()),
            other => Ok(other?),
        };
        ctx.write(|ticket| ticket.checked = Some(checked.clone()));
        match checked {
            Ok(()) => ctx.activity(print_ticket, seat).await,
            Err(why) => Ok(format!("no ticket: {why}")),
        }
    }

    #[update]
    async fn accepted(ctx: &Context<Self>) -> Result<String, Error> {
        let known = condition!("ticket.checked", |ticket| ticket.checked.is_some());
        ctx.wait_until(known).await?;
        match ctx.read(|ticket| ticket.checked.clone()) {
            Some(Err(why)) => Err(Error::new(why)),
            _ => Ok("the seat is yours".into()),
        }
    }
}

#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    let env = TestEnvironment::with(|worker| {
        worker.workflow::<Ticket>().activity(check_seat).activity(print_ticket)
    })
    .await?;

    for seat in [7, 13] {
        let id = format!("seat-{seat}");
        let start = Ticket::start(&env.client(), id, seat).on_conflict(ConflictPolicy::UseExisting);
        let begun = env.now();
        let answered = start.with_update(Ticket::ACCEPTED, ()).id("accepted").outcome().await?;
        match answered.update {
            Ok(answer) => println!("{seat}: {answer}"),
            Err(error) => println!("{seat}: {error}"),
        }
        println!("  at once: {}", env.now() == begun);
        println!("  later: {}", answered.workflow.result().await?);
    }
    Ok(())
}
