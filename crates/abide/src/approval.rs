//! Asking people: a run waits until a person who may decide has decided.
//!
//! A workflow holds [`Approvals`] and names the field: `#[workflow(approvals = approvals)]`. Then it can
//! ask by `ctx.approval(Request::new("expense"))`, and clients answer by the update `decide`, the
//! signal `decision` or a [`WaitingRequest`] of `client.approvals(…)`.

#[cfg(feature = "worker")]
pub use abide_sdk::approval::WaitingRequest;
pub use abide_sdk::approval::{
    Answer, AnswerChannel, ApprovalCall, Approvals, Choice, Decision, Effect, Entry, Judgement,
    OpenRequest, Receipt, Refusal, Report, Request, Standing, Status, Verdict, Vote, concerns,
};
