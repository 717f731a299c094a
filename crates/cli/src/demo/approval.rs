//! A person must decide, within a day.

use std::time::Duration;

use abide::{Outcome, prelude::*};
use serde::{Deserialize, Serialize};

/// How long somebody has to decide.
const DEADLINE: Duration = Duration::from_secs(24 * 3600);

/// Waits for a decision and returns it.
#[derive(Default)]
pub(crate) struct Approval {
    asked: String,
    decision: Option<Decision>,
}

/// What a person decided.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Decision {
    approved: bool,
    #[serde(default)]
    by: Option<String>,
}

#[workflow(name = "approval")]
impl Approval {
    #[run]
    async fn run(ctx: &Context<Self>, request: String) -> abide::Result<String> {
        ctx.write(|state| state.asked = request.clone());
        let Outcome::InTime(decision) = ctx.receive(Self::decide).timeout(DEADLINE).await? else {
            return Ok(format!("nobody decided on {request} in time"));
        };
        ctx.write(|state| state.decision = Some(decision.clone()));
        let verdict = if decision.approved { "approved" } else { "turned down" };
        Ok(match decision.by {
            Some(person) => format!("{request} was {verdict} by {person}"),
            None => format!("{request} was {verdict}"),
        })
    }

    #[signal]
    fn decide(decision: Decision);

    #[query]
    fn status(&self) -> String {
        match &self.decision {
            None => format!("{} waits for a decision", self.asked),
            Some(decision) if decision.approved => format!("{} is approved", self.asked),
            Some(_) => format!("{} is turned down", self.asked),
        }
    }
}
