//! Approval with a deadline that moves: by an approver who needs more time, and by a client.

use std::time::Duration;

use abide::{
    RescheduleError, Timestamp,
    approval::{Answer, Approvals, Decision, Request},
    embedded::Embedded,
    prelude::*,
};

#[derive(Default)]
struct Audit {
    approvals: Approvals,
}

#[workflow(approvals = approvals)]
impl Audit {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<String> {
        let request = Request::new("audit")
            .approver("ada")
            .timeout(days(2))
            .fallback(Decision::Reject)
            // Limits for clients and operators. They do not apply to the workflow's own code.
            .max_extensions(3)
            .not_after(ctx.now().saturating_add(weeks(2)));
        let verdict = ctx.approval(request).await?;
        Ok(if verdict.is_approved() { "passed".into() } else { "not passed".into() })
    }

    /// There is only one timer, which is rescheduled.
    #[update]
    fn more_time(&mut self, by: Duration) -> Result<Timestamp, RescheduleError> {
        self.approvals.deadline("audit").extend(by)
    }
}

#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    let engine = Embedded::in_memory().await;
    engine.worker().workflow::<Audit>().spawn();
    let audit = Audit::start(&engine.client(), "audit-7").await?;

    let first = audit.approvals().await?.requests[0].deadline;
    let first = first.expect("the request is open");
    let later = audit.more_time(days(3)).await?;
    println!("ada has {} hours more", later.saturating_since(first).as_secs() / 3600);

    // A client or an operator reschedules a listed wait: `abide timer reschedule` does the same.
    let wait = audit.waits().await?.remove(0);
    println!("waits for {}, until then: {}", wait.name, wait.until == Some(later));
    audit.reschedule_wait(wait.key.clone(), later.saturating_add(days(1))).await?;
    let too_late = later.saturating_add(weeks(4));
    let refused = audit.reschedule_wait(wait.key, too_late).await.is_err();
    println!("a month more is refused: {refused}");

    audit.decide(Answer::approve("audit", "ada")).await?;
    println!("audit: {}", audit.result().await?);
    Ok(())
}
