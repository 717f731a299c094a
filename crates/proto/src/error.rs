//! How an error travels: as an `ErrorDetail`, alone in a frame or in the details of a gRPC status,
//! from which the caller gets the same error back.

use abide_core::{
    codec::Wire,
    event::RunReference,
    ids::{RunId, WorkflowKey},
    limits::InvalidField,
    operation::CallError,
};

use crate::{
    field::word,
    generated::{Close, ErrorCode, ErrorDetail},
};

/// The wire form of an error.
pub fn to_detail(error: CallError) -> ErrorDetail {
    let message = error.to_string();
    let detail = |code: ErrorCode| ErrorDetail {
        code: code.into(),
        message: message.clone(),
        hint: hint(code).to_owned(),
        ..ErrorDetail::default()
    };
    match error {
        CallError::Invalid(invalid) => {
            ErrorDetail { field: invalid.field, ..detail(ErrorCode::Invalid) }
        }
        CallError::NotFound => detail(ErrorCode::NotFound),
        CallError::AlreadyExists { workflow, run } => {
            let run = RunReference { workflow, run }.to_wire();
            ErrorDetail { run: Some(run), ..detail(ErrorCode::AlreadyExists) }
        }
        CallError::Refused(refusal) => {
            ErrorDetail { refusal: Some(refusal.into()), ..detail(ErrorCode::Refused) }
        }
        CallError::UpdateAborted { run, how, accepted } => ErrorDetail {
            run: Some(run_alone(run)),
            how: Close::from(how).into(),
            accepted,
            ..detail(ErrorCode::UpdateAborted)
        },
        CallError::Blocked(blocked) => {
            ErrorDetail { blocked: Some((*blocked).to_wire()), ..detail(ErrorCode::Blocked) }
        }
        CallError::StaleQuery => detail(ErrorCode::StaleQuery),
        CallError::SetAside(run) => {
            ErrorDetail { run: Some(run_alone(run)), ..detail(ErrorCode::SetAside) }
        }
        CallError::Unreadable { run, reason } => ErrorDetail {
            run: Some(run_alone(run)),
            message: reason,
            ..detail(ErrorCode::Unreadable)
        },
        CallError::NotServed => detail(ErrorCode::NotServed),
        CallError::Reset => detail(ErrorCode::Reset),
        CallError::Unavailable(reason) | CallError::NoAnswer(reason) => {
            ErrorDetail { message: reason, ..detail(ErrorCode::Unavailable) }
        }
        CallError::Overloaded => detail(ErrorCode::Overloaded),
    }
}

/// The engine returned an answer of the wrong kind: a bug of the engine.
pub(crate) fn misplaced_answer() -> CallError {
    CallError::NoAnswer("the reply does not match the call".into())
}

/// The error that a detail stands for.
pub fn from_detail(detail: ErrorDetail) -> CallError {
    let code = detail.code();
    let invalid = invalid(&detail);
    read(code, detail).unwrap_or(CallError::Invalid(invalid))
}

/// Reads an invalid field from its message, which begins with the field's name.
fn invalid(detail: &ErrorDetail) -> InvalidField {
    let problem = detail.message.strip_prefix(&detail.field).unwrap_or(&detail.message);
    InvalidField::new(detail.field.as_str(), problem.trim_start())
}

/// `None` if the detail lacks what its code needs.
fn read(code: ErrorCode, detail: ErrorDetail) -> Option<CallError> {
    let run =
        |detail: &ErrorDetail| -> Option<RunReference> { word("run", detail.run.clone()).ok() };
    Some(match code {
        ErrorCode::Unspecified | ErrorCode::Invalid => CallError::Invalid(invalid(&detail)),
        ErrorCode::NotFound => CallError::NotFound,
        ErrorCode::AlreadyExists => {
            let RunReference { workflow, run } = run(&detail)?;
            CallError::AlreadyExists { workflow, run }
        }
        ErrorCode::Refused => CallError::Refused(detail.refusal?.try_into().ok()?),
        ErrorCode::UpdateAborted => CallError::UpdateAborted {
            run: run(&detail)?.run,
            how: detail.how().try_into().ok()?,
            accepted: detail.accepted,
        },
        ErrorCode::Blocked => CallError::Blocked(Box::new(word("blocked", detail.blocked?).ok()?)),
        ErrorCode::StaleQuery => CallError::StaleQuery,
        ErrorCode::SetAside => CallError::SetAside(run(&detail)?.run),
        ErrorCode::Unreadable => {
            CallError::Unreadable { run: run(&detail)?.run, reason: detail.message }
        }
        ErrorCode::NotServed => CallError::NotServed,
        ErrorCode::Reset => CallError::Reset,
        ErrorCode::Unavailable => CallError::Unavailable(detail.message),
        ErrorCode::Overloaded => CallError::Overloaded,
    })
}

/// The engine's answer cannot be read, so the outcome of the call is unknown.
pub(crate) fn unreadable_answer(malformed: InvalidField) -> CallError {
    CallError::Unavailable(format!("its answer cannot be read: {malformed}"))
}

/// A reference to a run whose workflow the error does not name.
fn run_alone(run: RunId) -> abide_core::codec::generated::RunReference {
    let workflow = WorkflowKey { namespace: "".into(), workflow: "".into() };
    RunReference { workflow, run }.to_wire()
}

/// What the caller can do about the error.
const fn hint(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::Unspecified => "",
        ErrorCode::Invalid => "correct the request; nothing was changed",
        ErrorCode::NotFound => "check namespace, workflow id and run id",
        ErrorCode::AlreadyExists => "use another workflow id, or another conflict or reuse policy",
        ErrorCode::Refused => "inspect the run with DescribeRun; nothing was changed",
        ErrorCode::UpdateAborted => "get the outcome of the run with AwaitClose",
        ErrorCode::Blocked => "deploy code that fits the history, or reset the run",
        ErrorCode::StaleQuery => "drop the answer: the caller has disconnected or has an answer",
        ErrorCode::SetAside | ErrorCode::Unreadable => {
            "see the server's log; the run makes no progress until an operator repairs it"
        }
        ErrorCode::NotServed | ErrorCode::Overloaded => "retry later",
        ErrorCode::Reset | ErrorCode::Unavailable => "retry the call with the same key",
    }
}

#[cfg(feature = "tonic")]
pub use status::{from_status, reason, to_status, with_causes};

#[cfg(feature = "tonic")]
mod status {
    //! The details of a gRPC status, laid out as `google.rpc.Status`, as other clients expect.

    use std::error::Error;

    use abide_core::operation::CallError;
    use prost::Message;
    use tonic::{Code, Status};

    use super::from_detail;
    use crate::generated::{ErrorCode, ErrorDetail, RefusalCode};

    /// Longest text in a status, in bytes. A status travels in headers, of which clients accept 16
    /// kB; a byte may become three there, and the message appears three times.
    const TEXT_BYTES: usize = 1_000;

    const TYPE: &str = "type.googleapis.com/abide.v1.ErrorDetail";

    #[derive(Clone, PartialEq, Message)]
    struct RichStatus {
        #[prost(int32, tag = "1")]
        code: i32,
        #[prost(string, tag = "2")]
        message: String,
        #[prost(message, repeated, tag = "3")]
        details: Vec<Any>,
    }

    #[derive(Clone, PartialEq, Message)]
    struct Any {
        #[prost(string, tag = "1")]
        type_url: String,
        #[prost(bytes = "vec", tag = "2")]
        value: Vec<u8>,
    }

    /// The gRPC status of an error. Texts that are too long for a status are cut.
    pub fn to_status(mut detail: ErrorDetail) -> Status {
        cut_texts(&mut detail);
        let code = code(&detail);
        let any = Any { type_url: TYPE.to_owned(), value: detail.encode_to_vec() };
        let rich =
            RichStatus { code: code.into(), message: detail.message.clone(), details: vec![any] };
        Status::with_details(code, detail.message, rich.encode_to_vec().into())
    }

    fn cut_texts(detail: &mut ErrorDetail) {
        let ErrorDetail { message, field, blocked, .. } = detail;
        for text in [message, field] {
            cut(text, TEXT_BYTES);
        }
        if let Some(blocked) = blocked {
            // At most eight texts, which share the room of two.
            blocked.recorded.truncate(3);
            let keys = [
                &mut blocked.expected_key,
                &mut blocked.recorded_key,
                &mut blocked.expected_fingerprint,
                &mut blocked.recorded_fingerprint,
            ];
            let texts = blocked.recorded.iter_mut().chain([&mut blocked.expected]);
            texts.chain(keys.into_iter().flatten()).for_each(|text| cut(text, TEXT_BYTES / 4));
        }
    }

    fn cut(text: &mut String, bytes: usize) {
        if text.len() > bytes {
            text.truncate(text.floor_char_boundary(bytes));
            text.push('…');
        }
    }

    /// The error of a request that ended with this status. A status without details comes from the
    /// network or from a limit of the transport, and says nothing about the request itself. Do not
    /// use it for a status that ends a stream: see [`reason`].
    pub fn from_status(status: &Status) -> CallError {
        let rich = RichStatus::decode(status.details()).unwrap_or_default();
        let ours = rich.details.into_iter().find(|any| any.type_url == TYPE);
        match ours.and_then(|any| ErrorDetail::decode(any.value.as_slice()).ok()) {
            Some(detail) => from_detail(detail),
            None => CallError::Unavailable(reason(status)),
        }
    }

    /// Why a stream ended. The reason concerns the stream as a whole: a caller that waits for an
    /// answer on it only knows that the stream was lost. Network errors give the reason in their
    /// causes only.
    pub fn reason(status: &Status) -> String {
        because(status.message(), status.source())
    }

    /// An error with all its causes. Errors of the transport say what is wrong in their causes
    /// only.
    pub fn with_causes(error: &dyn Error) -> String {
        because(&error.to_string(), error.source())
    }

    fn because(what: &str, mut cause: Option<&dyn Error>) -> String {
        let mut text = what.to_owned();
        while let Some(error) = cause {
            let reason = error.to_string();
            if !text.contains(&reason) {
                text = format!("{text}: {reason}");
            }
            cause = error.source();
        }
        text
    }

    fn code(detail: &ErrorDetail) -> Code {
        match detail.code() {
            ErrorCode::Unspecified => Code::Unknown,
            ErrorCode::Invalid => Code::InvalidArgument,
            ErrorCode::NotFound => Code::NotFound,
            ErrorCode::AlreadyExists => Code::AlreadyExists,
            ErrorCode::Refused => match detail.refusal.as_ref().map(|refusal| refusal.code()) {
                Some(RefusalCode::Limit) => Code::ResourceExhausted,
                Some(RefusalCode::Busy) => Code::Unavailable,
                Some(
                    RefusalCode::UnknownTimer
                    | RefusalCode::UnknownWait
                    | RefusalCode::UnknownUpdate,
                ) => Code::NotFound,
                Some(_) | None => Code::FailedPrecondition,
            },
            ErrorCode::UpdateAborted | ErrorCode::Reset => Code::Aborted,
            ErrorCode::Blocked | ErrorCode::StaleQuery | ErrorCode::SetAside => {
                Code::FailedPrecondition
            }
            ErrorCode::Unreadable => Code::DataLoss,
            ErrorCode::NotServed | ErrorCode::Unavailable => Code::Unavailable,
            ErrorCode::Overloaded => Code::ResourceExhausted,
        }
    }
}
