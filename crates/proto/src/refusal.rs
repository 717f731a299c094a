//! Why a run refuses an input, with the subject of the refusal.

use abide_core::{
    codec::Wire,
    ids::{ActivityId, TimerId},
    limits::{Exceeded, InvalidField},
    run::Refusal,
    time::Timestamp,
};

use crate::{
    field::{missing, word},
    generated::{self as wire, RefusalCode},
};

impl From<Refusal> for wire::Refusal {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::RunClosed => plain(RefusalCode::RunClosed),
            Refusal::Busy => plain(RefusalCode::Busy),
            Refusal::Limit(Exceeded { what, limit }) => Self {
                bounded: Some(what.into_owned()),
                limit: Some(limit),
                ..plain(RefusalCode::Limit)
            },
            Refusal::StaleTask => plain(RefusalCode::StaleTask),
            Refusal::BuildTried => plain(RefusalCode::BuildTried),
            Refusal::StaleAttempt => plain(RefusalCode::StaleAttempt),
            Refusal::UnknownActivity(activity) => {
                of_activity(RefusalCode::UnknownActivity, &activity)
            }
            Refusal::NoAttempt(activity) => of_activity(RefusalCode::NoAttempt, &activity),
            Refusal::CancelNotRequested => plain(RefusalCode::CancelNotRequested),
            Refusal::UnknownTimer(timer) => of_timer(RefusalCode::UnknownTimer, &timer),
            Refusal::UnknownWait(wait) => of_wait(RefusalCode::UnknownWait, wait),
            Refusal::EndlessWait(wait) => of_wait(RefusalCode::EndlessWait, wait),
            Refusal::TimerFired(timer) => of_timer(RefusalCode::TimerFired, &timer),
            Refusal::NoDeadline(timer) => of_timer(RefusalCode::NoDeadline, &timer),
            Refusal::NeverDeadline(timer) => of_timer(RefusalCode::NeverDeadline, &timer),
            Refusal::PastDeadline { fire_at, now } => {
                compared(RefusalCode::PastDeadline, fire_at, now)
            }
            Refusal::TooLate { fire_at, not_after } => {
                compared(RefusalCode::TooLate, fire_at, not_after)
            }
            Refusal::TooManyMoves { limit } => {
                Self { limit: Some(limit.into()), ..plain(RefusalCode::TooManyMoves) }
            }
            Refusal::UnknownUpdate(update) => {
                Self { update: Some(update.to_wire()), ..plain(RefusalCode::UnknownUpdate) }
            }
            Refusal::KeyReused(key) => {
                Self { key: Some(key.to_wire()), ..plain(RefusalCode::KeyReused) }
            }
            Refusal::Paused => plain(RefusalCode::Paused),
            Refusal::NotPaused => plain(RefusalCode::NotPaused),
            Refusal::Held => plain(RefusalCode::Held),
            Refusal::RunOpen => plain(RefusalCode::RunOpen),
            Refusal::Undelivered(effects) => {
                Self { limit: Some(effects), ..plain(RefusalCode::Undelivered) }
            }
            Refusal::NoSuchTask(why) => {
                Self { bounded: Some(why), ..plain(RefusalCode::NoSuchTask) }
            }
            Refusal::OtherRunOpen(run) => {
                Self { run: Some(run.to_wire()), ..plain(RefusalCode::OtherRunOpen) }
            }
            Refusal::Unanswered(event) => {
                Self { limit: Some(event), ..plain(RefusalCode::Unanswered) }
            }
            Refusal::NotBegun { begins_at } => {
                Self { begins_at: begins_at.to_wire(), ..plain(RefusalCode::NotBegun) }
            }
            Refusal::IsSchedule => plain(RefusalCode::IsSchedule),
            Refusal::ScheduleRevised { revision } => {
                Self { revision: Some(revision), ..plain(RefusalCode::ScheduleRevised) }
            }
        }
    }
}

fn plain(code: RefusalCode) -> wire::Refusal {
    wire::Refusal { code: code.into(), ..wire::Refusal::default() }
}

fn of_activity(code: RefusalCode, activity: &ActivityId) -> wire::Refusal {
    wire::Refusal { activity: Some(activity.to_wire()), ..plain(code) }
}

fn of_timer(code: RefusalCode, timer: &TimerId) -> wire::Refusal {
    wire::Refusal { timer: Some(timer.to_wire()), ..plain(code) }
}

fn of_wait(code: RefusalCode, wait: String) -> wire::Refusal {
    wire::Refusal { wait: Some(wait), ..plain(code) }
}

fn compared(code: RefusalCode, fire_at: Timestamp, with: Timestamp) -> wire::Refusal {
    wire::Refusal { fire_at: fire_at.to_wire(), compared: with.to_wire(), ..plain(code) }
}

impl TryFrom<wire::Refusal> for Refusal {
    type Error = InvalidField;

    fn try_from(wire: wire::Refusal) -> Result<Self, InvalidField> {
        let code = wire.code();
        let timer = || -> TimerId { wire.timer.clone().unwrap_or_default().into() };
        let activity = || -> ActivityId { wire.activity.clone().unwrap_or_default().into() };
        let limit = wire.limit.unwrap_or_default();
        Ok(match code {
            RefusalCode::Unspecified => return Err(missing("code")),
            RefusalCode::RunClosed => Self::RunClosed,
            RefusalCode::Busy => Self::Busy,
            RefusalCode::Limit => {
                let what = wire.bounded.clone().unwrap_or_default().into();
                Self::Limit(Exceeded { what, limit })
            }
            RefusalCode::StaleTask => Self::StaleTask,
            RefusalCode::BuildTried => Self::BuildTried,
            RefusalCode::StaleAttempt => Self::StaleAttempt,
            RefusalCode::UnknownActivity => Self::UnknownActivity(activity()),
            RefusalCode::NoAttempt => Self::NoAttempt(activity()),
            RefusalCode::CancelNotRequested => Self::CancelNotRequested,
            RefusalCode::UnknownTimer => Self::UnknownTimer(timer()),
            RefusalCode::UnknownWait => Self::UnknownWait(wire.wait.unwrap_or_default()),
            RefusalCode::EndlessWait => Self::EndlessWait(wire.wait.unwrap_or_default()),
            RefusalCode::TimerFired => Self::TimerFired(timer()),
            RefusalCode::NoDeadline => Self::NoDeadline(timer()),
            RefusalCode::NeverDeadline => Self::NeverDeadline(timer()),
            RefusalCode::PastDeadline => Self::PastDeadline {
                fire_at: word("fire_at", wire.fire_at)?,
                now: word("compared", wire.compared)?,
            },
            RefusalCode::TooLate => Self::TooLate {
                fire_at: word("fire_at", wire.fire_at)?,
                not_after: word("compared", wire.compared)?,
            },
            RefusalCode::TooManyMoves => {
                Self::TooManyMoves { limit: u32::try_from(limit).unwrap_or(u32::MAX) }
            }
            RefusalCode::UnknownUpdate => {
                Self::UnknownUpdate(wire.update.unwrap_or_default().into())
            }
            RefusalCode::KeyReused => Self::KeyReused(wire.key.unwrap_or_default().into()),
            RefusalCode::Paused => Self::Paused,
            RefusalCode::NotPaused => Self::NotPaused,
            RefusalCode::Held => Self::Held,
            RefusalCode::RunOpen => Self::RunOpen,
            RefusalCode::Undelivered => Self::Undelivered(limit),
            RefusalCode::NoSuchTask => Self::NoSuchTask(wire.bounded.unwrap_or_default()),
            RefusalCode::OtherRunOpen => {
                Self::OtherRunOpen(word("run", wire.run.ok_or_else(|| missing("run"))?)?)
            }
            RefusalCode::Unanswered => Self::Unanswered(limit),
            RefusalCode::NotBegun => {
                Self::NotBegun { begins_at: word("begins_at", wire.begins_at)? }
            }
            RefusalCode::IsSchedule => Self::IsSchedule,
            RefusalCode::ScheduleRevised => {
                Self::ScheduleRevised { revision: wire.revision.unwrap_or_default() }
            }
        })
    }
}
