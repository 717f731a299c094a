//! A workflow that a person must decide within a day.

use abide::{
    approval::{Approvals, Request},
    prelude::*,
};

/// Asks for a decision and returns it.
#[derive(Default)]
pub(crate) struct Approval {
    approvals: Approvals,
}

#[workflow(name = "approval", approvals = approvals)]
impl Approval {
    #[run]
    async fn run(ctx: &Context<Self>, subject: String) -> abide::Result<String> {
        let request = Request::new("request").about(subject.as_str()).timeout(days(1));
        let verdict = ctx.approval(request).await?;
        let outcome = match (verdict.is_timed_out(), verdict.is_approved()) {
            (true, _) => return Ok(format!("{subject} was not decided in time")),
            (_, true) => "approved",
            (_, false) => "turned down",
        };
        Ok(format!("{subject} was {outcome} by {}", verdict.decided_by().join(" and ")))
    }
}
