//! The committed state: every applied batch is folded here immediately, with the checks on each
//! record. The machines never see it; the checks compare the world with it.

use std::collections::{BTreeMap, BTreeSet};

use abide_core::{
    codec,
    event::{Body, Event, Fact},
    ids::{EventNumber, RunId, ShardId, WorkflowKey},
    note::{Note, Record},
    run::{Description, FoldError, Run, TimerKey},
    time::Timestamp,
};
use abide_store::{Batch, Write, rows::LogRow};
use bytes::Bytes;

use super::{
    Check, Checked, Violation, chains, course, races, records, schedules::Doings, waits, writers,
};

#[derive(Debug, Default)]
pub struct Ledger {
    /// By run.
    pub stories: BTreeMap<RunId, Story>,
    /// Runs of each workflow, in order of their first row.
    pub workflows: BTreeMap<WorkflowKey, Vec<RunId>>,
    /// Who claimed each shard last.
    pub claims: BTreeMap<ShardId, writers::Claim>,
    /// Latest time that any clock showed.
    pub latest: Timestamp,
    /// Rows of waits and due times.
    pub rows: waits::Rows,
    /// Timers that fired in the last batch, with their due times.
    pub fired: Vec<(RunId, Bytes, Timestamp)>,
}

/// One run according to its log.
#[derive(Debug)]
pub struct Story {
    /// The fold of all rows.
    pub run: Run,
    rows: Vec<codec::Row>,
    pub shard: ShardId,
    pub events: Vec<Event>,
    /// Starts of attempts: scheduled, start.
    pub attempts: BTreeSet<(EventNumber, u32)>,
    /// Attempts that were left to be completed from outside.
    pub detached: BTreeSet<(EventNumber, u32)>,
    pub completed: BTreeSet<EventNumber>,
    /// Commands to other workflows without a result event that are settled, by event, and whether they
    /// were delivered.
    pub settled: BTreeMap<EventNumber, bool>,
    /// Events of commands to other workflows, by the number of the effect.
    sent: BTreeMap<u64, EventNumber>,
    /// What it did, if it is a schedule.
    pub schedule: Doings,
    /// Names of buffered inputs that no longer applied.
    pub dropped: Vec<String>,
    /// Position between two tasks.
    pub place: records::TaskPosition,
    /// The last event that a reset wrote when it made the run; zero without a reset.
    pub inherited: EventNumber,
    /// The run is deleted. What it was is kept for checks of others.
    pub deleted: bool,
}

impl Ledger {
    /// Takes a batch that the store applied for `writer`.
    pub fn apply(&mut self, writer: u32, batch: &Batch) -> Checked {
        writers::owner_writes(self, writer, batch)?;
        self.fired.clear();
        for write in &batch.writes {
            #[expect(clippy::wildcard_enum_match_arm, reason = "other rows are compared later")]
            match write {
                Write::AppendLog(row) => self.append(batch.shard, row)?,
                Write::DeleteRun(run) => course::delete(self, *run)?,
                Write::PutSnapshot(row) => writers::snapshot_is_fold(self, row)?,
                _ => {}
            }
        }
        let runs = self.rows.apply(batch);
        chains::hold_together(self, &runs)?;
        course::resets_copy(self, &runs)?;
        waits::rows_follow_history(self, &runs)
    }

    /// The current run of a workflow.
    pub fn current(&self, workflow: &WorkflowKey) -> Option<&Story> {
        let runs = self.workflows.get(workflow)?;
        let stories = runs.iter().filter_map(|run| self.stories.get(run));
        let stories = stories.filter(|story| !story.deleted);
        stories.max_by_key(|story| story.run.ordinal)
    }

    /// Stories of a workflow, in order of their first row.
    pub fn of_workflow(&self, workflow: &WorkflowKey) -> impl Iterator<Item = &Story> {
        let runs = self.workflows.get(workflow).into_iter().flatten();
        runs.filter_map(|run| self.stories.get(run))
    }

    fn append(&mut self, shard: ShardId, row: &LogRow) -> Checked {
        let unreadable = |error: codec::DecodeError| {
            Violation::of(Check::LogDense, row.run, format!("unreadable row: {error}"))
        };
        let encoded = codec::Row { events: row.events.clone(), notes: row.notes.clone() };
        let records = codec::decode_row(&encoded).map_err(unreadable)?;
        let latest = self.latest;
        self.fired.extend(records.iter().filter_map(|record| match record {
            Record::Event(Event { body: Body { fact: Fact::TimerFired(fired), .. }, .. }) => {
                let timer = TimerKey::Timer(fired.timer.clone()).to_bytes();
                Some((row.run, timer, fired.fire_at))
            }
            Record::Event(_) | Record::Note(_) => None,
        }));
        match self.stories.get_mut(&row.run) {
            Some(story) => story.append(row, records, latest),
            None => {
                let story = Story::begin(shard, row, records, latest)?;
                self.workflows.entry(story.run.workflow.clone()).or_default().push(row.run);
                self.stories.insert(row.run, story);
                Ok(())
            }
        }
    }
}

impl Story {
    fn begin(
        shard: ShardId,
        row: &LogRow,
        records: Vec<Record>,
        latest: Timestamp,
    ) -> Result<Self, Violation> {
        if row.sequence != 1 {
            let what = format!("the log begins with row {}", row.sequence);
            return Err(Violation::of(Check::LogDense, row.run, what));
        }
        let (first, rest) = records.split_at(1.min(records.len()));
        let run = Run::fold(first).map_err(|error| gap(row, &error))?;
        let mut story = Self {
            run,
            rows: Vec::new(),
            shard,
            events: Vec::new(),
            attempts: BTreeSet::new(),
            detached: BTreeSet::new(),
            completed: BTreeSet::new(),
            settled: BTreeMap::new(),
            sent: BTreeMap::new(),
            schedule: Doings::default(),
            dropped: Vec::new(),
            place: records::TaskPosition::default(),
            inherited: 0,
            deleted: false,
        };
        for record in first {
            if let Record::Event(event) = record {
                records::not_in_the_future(&story.run, event, latest)?;
                story.events.push(event.clone());
            }
        }
        story.take(row, rest.to_vec(), latest)?;
        Ok(story)
    }

    fn append(&mut self, row: &LogRow, records: Vec<Record>, latest: Timestamp) -> Checked {
        if self.deleted {
            return Err(Violation::of(Check::Deletions, row.run, "it is written to afterwards"));
        }
        if row.sequence != self.run.log_rows + 1 {
            let what = format!("row {} follows row {}", row.sequence, self.run.log_rows);
            return Err(Violation::of(Check::LogDense, row.run, what));
        }
        if row.first_event != self.run.last_event + 1 {
            let last = self.run.last_event;
            let what = format!("a row that begins at {} follows event {last}", row.first_event);
            return Err(Violation::of(Check::LogDense, row.run, what));
        }
        self.take(row, records, latest)
    }

    fn take(&mut self, row: &LogRow, records: Vec<Record>, latest: Timestamp) -> Checked {
        for record in records {
            match &record {
                Record::Event(event) => {
                    records::check(&self.run, &mut self.place, event, latest)?;
                }
                Record::Note(note) => records::detached_is_not_lost(self, note)?,
            }
            self.run.fold_more([&record]).map_err(|error| gap(row, &error))?;
            match record {
                Record::Event(event) => {
                    if let Fact::ActivityCompleted(completed) = &event.body.fact {
                        self.completed.insert(completed.scheduled);
                    }
                    let sent = self.run.outbox.last_key_value();
                    let sent = sent.filter(|(_, effect)| effect.initiated == Some(event.number));
                    self.sent.extend(sent.map(|(number, _)| (*number, event.number)));
                    self.events.push(event);
                }
                Record::Note(note) => self.note(note),
            }
        }
        if self.run.copied > 0 && row.first_event == self.run.copied + 1 {
            self.inherited = self.run.last_event;
        }
        self.run.logged(row.events.len());
        self.run.take_touched();
        self.rows.push(codec::Row { events: row.events.clone(), notes: row.notes.clone() });
        races::conditions_end_as_history_says(self, row.first_event)
    }

    /// The last row up to which the committed log shows the run like this, if it ever did.
    pub fn shows(&self, shown: &Description) -> Option<u64> {
        if like(&self.run.describe(), shown) {
            return Some(self.run.log_rows);
        }
        let mut run: Option<Run> = None;
        let mut found = None;
        for row in &self.rows {
            let records = codec::decode_row(row).ok()?;
            match &mut run {
                Some(run) => run.fold_more(&records).ok()?,
                None => run = Some(Run::fold(&records).ok()?),
            }
            let run = run.as_mut()?;
            run.logged(row.events.len());
            if run.last_event == shown.last_event && like(&run.describe(), shown) {
                found = Some(run.log_rows);
            }
        }
        found
    }

    fn note(&mut self, note: Note) {
        match note {
            Note::AttemptStarted(started) => {
                self.attempts.insert((started.scheduled, started.start));
            }
            Note::AttemptDetached { scheduled, start } => {
                self.detached.insert((scheduled, start));
            }
            Note::EffectSettled { number, delivered } => {
                let initiated = self.sent.get(&number);
                self.settled.extend(initiated.map(|initiated| (*initiated, delivered)));
            }
            Note::BufferReleased { dropped } => self.dropped.extend(dropped),
            Note::InputBuffered(_)
            | Note::AttemptEnded(_)
            | Note::AttemptReady { .. }
            | Note::Heartbeat { .. }
            | Note::TaskAttemptFailed(_)
            | Note::UpdateRejected { .. }
            | Note::Repaired { .. }
            | Note::AttemptAwaited { .. }
            | Note::AttemptPresented { .. }
            | Note::ResetTo(_)
            | Note::ParentChanged { .. }
            | Note::CancelRepeated { .. } => {}
            Note::ScheduleChanged(changed) => self.schedule.changes.push(changed.change),
            Note::ScheduleStepped(step) => self.schedule.started.extend(step.started),
            Note::ScheduledRunEnded(ended) => {
                self.schedule.outcomes.insert(ended.number, ended.outcome);
            }
        }
    }
}

/// Whether a run that shows itself like this in memory has this durable state. A task that a worker has,
/// and updates that code has not judged, are not in the log.
fn like(durable: &Description, shown: &Description) -> bool {
    let durable = Description {
        liveness: shown.liveness,
        resume_sources: shown.resume_sources.clone(),
        updates: shown.updates.clone(),
        ..durable.clone()
    };
    durable == *shown
}

fn gap(row: &LogRow, error: &FoldError) -> Violation {
    Violation::of(Check::LogDense, row.run, error.to_string())
}
