//! Reports on attempts of activities from processes that are not workers.

use abide_core::{
    attempt::{ActivityToken, AttemptName, AttemptReport},
    codec::Wire,
    limits::InvalidField,
    operation::ReportAttempt,
    run::Resolution,
};

use crate::{
    field::{Inside, missing, part, word},
    generated::{
        NamedActivity, ReportAttemptRequest,
        report_attempt_request::{Attempt, Report},
    },
};

impl From<ReportAttempt> for ReportAttemptRequest {
    fn from(ReportAttempt { attempt, report }: ReportAttempt) -> Self {
        let attempt = match attempt {
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
            AttemptReport::Resolved(Resolution::Failed(failure)) => {
                Report::Failed(failure.to_wire())
            }
            AttemptReport::Resolved(Resolution::Cancelled(details)) => {
                Report::Cancelled(details.to_wire())
            }
            AttemptReport::Heartbeat(details) => Report::Heartbeat(details.to_wire()),
        };
        Self { attempt: Some(attempt), report: Some(report) }
    }
}

impl TryFrom<ReportAttemptRequest> for ReportAttempt {
    type Error = InvalidField;

    fn try_from(request: ReportAttemptRequest) -> Result<Self, InvalidField> {
        let attempt = match request.attempt.ok_or_else(|| missing("attempt"))? {
            Attempt::Token(token) => AttemptName::Token(ActivityToken::from_text(&token)?),
            Attempt::Activity(NamedActivity { target, activity }) => {
                let target = part("target", target)
                    .map_err(|error: InvalidField| error.inside("activity"))?;
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
        Ok(Self { attempt, report })
    }
}
