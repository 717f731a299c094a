//! What the tests of approvals share: a workflow that asks as it is told, and short ways to answer.

use std::time::Duration;

use abide::{
    Context,
    approval::{Answer, Approvals, Decision, Receipt, Refusal, Request, Verdict},
};
use abide_sdk_macros::workflow;
use serde::{Deserialize, Serialize};

use crate::world::World;

/// Asks once, for whatever `Terms` say.
#[derive(Default)]
pub(crate) struct Expense {
    pub(crate) approvals: Approvals,
}

/// What is asked.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Terms {
    pub(crate) approvers: Vec<String>,
    pub(crate) roles: Vec<String>,
    pub(crate) quorum: Option<(usize, usize)>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) fallback: Option<Decision>,
    pub(crate) escalates: bool,
    pub(crate) requester: Option<String>,
    /// The run goes on for so long afterwards.
    pub(crate) then: Option<Duration>,
}

impl Terms {
    pub(crate) fn of(approvers: &[&str]) -> Self {
        let approvers = approvers.iter().map(|name| (*name).to_owned()).collect();
        Self { approvers, ..Self::default() }
    }

    fn request(&self) -> Request {
        let mut request =
            Request::new("expense").about("420 euros").approvers(self.approvers.clone());
        for role in &self.roles {
            request = request.role(role.as_str());
        }
        if self.escalates {
            request = request.choices([Decision::Approve, Decision::Reject, Decision::Escalate]);
        }
        if let Some((needed, of)) = self.quorum {
            request = request.quorum(needed, of);
        }
        if let Some(timeout) = self.timeout {
            request = request.timeout(timeout);
        }
        if let Some(fallback) = self.fallback {
            request = request.fallback(fallback);
        }
        match &self.requester {
            Some(requester) => request.requested_by(requester.as_str()),
            None => request,
        }
    }
}

#[workflow(approvals = approvals)]
impl Expense {
    #[run]
    async fn run(ctx: &Context<Self>, terms: Terms) -> abide::Result<String> {
        let verdict = ctx.approval(terms.request()).await?;
        if let Some(time) = terms.then {
            ctx.sleep(time).await?;
        }
        Ok(told(&verdict))
    }
}

/// A verdict in words.
pub(crate) fn told(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Decided { choice, .. } => {
            format!("{choice:?} by {}", verdict.decided_by().join(", "))
        }
        Verdict::TimedOut { fallback, votes } => {
            format!("timed out with {} votes, so {fallback:?}", votes.len())
        }
        Verdict::Withdrawn { by, comment } => format!("withdrawn by {by:?}: {comment:?}"),
    }
}

impl World<Expense> {
    /// Asks as the terms say.
    pub(crate) fn ask(terms: Terms) -> Self {
        Self::start(terms)
    }

    /// Answers by the update.
    pub(crate) fn answer_by_update(&mut self, answer: Answer) -> Result<Receipt, Refusal> {
        match self.update(Expense::DECIDE, answer) {
            Some(told) => Ok(told.unwrap()),
            None => Err(Refusal::of(&self.rejected.last().unwrap().clone().into()).unwrap()),
        }
    }
}
