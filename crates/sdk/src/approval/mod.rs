//! Asking people: a run waits until a person who may decide has decided.
//!
//! A workflow holds [`Approvals`] and names the field: `#[workflow(approvals = approvals)]`. Then
//! it can ask by [`Context::approval`], and has three definitions for clients:
//!
//! - the update `decide`, which returns a receipt to the approver at once, or the reason for a
//!   refusal;
//! - the signal `decision`, for senders that do not wait for a receipt;
//! - the query `approvals`, which returns the state and the answers of every request.
//!
//! An open request is one wait, a condition with the key `approval:<id>`. Its details say what is
//! asked, who may act and how, so that it can be listed across all runs; its deadline can be moved
//! like any other. `Client::approvals` (feature `worker`) is that list. Nothing is polled, and the
//! deadline is the only timer.

mod actors;
mod answer;
#[cfg(feature = "worker")]
mod answer_call;
mod approvals;
mod bounds;
mod call;
mod choice;
mod definition;
#[cfg(feature = "worker")]
mod inbox;
mod judge;
mod link;
mod record;
mod refusal;
mod report;
mod request;
mod rules;
mod verdict;
mod watch;

pub use self::{
    actors::concerns,
    answer::{Answer, Effect, Receipt},
    approvals::Approvals,
    call::{ApprovalCall, OpenRequest},
    choice::{Choice, Decision},
    definition::{query, signal, update},
    refusal::Refusal,
    report::{AnswerChannel, AnswerResult, Entry, Report, RequestState, Status},
    request::Request,
    verdict::{Verdict, Vote},
};
#[cfg(feature = "worker")]
pub use self::{answer_call::AnswerCall, inbox::WaitingRequest};
use crate::context::Context;

/// A workflow that asks people. Implemented by `#[workflow(approvals = field)]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no approvals",
    note = "give it a field `approvals: Approvals`, and write `#[workflow(approvals = approvals)]`"
)]
pub trait Approving: Sized + 'static {
    /// The name of the update that accepts decisions, shown in lists of waits.
    const UPDATE: &'static str = "decide";

    /// The field of the state that holds the requests.
    fn approvals(&self) -> &Approvals;

    /// The same field, mutable.
    fn approvals_mut(&mut self) -> &mut Approvals;
}

// The bounds are on the methods, so that the compiler says what is missing.
impl<W> Context<W> {
    /// Asks people, and waits for their verdict: `ctx.approval(Request::new("expense")).await?`.
    ///
    /// An id is used once in a run, with one exception: a request that has timed out can be asked
    /// again, with other people or more time. It continues from its earlier state: decisions that
    /// came before, or too late, count as far as the new request allows them.
    ///
    /// The request is withdrawn when the future is dropped, and when the run is cancelled.
    #[track_caller]
    pub fn approval<C: Choice>(&self, request: Request<C>) -> ApprovalCall<W, C>
    where
        W: Approving,
    {
        ApprovalCall::new(self.clone(), request)
    }

    /// Handles an answer that arrived in your own way: through a handler that you wrote, or from
    /// another workflow.
    pub fn decide(&self, answer: Answer) -> Result<Receipt, Refusal>
    where
        W: Approving,
    {
        self.answered(answer, AnswerChannel::Code)
    }

    /// Withdraws an open request, regardless of its requester.
    pub fn withdraw_approval(&self, request: &str, why: &str) -> Result<(), Refusal>
    where
        W: Approving,
    {
        let now = self.now();
        self.write(|state| state.approvals_mut().withdraw(request, why, now))
    }

    fn answered(&self, answer: Answer, channel: AnswerChannel) -> Result<Receipt, Refusal>
    where
        W: Approving,
    {
        let now = self.now();
        self.write(|state| state.approvals_mut().take(answer, channel, now))
    }
}
