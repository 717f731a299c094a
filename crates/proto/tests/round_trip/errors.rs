//! A caller gets the very same error.

use abide_core::{
    limits::{Exceeded, InvalidField},
    operation::CallError,
    run::{Close, Refusal},
};
use abide_proto::{
    error::{from_detail, to_detail},
    generated::{ErrorCode, ErrorDetail},
};

use crate::{
    over_the_wire,
    values::{blocked, run, time, workflow},
};

fn every_error() -> Vec<CallError> {
    let refusals = [
        Refusal::RunClosed,
        Refusal::Busy,
        Refusal::Limit(Exceeded { what: "open timers".into(), limit: 3 }),
        Refusal::StaleTask,
        Refusal::BuildTried,
        Refusal::StaleAttempt,
        Refusal::CancelNotRequested,
        Refusal::UnknownActivity("a".into()),
        Refusal::NoAttempt("a".into()),
        Refusal::UnknownTimer("t".into()),
        Refusal::UnknownWait("w".into()),
        Refusal::EndlessWait("w".into()),
        Refusal::TimerFired("t".into()),
        Refusal::NoDeadline("t".into()),
        Refusal::NeverDeadline("t".into()),
        Refusal::PastDeadline { fire_at: time(1), now: time(2) },
        Refusal::TooLate { fire_at: time(1), not_after: time(2) },
        Refusal::TooManyMoves { limit: 4 },
        Refusal::UnknownUpdate("u".into()),
        Refusal::KeyReused("k".into()),
        Refusal::Paused,
        Refusal::NotPaused,
        Refusal::Held,
        Refusal::NotBegun { begins_at: time(3) },
        Refusal::RunOpen,
        Refusal::Undelivered(2),
        Refusal::NoSuchTask("none was completed".into()),
        Refusal::OtherRunOpen(run(1)),
        Refusal::Unanswered(5),
        Refusal::IsSchedule,
        Refusal::ScheduleRevised { revision: 7 },
    ];
    let mut errors: Vec<_> = refusals.into_iter().map(CallError::Refused).collect();
    errors.extend([
        CallError::Invalid(InvalidField::new("spec.queue", "is empty")),
        CallError::NotFound,
        CallError::AlreadyExists { workflow: workflow(), run: run(1) },
        CallError::UpdateAborted { run: run(4), how: Close::TimedOut, accepted: true },
        CallError::Blocked(Box::new(blocked())),
        CallError::StaleQuery,
        CallError::SetAside(run(2)),
        CallError::Unreadable { run: run(3), reason: "damaged".into() },
        CallError::NotServed,
        CallError::Reset,
        CallError::Unavailable("gone".into()),
        CallError::Overloaded,
    ]);
    errors
}

#[test]
fn errors_in_frames() {
    for error in every_error() {
        let detail = over_the_wire(&to_detail(error.clone()));
        assert!(!detail.message.is_empty() && !detail.hint.is_empty(), "{detail:?}");
        assert_eq!(from_detail(detail), error);
    }
}

#[cfg(feature = "tonic")]
#[test]
fn errors_in_statuses() {
    use abide_proto::error::{from_status, reason, to_status};
    for error in every_error() {
        let status = to_status(to_detail(error.clone()));
        assert_eq!(from_status(&status), error);
    }
    let lost = tonic::Status::unavailable("the wire is cut");
    assert_eq!(from_status(&lost), CallError::Unavailable("the wire is cut".into()));
    // A limit of the transport ends the whole stream, whoever passed it.
    let limit = "message length too large";
    let ended = tonic::Status::out_of_range(limit);
    assert_eq!(from_status(&ended), CallError::Unavailable(limit.into()));
    assert_eq!(reason(&ended), limit);
}

/// Clients take 16 kB of headers, in which a status travels.
#[cfg(feature = "tonic")]
#[test]
fn an_error_of_any_length_fits_the_headers() {
    use abide_core::event::Blocked;
    use abide_proto::error::{from_status, to_status};
    let long = "\u{1b}\u{20ac}".repeat(1 << 20);
    let blocked = Blocked {
        expected: long.clone(),
        recorded: vec![long.clone(); 100],
        expected_key: Some(long.clone()),
        recorded_fingerprint: Some(long.clone()),
        ..blocked()
    };
    let refused = Refusal::UnknownTimer("x".repeat(1_000).into());
    let errors = [
        CallError::Invalid(InvalidField::new(long.as_str(), long.as_str())),
        CallError::Unavailable(long),
        CallError::Blocked(Box::new(blocked)),
        CallError::Refused(refused),
    ];
    for error in errors {
        let status = to_status(to_detail(error.clone()));
        let headers = status.clone().into_http::<()>();
        let bytes: usize =
            headers.headers().iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
        assert!(bytes < 16_000, "{bytes} bytes");
        assert_eq!(
            std::mem::discriminant(&from_status(&status)),
            std::mem::discriminant(&error),
            "it is the same kind of error"
        );
    }
}

#[test]
fn an_error_without_its_data_is_still_one() {
    let detail = ErrorDetail {
        code: ErrorCode::AlreadyExists.into(),
        message: "it exists".into(),
        ..ErrorDetail::default()
    };
    assert_eq!(from_detail(detail), InvalidField::new("", "it exists").into());
}
