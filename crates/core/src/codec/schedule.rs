//! Schedules: their definition, their state, and what is recorded of them.

use prost::Message;

use super::{
    generated,
    table::{enumerations, messages, union},
    wire::Wire,
};
use crate::{
    digest::Digest,
    payload::Payload,
    schedule::{
        Backfill as ScheduleBackfill, Calendar as ScheduleCalendar, EndRun,
        Interval as ScheduleInterval, Overlap as ScheduleOverlap, PlannedStart, Schedule,
        ScheduleChange, ScheduleChanged, ScheduleState, ScheduleStepped, ScheduledOutcome,
        ScheduledRun, ScheduledRunEnded, Spec as ScheduleSpec,
    },
};

messages! {
    Schedule { spec, workflow, run, overlap, catch_up, pause_on_failure, remaining }
    ScheduleSpec {
        cron,
        calendars,
        intervals,
        exclusions,
        start_at,
        end_at,
        jitter,
        time_zone,
    }
    ScheduleCalendar { second, minute, hour, day, month, year, weekday }
    ScheduleInterval { every, offset }
    ScheduleState {
        schedule,
        revision,
        created_at,
        changed_at,
        paused,
        note,
        considered,
        next,
        wake_at,
        waiting,
        backfills,
        running,
        recent,
        starts,
        skipped,
        missed,
    }
    PlannedStart { nominal, at, overlap, manual }
    ScheduleBackfill { after, until, overlap }
    ScheduledRun { number, nominal, at, workflow, run, ending, outcome }
    ScheduleChanged { at, identity, key, asked, change }
    ScheduleStepped {
        considered,
        next,
        wake_at,
        waiting,
        backfills,
        remaining,
        started,
        ending,
        skipped,
        missed,
    }
    EndRun { number, mode }
    ScheduledRunEnded { number, outcome }
}

enumerations! {
    ScheduleOverlap { Skip, BufferOne, BufferAll, AllowAll, CancelOther, TerminateOther }
}

union! {
    ScheduledOutcome = scheduled_outcome::Case in ScheduledOutcome {
        whole {}
        parts {
            Completed(Nothing) {},
            Failed(ScheduledFailure) { message },
            TimedOut(Nothing) {},
            Cancelled(Nothing) {},
            Terminated(Nothing) {},
            NotStarted(ScheduledStartFailure) { cause },
        }
    }
}

union! {
    ScheduleChange = schedule_change::Case in ScheduleChange {
        whole { Updated }
        parts {
            Paused(SchedulePaused) { note },
            Unpaused(ScheduleUnpaused) { note },
            Triggered(ScheduleTriggered) { overlap },
            Backfilled(ScheduleBackfilled) { from, to, overlap },
        }
    }
}

pub(super) fn digest(change: &ScheduleChange) -> Digest {
    let message: generated::ScheduleChange = change.to_wire();
    Digest::of_message("schedule", &[Payload::new(message.encode_to_vec())])
}
