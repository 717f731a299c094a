//! Approval with data: custom choices, comments, two votes of three, and the whole record by query.

use abide::{
    approval::{Answer, AnswerResult, Approvals, Request},
    embedded::Embedded,
    prelude::*,
};
use serde::{Deserialize, Serialize};

/// What the request is about. Approvers see it in their inbox.
#[derive(Serialize, Deserialize)]
struct Expense {
    euros: u32,
    purpose: String,
}

/// Possible answers. A choice may hold data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Review {
    Pay,
    PayOnly { euros: u32 },
    Refuse,
}

#[derive(Default)]
struct Claim {
    reviews: Approvals,
}

#[workflow(approvals = reviews)]
impl Claim {
    #[run]
    async fn run(ctx: &Context<Self>, expense: Expense) -> abide::Result<String> {
        let request = Request::new("review")
            .about(format!("Pay {}?", expense.purpose))
            .data("expense", &expense)
            .role("accounting")
            .choices([Review::Pay, Review::PayOnly { euros: 0 }, Review::Refuse])
            // Two of three must pay in full. As soon as that is impossible, the request is decided.
            .quorum(2, 3);
        let verdict = ctx.approval(request).await?;
        let reasons: Vec<_> = verdict.votes().iter().filter_map(|it| it.comment.clone()).collect();
        Ok(match verdict.choice() {
            Some(Review::Pay) => format!("paid {} euros", expense.euros),
            Some(Review::PayOnly { euros }) => {
                format!("paid {euros} of {} euros: {}", expense.euros, reasons.join("; "))
            }
            Some(Review::Refuse) | None => format!("not paid: {}", reasons.join("; ")),
        })
    }
}

#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    let engine = Embedded::in_memory().await;
    engine.worker().workflow::<Claim>().spawn();
    let expense = Expense { euros: 420, purpose: "a chair".into() };
    let claim = Claim::start(&engine.client(), "claim-7", expense).await?;

    let answer = |name: &str, review: Review| {
        Answer::choose("review", name, &review).map(|answer| answer.role("accounting"))
    };
    let full = answer("ada", Review::Pay)?.key("click-1");
    // Ada's browser sends it twice. With the same key it is the same answer.
    for _ in 0..2 {
        let receipt = claim.decide(full.clone()).await?;
        println!("ada: {:?}", receipt.effect);
    }
    for name in ["grace", "linus"] {
        let less = answer(name, Review::PayOnly { euros: 200 })?.comment("a plain one will do");
        let receipt = claim.decide(less).await?;
        println!("{name}: {:?}", receipt.effect);
    }
    println!("{}", claim.result().await?);

    // The run is closed, but still returns the whole record: who answered what, and with which
    // effect.
    for entry in &claim.approvals().await?.requests[0].entries {
        let came_of_it = match &entry.result {
            AnswerResult::Taken(receipt) => format!("{:?}", receipt.effect),
            other => format!("{other:?}"),
        };
        let said = entry.answer.decision().unwrap_or_default();
        println!("- {} said {said}: {came_of_it}", entry.answer.approver());
    }
    Ok(())
}
