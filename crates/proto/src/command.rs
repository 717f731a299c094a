//! Commands: what workflow code asks for.

use abide_core::{
    codec::Wire,
    command::{Ask, Command, ContinueAsNew},
    limits::InvalidField,
};

use crate::{
    field::word,
    generated::{self as wire, command::Ask as WireAsk},
};

impl From<Command> for wire::Command {
    fn from(command: Command) -> Self {
        Self { extension: command.extension, ask: Some(command.ask.into()) }
    }
}

impl TryFrom<wire::Command> for Command {
    type Error = InvalidField;

    fn try_from(wire: wire::Command) -> Result<Self, InvalidField> {
        let ask = wire.ask.ok_or_else(|| InvalidField::new("ask", "has no known case set"))?;
        let ask = Ask::try_from(ask)?;
        Ok(Self { extension: wire.extension, ..ask.into() })
    }
}

impl From<Ask> for WireAsk {
    fn from(ask: Ask) -> Self {
        match ask {
            Ask::ScheduleActivity(spec) => Self::ScheduleActivity(spec.to_wire()),
            Ask::CancelActivity(activity) => Self::CancelActivity(activity.to_wire()),
            Ask::StartTimer(spec) => Self::StartTimer(spec.to_wire()),
            Ask::RescheduleTimer { timer, fire_at } => Self::RescheduleTimer(wire::MoveTimer {
                timer: timer.to_wire(),
                fire_at: fire_at.to_wire(),
            }),
            Ask::CancelTimer(timer) => Self::CancelTimer(timer.to_wire()),
            Ask::OpenWait(spec) => Self::OpenWait(spec.to_wire()),
            Ask::DescribeWait { wait, details } => Self::DescribeWait(wire::DescribeWait {
                wait: wait.to_wire(),
                details: details.to_wire(),
            }),
            Ask::SatisfyWait(wait) => Self::SatisfyWait(wait.to_wire()),
            Ask::TimeOutWait(wait) => Self::TimeOutWait(wait.to_wire()),
            Ask::CancelWait(wait) => Self::CancelWait(wait.to_wire()),
            Ask::StartChild(child) => Self::StartChild((*child).to_wire()),
            Ask::SignalExternal { target, name, input, header } => {
                Self::SignalExternal(wire::SignalExternal {
                    target: target.to_wire(),
                    name,
                    input: input.to_wire(),
                    header: header.to_wire(),
                })
            }
            Ask::CancelExternal { target, mode, reason } => {
                let (target, mode) = (target.to_wire(), mode.to_wire());
                Self::CancelExternal(wire::CancelExternal { target, mode, reason })
            }
            Ask::RecordMarker(marker) => Self::RecordMarker(marker.to_wire()),
            Ask::UpsertSearchAttributes(items) => {
                Self::UpsertSearchAttributes(wire::PayloadMap { items: items.to_wire() })
            }
            Ask::UpsertMemo(items) => Self::UpsertMemo(wire::PayloadMap { items: items.to_wire() }),
            Ask::AcceptUpdate { update, request } => Self::AcceptUpdate(wire::AcceptUpdate {
                update: update.to_wire(),
                request: request.to_wire(),
            }),
            Ask::RejectUpdate { update, failure } => Self::RejectUpdate(wire::RejectUpdate {
                update: update.to_wire(),
                failure: failure.to_wire(),
            }),
            Ask::CompleteUpdate { update, outcome } => Self::CompleteUpdate(wire::CompleteUpdate {
                update: update.to_wire(),
                outcome: outcome.to_wire(),
            }),
            Ask::CompleteRun(result) => Self::CompleteRun(result.to_wire()),
            Ask::FailRun(failure) => Self::FailRun(failure.to_wire()),
            Ask::CancelRun(details) => Self::CancelRun(details.to_wire()),
            Ask::ContinueAsNew(next) => Self::ContinueAsNew(wire::ContinueAsNew {
                spec: next.spec.to_wire(),
                signals: next.signals,
                updates: next.updates.to_wire(),
            }),
        }
    }
}

impl TryFrom<WireAsk> for Ask {
    type Error = InvalidField;

    fn try_from(wire: WireAsk) -> Result<Self, InvalidField> {
        Ok(match wire {
            WireAsk::ScheduleActivity(spec) => {
                Self::ScheduleActivity(word("schedule_activity", spec)?)
            }
            WireAsk::CancelActivity(activity) => Self::CancelActivity(activity.into()),
            WireAsk::StartTimer(spec) => Self::StartTimer(word("start_timer", spec)?),
            WireAsk::RescheduleTimer(wire::MoveTimer { timer, fire_at }) => Self::RescheduleTimer {
                timer: timer.into(),
                fire_at: word("reschedule_timer.fire_at", fire_at)?,
            },
            WireAsk::CancelTimer(timer) => Self::CancelTimer(timer.into()),
            WireAsk::OpenWait(spec) => Self::OpenWait(word("open_wait", spec)?),
            WireAsk::DescribeWait(wire::DescribeWait { wait, details }) => Self::DescribeWait {
                wait: wait.into(),
                details: word("describe_wait.details", details)?,
            },
            WireAsk::SatisfyWait(wait) => Self::SatisfyWait(wait.into()),
            WireAsk::TimeOutWait(wait) => Self::TimeOutWait(wait.into()),
            WireAsk::CancelWait(wait) => Self::CancelWait(wait.into()),
            WireAsk::StartChild(child) => Self::StartChild(Box::new(word("start_child", child)?)),
            WireAsk::SignalExternal(signal) => Self::SignalExternal {
                target: word("signal_external.target", signal.target)?,
                name: signal.name,
                input: word("signal_external.input", signal.input)?,
                header: word("signal_external.header", signal.header)?,
            },
            WireAsk::CancelExternal(cancel) => Self::CancelExternal {
                target: word("cancel_external.target", cancel.target)?,
                mode: word("cancel_external.mode", cancel.mode)?,
                reason: cancel.reason,
            },
            WireAsk::RecordMarker(marker) => Self::RecordMarker(word("record_marker", marker)?),
            WireAsk::UpsertSearchAttributes(map) => {
                Self::UpsertSearchAttributes(word("upsert_search_attributes", map.items)?)
            }
            WireAsk::UpsertMemo(map) => Self::UpsertMemo(word("upsert_memo", map.items)?),
            WireAsk::AcceptUpdate(wire::AcceptUpdate { update, request }) => Self::AcceptUpdate {
                update: update.into(),
                request: word("accept_update.request", request)?,
            },
            WireAsk::RejectUpdate(wire::RejectUpdate { update, failure }) => Self::RejectUpdate {
                update: update.into(),
                failure: word("reject_update.failure", failure)?,
            },
            WireAsk::CompleteUpdate(wire::CompleteUpdate { update, outcome }) => {
                Self::CompleteUpdate {
                    update: update.into(),
                    outcome: word("complete_update.outcome", outcome)?,
                }
            }
            WireAsk::CompleteRun(result) => Self::CompleteRun(word("complete_run", result)?),
            WireAsk::FailRun(failure) => Self::FailRun(word("fail_run", failure)?),
            WireAsk::CancelRun(details) => Self::CancelRun(word("cancel_run", details)?),
            WireAsk::ContinueAsNew(next) => Self::ContinueAsNew(Box::new(ContinueAsNew {
                spec: word("continue_as_new.spec", next.spec)?,
                signals: next.signals,
                updates: word("continue_as_new.updates", next.updates)?,
            })),
        })
    }
}
