//! Asking people: a run waits until a person who may decide has decided.
//!
//! A workflow holds [`Approvals`] and names the field: `#[workflow(approvals = approvals)]`. Then it can
//! ask by `ctx.approval(Request::new("expense"))`, and clients answer by the update `decide`, the
//! signal `decision` or a [`WaitingRequest`] of `client.approvals(…)`.

pub use abide_sdk::approval::{
    Answer, AnswerChannel, AnswerResult, ApprovalCall, Approvals, Choice, Decision, Effect, Entry,
    OpenRequest, Receipt, Refusal, Report, Request, RequestState, Status, Verdict, Vote, concerns,
};
#[cfg(feature = "worker")]
pub use abide_sdk::approval::{AnswerCall, WaitingRequest};
