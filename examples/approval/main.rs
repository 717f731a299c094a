//! Approval: a run asks a person and waits for the answer, at most until a deadline.

use std::time::Duration;

use abide::{
    ClientError,
    approval::{Answer, Approvals, Decision, Refusal, Request},
    embedded::Embedded,
    list::WaitFilter,
    prelude::*,
};

#[derive(Default)]
struct Purchase {
    approvals: Approvals,
}

/// Naming the field adds the update `decide`, the signal `decision` and the query `approvals`.
#[workflow(approvals = approvals)]
impl Purchase {
    #[run]
    async fn run(ctx: &Context<Self>, item: String, patience: Duration) -> abide::Result<String> {
        let request = Request::new("purchase")
            .about(format!("Shall we buy {item}?"))
            .approvers(["ada", "grace"])
            .timeout(patience)
            .fallback(Decision::Reject);
        let verdict = ctx.approval(request).await?;
        Ok(match verdict.is_approved() {
            true => format!("{item}: approved by {}", verdict.decided_by().join(", ")),
            false if verdict.is_timed_out() => format!("{item}: nobody answered, so no"),
            false => format!("{item}: rejected by {}", verdict.decided_by().join(", ")),
        })
    }
}

#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    let engine = Embedded::in_memory().await;
    engine.worker().workflow::<Purchase>().spawn();
    let client = engine.client();
    let desk = Purchase::start(&client, "desk", "a desk", days(3)).await?;

    // The update replies immediately, also to people who may not decide.
    let stranger = desk.decide(Answer::approve("purchase", "mallory")).await;
    if let Err(ClientError::UpdateRejected(failure)) = stranger {
        println!("refused: {failure}");
        assert!(matches!(Refusal::of(&failure), Some(Refusal::NotAllowed { .. })));
    }

    // All pending approvals can be listed, over all runs: this is Ada's inbox.
    for request in client.approvals(WaitFilter::new()).take(10).await? {
        if request.concerns(&["ada"]) {
            println!("for ada: {} ({})", request.subject, request.choices.join(" or "));
            let receipt = request.approve(&client, "ada").await?;
            println!("her answer: {:?}", receipt.effect);
        }
    }
    println!("{}", desk.result().await?);

    let moment = Duration::from_millis(50);
    let yacht = Purchase::start(&client, "yacht", "a yacht", moment).await?;
    println!("{}", yacht.result().await?);
    Ok(())
}
