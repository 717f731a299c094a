//! Approval with escalation: when the deadline passes, more people are notified and asked, with
//! more time.

use std::time::Duration;

use abide::{
    approval::{Answer, Approvals, Decision, Request},
    embedded::Embedded,
    prelude::*,
};

/// Would send an e-mail.
#[activity]
async fn tell(who: String, what: String) {
    println!("to {who}: {what}");
}

#[derive(Default)]
struct Access {
    approvals: Approvals,
}

#[workflow(approvals = approvals)]
impl Access {
    #[run]
    async fn run(ctx: &Context<Self>, system: String) -> abide::Result<String> {
        let request = Request::new("access")
            .about(format!("Access to {system}"))
            .approver("ada")
            .timeout(Duration::from_millis(50));
        let first = ctx.approval(request.clone()).await?;
        let escalated = first.is_timed_out();
        let verdict = if escalated {
            let message = format!("nobody has decided about {system}");
            ctx.activity(tell, ("boss", message)).await?;
            // The same request again. It keeps its answers: a late answer from Ada still counts.
            let request = request.approver("boss").timeout(hours(24)).fallback(Decision::Reject);
            ctx.approval(request).await?
        } else {
            first
        };
        let note = if escalated { " (escalated)" } else { "" };
        let result = if verdict.is_approved() { "granted" } else { "denied" };
        Ok(format!("{system}: {result} by {}{note}", verdict.decided_by().join(", ")))
    }
}

/// Returns when this person is asked.
async fn asked(access: &AccessHandle, who: &str) -> anyhow::Result<()> {
    let mut following = access.follow_waits();
    while let Some(waits) = following.next().await? {
        if waits.iter().any(|wait| wait.actors.iter().any(|actor| actor == who)) {
            break;
        }
    }
    Ok(())
}

#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    let engine = Embedded::in_memory().await;
    engine.worker().workflow::<Access>().activity(tell).spawn();
    let client = engine.client();

    let payroll = Access::start(&client, "payroll", "payroll").await?;
    asked(&payroll, "boss").await?;
    payroll.decide(Answer::approve("access", "boss")).await?;
    println!("{}", payroll.result().await?);

    let archive = Access::start(&client, "archive", "the archive").await?;
    asked(&archive, "boss").await?;
    archive.decide(Answer::approve("access", "ada")).await?;
    println!("{}", archive.result().await?);
    Ok(())
}
