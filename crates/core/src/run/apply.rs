//! How a record changes a run. Live decisions and recovery use the same code, so they cannot
//! differ. Applying never fails: what is in the log has happened.

use super::{Extent, Run, Touch};
use crate::{
    digest::Digest,
    event::{Event, Fact, FactSource},
    note::{Note, Record},
    payload,
};

/// A log that is not that of a run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FoldError {
    /// The log does not begin with RunStarted.
    #[error("the log begins with {0} instead of RunStarted")]
    NoStart(&'static str),
    /// The log is empty.
    #[error("the log is empty")]
    Empty,
    /// The event numbers have a gap.
    #[error("event {found} follows event {last}")]
    Gap { last: u64, found: u64 },
}

impl Run {
    /// Folds records, in the order of the log, into a run.
    pub fn fold<'a>(records: impl IntoIterator<Item = &'a Record>) -> Result<Self, FoldError> {
        let mut records = records.into_iter();
        let mut run = match records.next() {
            None => return Err(FoldError::Empty),
            Some(Record::Note(_)) => return Err(FoldError::NoStart("a note")),
            Some(Record::Event(event)) => {
                let Fact::RunStarted(started) = &event.body.fact else {
                    return Err(FoldError::NoStart(event.body.fact.name()));
                };
                Self::from_started(started, event.time)
            }
        };
        run.fold_more(records)?;
        Ok(run)
    }

    /// Continues folding, after a snapshot or after [`Self::fold`].
    pub fn fold_more<'a>(
        &mut self,
        records: impl IntoIterator<Item = &'a Record>,
    ) -> Result<(), FoldError> {
        for record in records {
            match record {
                Record::Event(event) if event.number != self.last_event + 1 => {
                    return Err(FoldError::Gap { last: self.last_event, found: event.number });
                }
                Record::Event(event) => self.apply_event(event),
                Record::Note(note) => self.apply_note(note),
            }
        }
        Ok(())
    }

    /// Counts a log row of the run. A row holds all commands of the task that it completes.
    pub fn logged(&mut self, event_bytes: usize) {
        self.log_rows += 1;
        self.forget_seen_firings();
        self.history_bytes += u64::try_from(event_bytes).unwrap_or_default();
        if self.log_rows == 1 {
            self.beginning = Extent { events: self.last_event, bytes: self.history_bytes };
        }
    }

    pub(super) fn apply_event(&mut self, event: &Event) {
        self.last_event = event.number;
        self.last_time = event.time;
        if event.body.fact.source() == FactSource::Input {
            self.mark_unseen();
        }
        self.remember_key(&event.body.fact);
        match &event.body.fact {
            Fact::RunStarted(_) => {}
            Fact::RunCompleted(_)
            | Fact::RunFailed(_)
            | Fact::RunTimedOut(_)
            | Fact::RunCancelled(_)
            | Fact::RunTerminated(_)
            | Fact::RunContinuedAsNew(_) => self.apply_close(event),
            Fact::RunCancelRequested(_) => self.cancel_requested = true,
            Fact::RunPaused(_) => self.apply_paused(true),
            Fact::RunUnpaused(_) => self.apply_paused(false),
            Fact::TaskScheduled(_)
            | Fact::TaskStarted(_)
            | Fact::TaskCompleted(_)
            | Fact::TaskFailed(_)
            | Fact::TaskTimedOut(_) => self.apply_task(event),
            Fact::ActivityScheduled(_)
            | Fact::ActivityStarted(_)
            | Fact::ActivityCompleted(_)
            | Fact::ActivityFailed(_)
            | Fact::ActivityTimedOut(_)
            | Fact::ActivityCancelRequested(_)
            | Fact::ActivityCancelled(_) => self.apply_activity(event),
            Fact::TimerStarted(_)
            | Fact::TimerRescheduled(_)
            | Fact::TimerFired(_)
            | Fact::TimerCancelled(_) => self.apply_timer(event),
            Fact::WaitOpened(_)
            | Fact::WaitDescribed(_)
            | Fact::WaitSatisfied(_)
            | Fact::WaitTimedOut(_)
            | Fact::WaitCancelled(_) => self.apply_wait(event),
            Fact::UpdateAdmitted(_) | Fact::UpdateAccepted(_) | Fact::UpdateCompleted(_) => {
                self.apply_update(event);
            }
            Fact::ChildInitiated(_)
            | Fact::ChildStarted(_)
            | Fact::ChildStartFailed(_)
            | Fact::ChildCompleted(_)
            | Fact::ChildFailed(_)
            | Fact::ChildTimedOut(_)
            | Fact::ChildCancelled(_)
            | Fact::ChildTerminated(_)
            | Fact::ExternalSignalInitiated(_)
            | Fact::ExternalSignalDelivered(_)
            | Fact::ExternalSignalFailed(_)
            | Fact::ExternalCancelInitiated(_)
            | Fact::ExternalCancelDelivered(_)
            | Fact::ExternalCancelFailed(_) => self.apply_child(event),
            Fact::SignalReceived(_) | Fact::MarkerRecorded(_) => {}
            Fact::SearchAttributesUpserted(upserted) => {
                payload::merge(&mut self.spec.search_attributes, &upserted.attributes);
                self.touch(Touch::Run);
            }
            Fact::MemoUpserted(upserted) => {
                payload::merge(&mut self.spec.memo, &upserted.memo);
                self.touch(Touch::Run);
            }
        }
    }

    pub(super) fn apply_note(&mut self, note: &Note) {
        match note {
            Note::InputBuffered(body) => self.apply_buffered(body),
            Note::BufferReleased { .. } => self.release_buffer(),
            Note::AttemptStarted(_)
            | Note::AttemptEnded(_)
            | Note::AttemptReady { .. }
            | Note::AttemptDetached { .. }
            | Note::AttemptAwaited { .. }
            | Note::AttemptPresented { .. }
            | Note::Heartbeat { .. } => self.apply_attempt(note),
            Note::TaskAttemptFailed(failed) => self.apply_attempt_failed(failed),
            Note::UpdateRejected { update, failure } => self.apply_rejected(update, failure),
            Note::EffectSettled { number, .. } => self.settle_effect(*number),
            Note::Repaired { .. } => self.apply_repaired(),
            Note::ResetTo(reset) => self.apply_reset_to(reset),
            Note::ParentChanged { parent } => self.apply_parent_changed(parent),
            Note::CancelRepeated { key } => self.cancel_keys.insert(key, Digest::UNKNOWN),
            Note::ScheduleChanged(changed) => self.apply_schedule_changed(changed),
            Note::ScheduleStepped(step) => self.apply_schedule_stepped(step),
            Note::ScheduledRunEnded(ended) => self.apply_scheduled_run_ended(ended),
        }
    }

    /// Remembers that code must see something, unless a task that shows it is already scheduled.
    fn mark_unseen(&mut self) {
        if !matches!(self.task, super::Task::Scheduled { .. }) {
            self.unseen = true;
        }
    }
}
