//! Deadline: an approval whose deadline is read and rescheduled while the run waits.

use std::time::Duration;

use abide::{RescheduleError, Timestamp, embedded::Embedded, prelude::*};

#[derive(Default)]
struct Approval {
    approved: bool,
    deadline: Deadline,
}

#[workflow]
impl Approval {
    #[run]
    async fn run(ctx: &Context<Self>, subject: String, time: Duration) -> abide::Result<String> {
        let approved = condition!("approval.approved", |approval| approval.approved);
        // Started, but not awaited yet: so handlers can get the deadline.
        let wait = ctx.wait_until(approved).timeout(time).about(subject.as_str()).start();
        ctx.write(|approval| approval.deadline = wait.deadline());
        match wait.await? {
            Outcome::InTime(()) => Ok(format!("{subject}: approved")),
            Outcome::TimedOut => Ok(format!("{subject}: rejected, because nobody answered")),
        }
    }

    #[signal]
    fn approve(&mut self) {
        self.approved = true;
    }

    /// Reschedules the deadline. The caller gets an error if that is invalid, such as a time in the
    /// past.
    #[update]
    fn decide_by(&mut self, at: Timestamp) -> Result<(), RescheduleError> {
        self.deadline.reset(at)
    }

    #[query]
    fn deadline(&self) -> Option<Timestamp> {
        self.deadline.at()
    }
}

#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    let engine = Embedded::in_memory().await;
    engine.worker().workflow::<Approval>().spawn();
    let client = engine.client();
    let moment = Duration::from_millis(100);

    // There is not enough time to decide, so the deadline is postponed.
    let desk = Approval::start(&client, "desk", "a desk", hours(1)).await?;
    let first = desk.deadline().await?;
    let tomorrow = Timestamp::now() + days(1);
    desk.decide_by(tomorrow).await?;
    let second = desk.deadline().await?;
    println!("a desk: the deadline was moved to a later time: {}", second > first);
    desk.approve().await?;
    println!("{}", desk.result().await?);

    // A deadline can be moved closer too, and also from outside the workflow, by its timer's id.
    let yacht = Approval::start(&client, "yacht", "a yacht", days(365)).await?;
    yacht.deadline().await?;
    let waits = yacht.describe().await?.waits;
    let timer = waits.into_iter().find_map(|wait| wait.timer).expect("it waits with a deadline");
    yacht.reschedule_timer(timer, Timestamp::now() + moment).await?;
    println!("{}", yacht.result().await?);

    // But not into the past.
    let boat = Approval::start(&client, "boat", "a boat", days(1)).await?;
    let refused = boat.decide_by(Timestamp::EPOCH).await;
    println!("a boat: moving the deadline into the past is refused: {}", refused.is_err());
    Ok(())
}
