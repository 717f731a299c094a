//! Approval with a deadline: a purchase waits for a decision for three days, and the deadline can move.

use abide::{RescheduleError, Timestamp, embedded::Embedded, prelude::*};

#[derive(Default)]
struct Purchase {
    approved: Option<bool>,
    deadline: Deadline,
}

#[workflow]
impl Purchase {
    #[run]
    async fn run(ctx: &Context<Self>, item: String) -> abide::Result<String> {
        let decided = condition!("purchase.decided", |it| it.approved.is_some());
        let wait = ctx.wait_until(decided).timeout(days(3)).start();
        ctx.write(|it| it.deadline = wait.deadline());
        let Outcome::InTime(()) = wait.await? else {
            return Ok(format!("{item}: too late"));
        };
        let verdict =
            if ctx.read(|it| it.approved == Some(true)) { "approved" } else { "rejected" };
        Ok(format!("{item}: {verdict}"))
    }

    #[signal]
    fn decide(&mut self, approved: bool) {
        self.approved = Some(approved);
    }

    #[update]
    fn extend(&mut self, more: u64) -> Result<Timestamp, RescheduleError> {
        self.deadline.extend(days(more))
    }
}

#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    let engine = Embedded::open("approval.db").await?;
    engine.worker().workflow::<Purchase>().spawn();
    let desk = Purchase::start(&engine.client(), "desk", "a desk").await?;
    desk.extend(2).await?;
    desk.decide(true).await?;
    println!("{}", desk.result().await?);
    Ok(())
}
