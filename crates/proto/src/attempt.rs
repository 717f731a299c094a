//! Reports on attempts of activities, from those who are no workers.

use abide_core::{
    attempt::{ActivityToken, AttemptName, AttemptReport},
    call::{Call, CallError},
    codec::Wire,
    limits::InvalidField,
    run::Resolution,
};

use crate::{
    error,
    field::{Inside, missing, part, word},
    generated::{
        NamedActivity, ReportAttemptRequest, ReportAttemptResponse,
        numbered_answer::Answer,
        report_attempt_request::{Attempt, Report},
    },
};

pub(crate) fn request_to_wire(name: AttemptName, report: AttemptReport) -> ReportAttemptRequest {
    let attempt = match name {
        AttemptName::Token(token) => Attempt::Token(token.to_text()),
        AttemptName::Activity(target, activity) => Attempt::Activity(NamedActivity {
            target: Some(target.into()),
            activity: activity.to_wire(),
        }),
    };
    let report = match report {
        AttemptReport::Resolved(Resolution::Completed(result)) => {
            Report::Completed(result.to_wire())
        }
        AttemptReport::Resolved(Resolution::Failed(failure)) => Report::Failed(failure.to_wire()),
        AttemptReport::Resolved(Resolution::Cancelled(details)) => {
            Report::Cancelled(details.to_wire())
        }
        AttemptReport::Heartbeat(details) => Report::Heartbeat(details.to_wire()),
    };
    ReportAttemptRequest { attempt: Some(attempt), report: Some(report) }
}

pub(crate) fn request_from_wire(request: ReportAttemptRequest) -> Result<Call, InvalidField> {
    let name = match request.attempt.ok_or_else(|| missing("attempt"))? {
        Attempt::Token(token) => AttemptName::Token(ActivityToken::from_text(&token)?),
        Attempt::Activity(NamedActivity { target, activity }) => {
            let target =
                part("target", target).map_err(|error: InvalidField| error.inside("activity"))?;
            AttemptName::Activity(target, word("activity", activity)?)
        }
    };
    let report = match request.report.ok_or_else(|| missing("report"))? {
        Report::Completed(result) => {
            AttemptReport::Resolved(Resolution::Completed(word("completed", result)?))
        }
        Report::Failed(failure) => {
            AttemptReport::Resolved(Resolution::Failed(word("failed", failure)?))
        }
        Report::Cancelled(details) => {
            AttemptReport::Resolved(Resolution::Cancelled(word("cancelled", details)?))
        }
        Report::Heartbeat(details) => AttemptReport::Heartbeat(word("heartbeat", details)?),
    };
    Ok(Call::ReportAttempt(name, report))
}

/// An end is only done; a heartbeat is told whether to go on.
impl TryFrom<Answer> for ReportAttemptResponse {
    type Error = CallError;

    fn try_from(answer: Answer) -> Result<Self, CallError> {
        match answer {
            Answer::Reported(response) => Ok(response),
            Answer::Done(_) => Ok(Self::default()),
            Answer::Error(detail) => Err(error::from_detail(detail)),
            _ => Err(error::misplaced_reply()),
        }
    }
}
