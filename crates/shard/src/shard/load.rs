//! Reads data before decisions are made: finds the current run of a workflow, folds logs, and
//! resumes the work that waited for them.

use std::collections::BTreeSet;

use abide_core::{
    codec::{self, Row},
    dispatch::Worker,
    event::{Body, Fact},
    ids::{EventNumber, NamespaceId, RunId, WorkflowKey},
    operation::{CallError, RunOperation, Ticket},
    report::{TaskCompletion, TaskToken},
    run::{Input, Run, Status},
};
use abide_store::{
    ReadError, WorkflowRuns, Write,
    rows::{DueKey, Loaded, LogLimit, LogRow, RunKey},
};

use super::{
    Shard, Todo, attributes::Unread, backlog::Refill, repair::Repair, request::Request,
    reset::Resetting, start::StartScan,
};
use crate::{
    cache::{Entry, Recent},
    message::{Envelope, Fetch, Fetched, Notice, Offer, Output},
};

/// The purpose of a read in flight.
#[derive(Debug)]
pub(super) enum Reading {
    Shard,
    Head(WorkflowKey),
    Load(RunId),
    /// A further page of a log.
    Log(RunId),
    Tasks,
    Refill(Box<Refill>),
    Due,
    Outbox,
    Inbox(Box<Envelope>),
    Stranded,
    WaitsOf(RunId, Box<Repair>),
    StartScan(Box<StartScan>),
    Carried(Box<CarryOver>),
    Registered(NamespaceId, Box<Unread>),
    Reset(Box<Resetting>),
}

/// A search in flight for the current run of a workflow, and the work that waits for it.
#[derive(Debug)]
pub(super) struct HeadSearch {
    parked: Vec<Todo>,
    /// A run of the workflow began after the read did.
    pub(super) stale: bool,
}

/// A run that is being read, and the work that waits for it.
#[derive(Debug)]
pub(super) struct Load {
    run: Option<Run>,
    snapshot_rows: u64,
    /// The events that were read: the worker of the next task needs them too. None with a snapshot.
    events: Option<Recent>,
    row_outdated: bool,
    parked: Vec<Todo>,
    /// Work that came after the read began, and needs another one because others may write.
    late: Vec<Todo>,
    /// The run before it, if that is read to find the current run.
    follows: Option<RunId>,
}

/// A continue-as-new whose carried-over event bodies are being read.
#[derive(Clone, Debug)]
pub(super) struct CarryOver {
    pub(super) run: RunId,
    pub(super) ticket: Ticket,
    pub(super) token: TaskToken,
    pub(super) completion: Box<TaskCompletion>,
    pub(super) wanted: BTreeSet<EventNumber>,
    pub(super) found: Vec<Body>,
}

impl Shard {
    /// Whether work on a run waits: its log is being read, or it is being deleted.
    pub fn is_loading(&self, run: RunId) -> bool {
        self.memory.loads.contains_key(&run) || self.memory.gates.holds(run)
    }

    /// Whether the log of a run is being read, or was just read for writes that keep a large run in memory.
    pub fn is_arriving(&self, run: RunId) -> bool {
        let durable = |batch| self.memory.pipeline.durable(batch);
        self.is_loading(run)
            || self.memory.cache.peek(run).is_some_and(|entry| entry.arrives(durable))
    }

    /// Whether the answer to a read is still wanted; a reset drops the reads in flight.
    pub fn awaits(&self, ticket: Ticket) -> bool {
        self.memory.reads.contains_key(&ticket)
    }

    pub(super) fn fetch(&mut self, reading: Reading, fetch: Fetch) {
        let ticket = self.ticket();
        self.memory.reads.insert(ticket, reading);
        self.emit(Output::Fetch(ticket, fetch));
    }

    pub(super) fn fetched(&mut self, ticket: Ticket, fetched: Result<Fetched, ReadError>) {
        let Some(reading) = self.memory.reads.remove(&ticket) else { return };
        let fetched = match fetched {
            Ok(fetched) => fetched,
            Err(error) => return self.read_failed(reading, error),
        };
        match (reading, fetched) {
            (Reading::Shard, Fetched::Shard(row)) => self.claim(row),
            (Reading::Head(workflow), Fetched::Runs(rows)) => self.head_read(&workflow, rows),
            (Reading::Load(run), Fetched::Load(loaded)) => self.load_read(run, loaded),
            (Reading::Log(run), Fetched::Log(rows)) => self.log_read(run, rows),
            (Reading::Tasks, Fetched::Tasks(rows)) => self.tasks_scanned(rows),
            (Reading::Refill(refill), Fetched::Tasks(rows)) => self.refill_read(*refill, rows),
            (Reading::Due, Fetched::Due(rows)) => self.due_read(rows),
            (Reading::Outbox, Fetched::Outbox(rows)) => self.outbox_read(rows),
            (Reading::Inbox(envelope), Fetched::Inbox(row)) => self.inbox_read(*envelope, row),
            (Reading::Stranded, Fetched::Stranded(swept)) => self.stranded_read(swept),
            (Reading::WaitsOf(run, repair), Fetched::Waits(rows)) => {
                self.waits_read(run, *repair, rows);
            }
            (Reading::StartScan(scan), Fetched::Runs(rows)) => self.start_scanned(*scan, rows),
            (Reading::Carried(carried), Fetched::Log(rows)) => self.carried_read(*carried, rows),
            (Reading::Registered(namespace, asked), Fetched::Registered(row)) => {
                self.registered_read(&namespace, *asked, row);
            }
            (Reading::Reset(resetting), Fetched::Log(rows)) => {
                self.reset_log_read(*resetting, rows);
            }
            // The driver answered a different read: nothing in memory can be trusted.
            _ => self.reset(),
        }
    }

    /// A failed read resets the shard, as a failed commit does: there is one way to recover.
    /// Exceptions are reads of a read-only shard, corrupt runs and sweeps.
    fn read_failed(&mut self, reading: Reading, error: ReadError) {
        match (reading, error) {
            (Reading::Shard, _) if self.memory.read_only.is_some() => self.close(),
            (Reading::Load(run) | Reading::Log(run), ReadError::Unavailable(why))
                if self.memory.read_only.is_some() =>
            {
                self.load_failed(run, &CallError::Unavailable(why));
            }
            (Reading::Head(workflow), ReadError::Unavailable(why))
                if self.memory.read_only.is_some() =>
            {
                let search = self.memory.heads.remove(&workflow);
                for todo in search.into_iter().flat_map(|search| search.parked) {
                    self.without_run(None, todo, &CallError::Unavailable(why.clone()));
                }
            }
            (Reading::Load(run) | Reading::Log(run), ReadError::Corrupt(reason)) => {
                self.load_failed(run, &CallError::Unreadable { run, reason });
            }
            (Reading::Reset(resetting), error) => self.reset_read_failed(*resetting, error),
            // No request waits for the sweep, which is the longest read of all; the next sweep
            // retries.
            (Reading::Stranded, ReadError::Unavailable(_)) => {}
            _ => self.reset(),
        }
    }

    /// Performs work with the current run of a workflow, finding it first if necessary.
    pub(super) fn with_head(&mut self, workflow: &WorkflowKey, todo: Todo) {
        if let Some(run) = self.memory.cache.head(workflow) {
            return self.carry_on(run, todo);
        }
        if let Some(search) = self.memory.heads.get_mut(workflow) {
            search.parked.push(todo);
            return;
        }
        self.memory.heads.insert(workflow.clone(), HeadSearch { parked: vec![todo], stale: false });
        let runs = WorkflowRuns {
            namespace: workflow.namespace.clone(),
            workflow: workflow.workflow.clone(),
            before: None,
        };
        self.fetch(Reading::Head(workflow.clone()), Fetch::RunsOf(runs, 1));
    }

    fn head_read(&mut self, workflow: &WorkflowKey, rows: Vec<RunKey>) {
        let Some(search) = self.memory.heads.remove(workflow) else { return };
        if search.stale {
            // The run that began meanwhile is in memory, or it is durable and a new read will find
            // it.
            for todo in search.parked {
                self.with_head(workflow, todo);
            }
            return;
        }
        let parked = search.parked;
        match rows.first() {
            Some(row) => {
                for todo in parked {
                    self.with_run_as_head(row.run, todo);
                }
            }
            None => {
                for todo in parked {
                    // The first of them may be a start, which the others then find.
                    match self.memory.cache.head(workflow) {
                        Some(run) => self.carry_on(run, todo),
                        None => self.without_run(None, todo, &CallError::NotFound),
                    }
                }
            }
        }
    }

    fn with_run_as_head(&mut self, run: RunId, todo: Todo) {
        match self.memory.cache.peek(run).map(|entry| entry.run.workflow.clone()) {
            Some(workflow) => self.carry_on_loaded(run, &workflow, todo),
            None => self.park(run, todo),
        }
    }

    /// Performs work with a run, loading it first if necessary.
    pub(super) fn with_run(&mut self, run: RunId, todo: Todo) {
        if self.memory.cache.peek(run).is_some() {
            self.carry_on(run, todo);
        } else {
            self.park(run, todo);
        }
    }

    /// Limit of one page of a log.
    pub(super) fn log_limit(&self) -> LogLimit {
        LogLimit { rows: self.limits.page_rows, bytes: self.limits.log_page_bytes }
    }

    fn park(&mut self, run: RunId, todo: Todo) {
        let others_may_write = self.others_may_write();
        if let Some(load) = self.memory.loads.get_mut(&run) {
            let waiting = if others_may_write { &mut load.late } else { &mut load.parked };
            return waiting.push(todo);
        }
        self.memory.loads.insert(run, Load::new(todo));
        self.fetch(Reading::Load(run), Fetch::Load(run, self.log_limit()));
    }

    fn load_read(&mut self, run: RunId, loaded: Loaded) {
        let Some(load) = self.memory.loads.get_mut(&run) else { return };
        load.row_outdated = loaded.row_outdated;
        if let Some(row) = loaded.snapshot {
            load.run =
                Run::from_snapshot(&row.state).filter(|state| state.log_rows == row.sequence);
            if load.run.is_none() {
                // The snapshot cannot be used, so the rows that it covers are needed as well.
                return self.fetch(Reading::Log(run), Fetch::Log(run, 0, self.log_limit()));
            }
            (load.snapshot_rows, load.events) = (row.sequence, None);
        }
        self.log_read(run, loaded.log);
    }

    fn log_read(&mut self, run: RunId, rows: Vec<LogRow>) {
        let last_page = !self.log_limit().filled_by(&rows);
        let Some(load) = self.memory.loads.get_mut(&run) else { return };
        for row in rows {
            if let Err(reason) = load.fold(row) {
                return self.load_failed(run, &CallError::Unreadable { run, reason });
            }
        }
        let after = load.run.as_ref().map_or(0, |state| state.log_rows);
        if last_page {
            self.loaded(run);
        } else {
            self.fetch(Reading::Log(run), Fetch::Log(run, after, self.log_limit()));
        }
    }

    fn loaded(&mut self, id: RunId) {
        let Some(mut load) = self.memory.loads.remove(&id) else { return };
        for todo in std::mem::take(&mut load.late) {
            self.park(id, todo);
        }
        if self.memory.cache.peek(id).is_some() {
            // The run began while its log was being read.
            for todo in load.parked {
                self.with_run(id, todo);
            }
            return;
        }
        let Some(mut run) = load.run else {
            for todo in load.parked {
                match load.follows.filter(|_| todo.wants_head()) {
                    Some(before) => self.end_chain_at(before, todo),
                    None => self.without_run(Some(id), todo, &CallError::NotFound),
                }
            }
            return;
        };
        run.take_touched();
        self.put_back(&mut run);
        // The task that buffered inputs wait for was lost with the memory of the shard.
        let recovers = !run.buffer.is_empty() && run.volatile.turn.is_none();
        let workflow = run.workflow.clone();
        let attempts: Vec<_> = run.attempts_of_workers().collect();
        let mut entry = Entry::loaded(run, load.events);
        (entry.snapshot_rows, entry.row_outdated) = (load.snapshot_rows, load.row_outdated);
        entry.set_turn_alarm(&self.limits);
        self.memory.cache.insert(entry);
        // Before anything touches them: the shard may have missed the end of their sessions.
        for scheduled in attempts {
            self.await_presentation(id, scheduled);
        }
        if recovers && self.memory.read_only.is_none() {
            self.decide_quietly(id, Input::Recover);
        }
        for todo in load.parked {
            self.carry_on_loaded(id, &workflow, todo);
        }
    }

    /// Resumes work with a loaded run, or with the current run if the work asked for that.
    fn carry_on_loaded(&mut self, run: RunId, workflow: &WorkflowKey, todo: Todo) {
        if !todo.wants_head() {
            return self.carry_on(run, todo);
        }
        if let Some(head) = self.memory.cache.head(workflow) {
            return self.carry_on(head, todo);
        }
        // A successor may have begun after the row was read.
        let status = self.memory.cache.peek(run).map(|entry| entry.run.status);
        match status {
            Some(Status::Closed { next_run: Some(next), .. }) => {
                self.with_run_as_head(next, todo);
                if let Some(load) = self.memory.loads.get_mut(&next) {
                    load.follows = Some(run);
                }
            }
            _ => {
                self.memory.cache.set_head(workflow.clone(), run);
                self.carry_on(run, todo);
            }
        }
    }

    /// The run that followed this one was deleted, so this one is the current run.
    fn end_chain_at(&mut self, run: RunId, todo: Todo) {
        let workflow = self.memory.cache.peek(run).map(|entry| entry.run.workflow.clone());
        match workflow {
            None => self.with_run_as_head(run, todo),
            Some(workflow) if self.memory.cache.head(&workflow).is_some() => {
                self.with_head(&workflow, todo);
            }
            Some(workflow) => {
                self.memory.cache.set_head(workflow, run);
                self.carry_on(run, todo);
            }
        }
    }

    /// Resumes work that waited for a busy run. Another run of the workflow may be the current one
    /// by now.
    pub(super) fn carry_on_woken(&mut self, run: RunId, todo: Todo) {
        match todo.workflow().cloned() {
            Some(workflow) if todo.wants_head() => self.with_head(&workflow, todo),
            _ => self.with_run(run, todo),
        }
    }

    fn load_failed(&mut self, run: RunId, error: &CallError) {
        let Some(load) = self.memory.loads.remove(&run) else { return };
        if let CallError::Unreadable { run, reason } = error {
            self.emit(Output::Notice(Notice::Unreadable(*run, reason.clone())));
        }
        for todo in load.parked.into_iter().chain(load.late) {
            self.without_run(Some(run), todo, error);
        }
    }

    /// Ends work whose run does not exist or cannot be read.
    fn without_run(&mut self, run: Option<RunId>, todo: Todo, error: &CallError) {
        match todo {
            Todo::Request(ticket, Request::Operation(operation)) => match *operation {
                RunOperation::Start(start) if *error == CallError::NotFound => {
                    self.start_first(ticket, *start);
                }
                RunOperation::CreateSchedule(create) if *error == CallError::NotFound => {
                    self.begin_schedule(ticket, &create, 1, Vec::new());
                }
                _ => self.reply(ticket, Err(error.clone())),
            },
            Todo::Request(ticket, Request::Report(_)) => {
                self.acknowledge(ticket, Err(error.clone()));
            }
            Todo::Scanned(scan) => {
                let (ticket, start) = scan.into_start();
                self.without_run(run, Todo::Request(ticket, start.into()), error);
            }
            // The run was deleted since.
            Todo::Repeated(ticket, start) if *error == CallError::NotFound => {
                let workflow = start.workflow.clone();
                self.with_head(&workflow, Todo::Request(ticket, (*start).into()));
            }
            Todo::Repeated(ticket, _) => self.reply(ticket, Err(error.clone())),
            Todo::Matched(offer, worker) => self.emit(Output::Unmatched(offer, worker)),
            Todo::Deliver(envelope) if *error == CallError::NotFound => {
                self.deliver_nowhere(*envelope);
            }
            // The source retries.
            Todo::Deliver(envelope) => drop(self.memory.incoming.remove(&envelope.key)),
            Todo::Due(due, timer) => {
                if let Some(run) = run.filter(|_| *error == CallError::NotFound) {
                    let key = DueKey { due, run, timer: timer.to_bytes() };
                    self.memory.pipeline.push(None, vec![Write::DeleteDue(key)]);
                }
            }
            Todo::Requery(ticket) => {
                self.memory.queries.remove(ticket);
                self.reply(ticket, Err(error.clone()));
            }
            Todo::Repair(repair) => self.reply(repair.ticket, Err(error.clone())),
            Todo::Finish(carried) => self.acknowledge(carried.ticket, Err(error.clone())),
            Todo::ResetAfter(resetting)
            | Todo::ResetRead(resetting)
            | Todo::ResetNow(resetting) => {
                self.reset_without_run(*resetting, error);
            }
            // It was evicted between its last write and this.
            Todo::Deleted => {
                if let Some(run) = run {
                    self.open_gate(run);
                }
            }
            Todo::Answered(..)
            | Todo::LoseTask(_)
            | Todo::TimeOutTask(_)
            | Todo::Grace(_)
            | Todo::Await(_)
            | Todo::CheckAgain(_)
            | Todo::Reoffer
            | Todo::CheckTask
            | Todo::EnsureRows => {}
        }
    }

    fn carried_read(&mut self, mut carried: CarryOver, rows: Vec<LogRow>) {
        let last_page = !self.log_limit().filled_by(&rows);
        let after = rows.last().map(|row| row.sequence);
        for row in rows {
            let Ok(events) = codec::decode_events(row.events) else {
                let reason = "an event to carry over cannot be decoded".to_owned();
                let error = CallError::Unreadable { run: carried.run, reason };
                return self.acknowledge(carried.ticket, Err(error));
            };
            let wanted = events.into_iter().filter(|event| {
                carried.wanted.contains(&event.number)
                    && matches!(
                        event.body.fact,
                        Fact::SignalReceived(_) | Fact::UpdateAccepted(_) | Fact::UpdateAdmitted(_)
                    )
            });
            carried.found.extend(wanted.map(|event| event.body));
        }
        match after {
            Some(after) if !last_page && carried.found.len() < carried.wanted.len() => {
                let fetch = Fetch::Log(carried.run, after, self.log_limit());
                self.fetch(Reading::Carried(Box::new(carried)), fetch);
            }
            // The run may have been evicted meanwhile.
            _ => self.with_run(carried.run, Todo::Finish(Box::new(carried))),
        }
    }
}

impl Load {
    fn new(todo: Todo) -> Self {
        let events = Some(Recent::from_start());
        Self {
            run: None,
            snapshot_rows: 0,
            events,
            row_outdated: false,
            parked: vec![todo],
            late: Vec::new(),
            follows: None,
        }
    }

    /// Takes the matches that wait for the run.
    pub(super) fn take_matched(&mut self) -> Vec<(Offer, Worker)> {
        let parked = std::mem::take(&mut self.parked);
        let late = std::mem::take(&mut self.late);
        parked.into_iter().chain(late).filter_map(Todo::into_match).collect()
    }

    fn fold(&mut self, row: LogRow) -> Result<(), String> {
        let event_bytes = row.events.len();
        self.events = self.events.take().and_then(|events| events.with(row.events.clone()));
        let records = codec::decode_row(&Row { events: row.events, notes: row.notes })
            .map_err(|error| error.to_string())?;
        match &mut self.run {
            Some(run) => run.fold_more(&records).map_err(|error| error.to_string())?,
            None => self.run = Some(Run::fold(&records).map_err(|error| error.to_string())?),
        }
        if let Some(run) = &mut self.run {
            run.logged(event_bytes);
        }
        Ok(())
    }
}
