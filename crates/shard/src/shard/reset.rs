//! Reset of a run to an earlier workflow task. While its log is read, neither the run nor the current
//! one of its workflow changes; then the end of the old run and the whole new one are one batch.

use abide_core::{
    codec,
    event::Event,
    ids::{Key, RunId, WorkflowKey},
    operation::{CallError, Done, Reset, Ticket},
    run::{self, Refusal, ResetDone, ResetRun},
};
use abide_store::{ReadError, Write, rows::LogRow};

use super::{Reading, Shard, Todo};
use crate::{cache::Entry, message::Fetch};

/// A reset in progress.
#[derive(Clone, Debug)]
pub(super) struct Resetting {
    ticket: Ticket,
    asked: Reset,
    /// The run to copy.
    base: RunId,
    /// What the current run of the workflow tells the new one.
    head: Option<Head>,
    history: Vec<Vec<Event>>,
    /// Number of the last log row in `history`.
    read: u64,
}

/// The current run of the workflow.
#[derive(Clone, Debug)]
struct Head {
    run: RunId,
    ordinal: u64,
    terminate_keys: Vec<Key>,
    reset_keys: Vec<Key>,
}

impl Resetting {
    pub(super) const fn base(&self) -> RunId {
        self.base
    }

    pub(super) const fn workflow(&self) -> &WorkflowKey {
        &self.asked.target.workflow
    }
}

impl Shard {
    pub(super) fn begin_reset(&mut self, base: RunId, ticket: Ticket, asked: Reset) {
        let Some(entry) = self.memory.cache.peek(base) else { return };
        let key = asked.key.as_ref();
        let current = || entry.run.was_reset_by(key) && asked.target.run.is_none();
        let made = entry.run.reset_by(key).or_else(|| current().then_some(base));
        if let Some(run) = made {
            let repeat = Done { run, repeat: true, fire_at: None };
            return self.reply_after(base, ticket, Ok(repeat.into()));
        }
        if self.refusals.set_aside(base) {
            return self.reply(ticket, Err(CallError::SetAside(base)));
        }
        if let Err(refusal) = entry.run.fits_reset(&self.limits) {
            return self.reply_after(base, ticket, Err(refusal.into()));
        }
        let workflow = asked.target.workflow.clone();
        self.close_gate(base);
        let (head, history, read) = (None, Vec::new(), 0);
        let resetting = Resetting { ticket, asked, base, head, history, read };
        self.with_head(&workflow, Todo::ResetAfter(Box::new(resetting)));
    }

    /// The current run of the workflow is known: if it is another one, it must be closed.
    pub(super) fn reset_after(&mut self, head: RunId, mut resetting: Resetting) {
        let Some(entry) = self.memory.cache.peek(head) else { return };
        if head != resetting.base && entry.run.open() {
            let refusal = Refusal::OtherRunOpen(head);
            return self.end_reset(resetting, Err(refusal.into()));
        }
        resetting.head = Some(Head {
            run: head,
            ordinal: entry.run.ordinal,
            terminate_keys: entry.run.end_keys(&self.limits),
            reset_keys: entry.run.known_resets(&self.limits),
        });
        self.close_gate(head);
        let base = resetting.base;
        self.once_durable(base, Todo::ResetRead(Box::new(resetting)));
    }

    pub(super) fn read_for_reset(&mut self, resetting: Resetting) {
        let fetch = Fetch::Log(resetting.base, resetting.read, self.log_limit());
        self.fetch(Reading::Reset(Box::new(resetting)), fetch);
    }

    pub(super) fn reset_log_read(&mut self, mut resetting: Resetting, rows: Vec<LogRow>) {
        let last_page = !self.log_limit().filled_by(&rows);
        for row in rows {
            resetting.read = row.sequence;
            match codec::decode_events(row.events) {
                Ok(events) => resetting.history.push(events),
                Err(error) => return self.reset_unreadable(resetting, error.to_string()),
            }
        }
        match last_page {
            false => self.read_for_reset(resetting),
            true => self.with_run(resetting.base, Todo::ResetNow(Box::new(resetting))),
        }
    }

    pub(super) fn reset_read_failed(&mut self, resetting: Resetting, error: ReadError) {
        match error {
            ReadError::Corrupt(reason) => self.reset_unreadable(resetting, reason),
            ReadError::Unavailable(_) => self.reset(),
        }
    }

    fn reset_unreadable(&mut self, resetting: Resetting, reason: String) {
        let run = resetting.base;
        self.end_reset(resetting, Err(CallError::Unreadable { run, reason }));
    }

    /// Everything is read: makes the new run.
    pub(super) fn reset_now(&mut self, mut resetting: Resetting) {
        let (base, read) = (resetting.base, resetting.read);
        let run = self.draw_run();
        let context = Self::context(&self.moment, &self.limits);
        let entry = self.memory.cache.get(base).filter(|entry| entry.run.log_rows == read);
        let (Some(entry), Some(head)) = (entry, resetting.head.clone()) else {
            return self.reset_unreadable(resetting, "its log is not what was written".into());
        };
        let asked = ResetRun {
            run,
            ordinal: head.ordinal + 1,
            to: resetting.asked.to.clone(),
            reapply: resetting.asked.reapply,
            reason: resetting.asked.reason.clone(),
            identity: resetting.asked.identity.clone(),
            key: resetting.asked.key.clone(),
            terminate_keys: head.terminate_keys,
            reset_keys: head.reset_keys,
            history: std::mem::take(&mut resetting.history),
        };
        let made = run::reset(&mut entry.run, &context, asked);
        self.advance_entropy();
        match made {
            Ok(made) => {
                self.record_reset(base, made);
                self.end_reset(resetting, Ok(run));
            }
            Err(refusal) => self.end_reset(resetting, Err(refusal.into())),
        }
    }

    /// Ends the old run and begins the new one, in one batch.
    fn record_reset(&mut self, base: RunId, made: ResetDone) {
        let ResetDone { base: ended, run, copied, decision } = made;
        let id = run.id;
        let row = |(sequence, (first_event, row)): (u64, (u64, codec::Row))| {
            let codec::Row { events, notes } = row;
            Write::AppendLog(LogRow { run: id, sequence, first_event, events, notes })
        };
        let rows = (1..).zip(copied).map(row).collect();
        self.record(base, [ended]);
        self.memory.pipeline.push(Some(id), rows);
        self.begin_as_current(Entry::copied(run), decision);
    }

    fn end_reset(&mut self, resetting: Resetting, made: Result<RunId, CallError>) {
        let Resetting { ticket, base, head, .. } = resetting;
        self.open_gate(base);
        if let Some(head) = head {
            self.open_gate(head.run);
        }
        let answer = made.map(|run| Done { run, repeat: false, fire_at: None }.into());
        self.reply_after(base, ticket, answer);
    }

    /// The run, or the current one, cannot be read.
    pub(super) fn reset_without_run(&mut self, resetting: Resetting, error: &CallError) {
        self.end_reset(resetting, Err(error.clone()));
    }
}
