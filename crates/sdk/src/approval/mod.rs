//! Asking people: a run waits until somebody who may decide has decided.
//!
//! A workflow holds [`Approvals`] and names the field: `#[workflow(approvals = approvals)]`. Then it can
//! ask by [`Context::approval`], and has three definitions for those who answer:
//!
//! - the update `decide`, which tells the approver at once what came of it, or why it is refused;
//! - the signal `decision`, for those who do not wait for an answer;
//! - the query `approvals`, the whole story of every request.
//!
//! A request that is open is one wait, a condition with the key `approval:<id>`. Its details say what is
//! asked, who may act and how, so that it can be listed across all runs; its deadline can be moved as
//! any other. `Client::approvals` (feature `worker`) is that list. Nothing is polled, and no timer is
//! started but that deadline.

mod actors;
mod answer;
mod approvals;
mod bounds;
mod call;
mod choice;
mod definition;
#[cfg(feature = "worker")]
mod inbox;
mod judge;
mod record;
mod refusal;
mod report;
mod request;
mod rules;
mod tie;
mod verdict;
mod watch;

#[cfg(feature = "worker")]
pub use self::inbox::WaitingRequest;
pub use self::{
    actors::concerns,
    answer::{Answer, Effect, Receipt},
    approvals::Approvals,
    call::{ApprovalCall, OpenRequest},
    choice::{Choice, Decision},
    definition::{query, signal, update},
    refusal::Refusal,
    report::{Entry, Judgement, Report, Standing, Status, Way},
    request::Request,
    verdict::{Verdict, Vote},
};
use crate::context::Context;

/// A workflow that asks people. Implemented by `#[workflow(approvals = field)]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no approvals",
    note = "give it a field `approvals: Approvals`, and write `#[workflow(approvals = approvals)]`"
)]
pub trait Approving: Sized + 'static {
    /// The name of the update that takes decisions, told to those who list what waits.
    const UPDATE: &'static str = "decide";

    /// The requests of the run.
    fn approvals(&self) -> &Approvals;

    /// The requests of the run, to be changed.
    fn approvals_mut(&mut self) -> &mut Approvals;
}

// The bounds stand on the methods, so that the compiler says what is missing.
impl<W> Context<W> {
    /// Asks people, and waits for their verdict: `ctx.approval(Request::new("expense")).await?`.
    ///
    /// An id is used once in a run, with one exception: a request that has timed out can be asked
    /// again, with other people or more time. It goes on where it stood: what was decided before, or
    /// too late, counts as far as the new request allows it.
    ///
    /// The request is withdrawn when the future is dropped, and when the run is cancelled.
    #[track_caller]
    pub fn approval<C: Choice>(&self, request: Request<C>) -> ApprovalCall<W, C>
    where
        W: Approving,
    {
        ApprovalCall::new(self.clone(), request)
    }

    /// Takes an answer that came in a way of your own: a handler that you wrote, another workflow.
    pub fn decide(&self, answer: Answer) -> Result<Receipt, Refusal>
    where
        W: Approving,
    {
        self.answered(answer, Way::Code)
    }

    /// Withdraws an open request, whoever may have asked for it.
    pub fn withdraw_approval(&self, request: &str, why: &str) -> Result<(), Refusal>
    where
        W: Approving,
    {
        let now = self.now();
        self.write(|state| state.approvals_mut().withdraw(request, why, now))
    }

    fn answered(&self, answer: Answer, way: Way) -> Result<Receipt, Refusal>
    where
        W: Approving,
    {
        let now = self.now();
        self.write(|state| state.approvals_mut().take(answer, way, now))
    }
}
