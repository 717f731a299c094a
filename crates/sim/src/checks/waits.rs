//! After every commit, the rows of a run's waits and due times are those that its history requires:
//! no wait without a row, no row without an open wait, one due row per timer and none left behind
//! by a reschedule or a close. What history requires is computed here independently, from the
//! events alone. Rows of effects are compared as well: they are too short-lived to be checked at
//! rest.

use std::collections::{BTreeMap, BTreeSet};

use abide_core::{
    codec,
    event::{Event, Fact, Origin, TimerSpec, WaitDetails, WaitSpec},
    ids::{RunId, TimerId, WaitId},
    list::{WaitKind, WaitRow},
    run::{Phase, TimerKey, WaitKey},
    time::Timestamp,
};
use abide_store::{Batch, Write};
use bytes::Bytes;

use super::{
    Check, Checked, Violation,
    ledger::{Ledger, Story},
};

/// Rows of waits, due times and effects, as written by batches.
#[derive(Debug, Default)]
pub struct Rows {
    waits: BTreeMap<RunId, BTreeMap<Bytes, WaitRow>>,
    due: BTreeMap<RunId, BTreeSet<(Bytes, Timestamp)>>,
    effects: BTreeMap<RunId, BTreeSet<u64>>,
}

impl Rows {
    /// Applies a batch and returns the runs in it.
    pub fn apply(&mut self, batch: &Batch) -> BTreeSet<RunId> {
        let mut runs = BTreeSet::new();
        for write in &batch.writes {
            #[expect(clippy::wildcard_enum_match_arm, reason = "other rows are compared later")]
            match write {
                Write::AppendLog(row) => {
                    runs.insert(row.run);
                }
                Write::PutWait(row) => {
                    self.waits.entry(row.run).or_default().insert(row.wait.clone(), row.clone());
                    runs.insert(row.run);
                }
                Write::DeleteWait { run, wait } => {
                    self.waits.entry(*run).or_default().remove(wait);
                    runs.insert(*run);
                }
                Write::PutDue(row) => {
                    self.due.entry(row.run).or_default().insert((row.timer.clone(), row.due));
                    runs.insert(row.run);
                }
                Write::DeleteDue(key) => {
                    self.due.entry(key.run).or_default().remove(&(key.timer.clone(), key.due));
                    runs.insert(key.run);
                }
                Write::PutOutbox(row) => {
                    self.effects.entry(row.run).or_default().insert(row.number);
                    runs.insert(row.run);
                }
                Write::DeleteOutbox { run, number } => {
                    self.effects.entry(*run).or_default().remove(number);
                    runs.insert(*run);
                }
                _ => {}
            }
        }
        runs
    }
}

/// The rows of these runs are those that their histories require.
pub fn rows_follow_history(ledger: &Ledger, runs: &BTreeSet<RunId>) -> Checked {
    for story in runs.iter().filter_map(|run| ledger.stories.get(run)) {
        let open = OpenWaits::of(story);
        let (no_waits, no_due, no_effects) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
        let waits = ledger.rows.waits.get(&story.run.id).unwrap_or(&no_waits);
        every_wait_has_its_row(story, &open.rows(story), waits)?;
        let due = ledger.rows.due.get(&story.run.id).unwrap_or(&no_due);
        every_timer_has_one_due_row(story, &open.due(story), due)?;
        let effects = ledger.rows.effects.get(&story.run.id).unwrap_or(&no_effects);
        every_effect_has_its_row(story, effects)?;
    }
    Ok(())
}

fn every_wait_has_its_row(
    story: &Story,
    wanted: &BTreeMap<Bytes, WaitRow>,
    stored: &BTreeMap<Bytes, WaitRow>,
) -> Checked {
    let wrong = |what: String| Err(Violation::of(Check::WaitRows, story.run.id, what));
    for (wait, row) in wanted {
        match stored.get(wait) {
            None => return wrong(format!("a wait without a row: {row:?}")),
            Some(found) if found != row => {
                return wrong(format!("the row {found:?} instead of {row:?}"));
            }
            Some(_) => {}
        }
    }
    match stored.iter().find(|(wait, _)| !wanted.contains_key(*wait)) {
        Some((_, row)) => wrong(format!("a row without an open wait: {row:?}")),
        None => Ok(()),
    }
}

fn every_timer_has_one_due_row(
    story: &Story,
    wanted: &BTreeMap<Bytes, Timestamp>,
    stored: &BTreeSet<(Bytes, Timestamp)>,
) -> Checked {
    let wrong = |what: String| Err(Violation::of(Check::DueRows, story.run.id, what));
    for (timer, due) in stored {
        match wanted.get(timer) {
            Some(wanted) if wanted == due => {}
            Some(wanted) => {
                return wrong(format!("{timer:?} is due at {wanted}, and has a row for {due}"));
            }
            None => return wrong(format!("{timer:?} is over, and has a row for {due}")),
        }
    }
    let missing =
        |(timer, due): &(&Bytes, &Timestamp)| !stored.contains(&((*timer).clone(), **due));
    match wanted.iter().find(missing) {
        Some((timer, due)) => wrong(format!("{timer:?} is due at {due}, and has no row")),
        None => Ok(()),
    }
}

fn every_effect_has_its_row(story: &Story, stored: &BTreeSet<u64>) -> Checked {
    let wanted: BTreeSet<_> = story.run.outbox.keys().copied().collect();
    match wanted.symmetric_difference(stored).next() {
        Some(number) => {
            let has =
                if stored.contains(number) { "is settled and has a row" } else { "has no row" };
            Err(Violation::of(Check::Rows, story.run.id, format!("effect {number} {has}")))
        }
        None => Ok(()),
    }
}

/// What is open at the end of a history, including the buffer.
#[derive(Default)]
struct OpenWaits<'a> {
    /// For a run that is the next attempt of a child: since when and until when it waits to start.
    begin: Option<(Timestamp, Timestamp)>,
    timers: BTreeMap<&'a TimerId, OpenTimer<'a>>,
    /// Fired timers, which code may arm again.
    fired: BTreeMap<&'a TimerId, OpenTimer<'a>>,
    conditions: BTreeMap<&'a WaitId, OpenCondition<'a>>,
}

struct OpenTimer<'a> {
    spec: &'a TimerSpec,
    since: Timestamp,
    until: Timestamp,
    /// Whether its firing is buffered.
    firing: bool,
}

struct OpenCondition<'a> {
    spec: &'a WaitSpec,
    details: Option<&'a WaitDetails>,
    since: Timestamp,
    /// The deadline that has passed.
    passed: Option<Timestamp>,
}

impl<'a> OpenWaits<'a> {
    fn of(story: &'a Story) -> Self {
        let mut open = Self::default();
        if story.run.open() {
            story.events.iter().for_each(|event| open.take(event));
            for body in &story.run.buffer {
                open.buffered(&body.fact);
            }
        }
        open
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "all others begin and end no wait")]
    fn take(&mut self, event: &'a Event) {
        match &event.body.fact {
            Fact::RunStarted(started) if started.attempt > 1 && started.parent.is_some() => {
                self.begin = started.first_task_at.map(|until| (event.time, until));
            }
            Fact::TaskScheduled(_) => self.begin = None,
            Fact::TimerStarted(started) => {
                let spec = &started.spec;
                let (since, until) = (event.time, spec.fire_at);
                self.timers.insert(&spec.timer, OpenTimer { spec, since, until, firing: false });
            }
            Fact::TimerRescheduled(moved) => {
                self.armed_again(&moved.timer);
                self.moved(&moved.timer, moved.fire_at);
            }
            Fact::TimerCancelled(cancelled) => {
                self.timers.remove(&cancelled.timer);
            }
            Fact::TimerFired(fired) => {
                let timer = self.timers.remove(&fired.timer);
                self.fired.extend(timer.map(|timer| (&fired.timer, timer)));
                let of =
                    |wait: &&mut OpenCondition<'_>| wait.spec.timer.as_ref() == Some(&fired.timer);
                for wait in self.conditions.values_mut().filter(of) {
                    wait.passed = Some(fired.fire_at);
                }
            }
            Fact::WaitOpened(opened) => {
                let (spec, since) = (&opened.spec, event.time);
                let details = spec.details.as_ref();
                let wait = OpenCondition { spec, details, since, passed: None };
                self.conditions.insert(&spec.wait, wait);
            }
            Fact::WaitDescribed(described) => {
                if let Some(wait) = self.conditions.get_mut(&described.wait) {
                    wait.details = Some(&described.details);
                }
            }
            Fact::WaitSatisfied(end) => {
                self.conditions.remove(&end.wait);
            }
            Fact::WaitTimedOut(end) => {
                self.conditions.remove(&end.wait);
            }
            Fact::WaitCancelled(end) => {
                self.conditions.remove(&end.wait);
            }
            _ => {}
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "all others change no wait")]
    fn buffered(&mut self, fact: &Fact) {
        match fact {
            Fact::TimerRescheduled(moved) => self.moved(&moved.timer, moved.fire_at),
            Fact::TimerFired(fired) => {
                if let Some(timer) = self.timers.get_mut(&fired.timer) {
                    timer.firing = true;
                }
            }
            _ => {}
        }
    }

    fn armed_again(&mut self, timer: &'a TimerId) {
        let Some(fired) = self.fired.remove(timer) else { return };
        self.timers.insert(timer, fired);
        let of = |wait: &&mut OpenCondition<'_>| wait.spec.timer.as_ref() == Some(timer);
        for wait in self.conditions.values_mut().filter(of) {
            wait.passed = None;
        }
    }

    fn moved(&mut self, timer: &TimerId, fire_at: Timestamp) {
        if let Some(timer) = self.timers.get_mut(timer) {
            timer.until = fire_at;
        }
    }

    /// Due times that need a row. Those of activities, of the first task and of the run's own
    /// deadline come from the folded run.
    fn due(&self, story: &Story) -> BTreeMap<Bytes, Timestamp> {
        let run = &story.run;
        let others = run.due_keys().into_iter().filter(|key| !matches!(key, TimerKey::Timer(_)));
        let others = others.filter_map(|key| Some((key.to_bytes(), run.due(&key)?)));
        let timers =
            self.timers.iter().filter(|(_, timer)| !timer.firing && !timer.until.is_never());
        let timers =
            timers.map(|(id, timer)| (TimerKey::Timer((*id).clone()).to_bytes(), timer.until));
        others.chain(timers).collect()
    }

    /// Rows that lists show.
    fn rows(&self, story: &Story) -> BTreeMap<Bytes, WaitRow> {
        let deadlines: BTreeSet<_> =
            self.conditions.values().filter_map(|wait| wait.spec.timer.as_ref()).collect();
        let own = self.timers.iter().filter(|(id, _)| !deadlines.contains(*id));
        let timers = own.map(|(_, timer)| timer.row(story));
        let conditions = self.conditions.values().map(|wait| {
            let timer = wait.spec.timer.as_ref().and_then(|timer| self.timers.get(timer));
            wait.row(story, timer)
        });
        let begin = self.begin.map(|(since, until)| WaitRow {
            kind: WaitKind::ChildRetry,
            name: story.run.workflow.workflow.to_string(),
            since,
            until,
            ..row_of(story, &WaitKey::Begin)
        });
        // What a schedule waits for is no event.
        let schedule = story.run.wait_row(&WaitKey::Schedule);
        let rows = timers.chain(conditions).chain(begin).chain(retries(story)).chain(schedule);
        rows.map(|row| (row.wait.clone(), row)).collect()
    }
}

impl OpenTimer<'_> {
    fn row(&self, story: &Story) -> WaitRow {
        let id = self.spec.timer.clone();
        let (kind, name) = match &self.spec.origin {
            Some(Origin::ExternalEvent { name }) => (WaitKind::Signal, name.clone()),
            Some(Origin::ActivityRetry { execution }) => {
                (WaitKind::ActivityRetry, execution.to_string())
            }
            Some(Origin::ChildWorkflowRetry { workflow }) => {
                (WaitKind::ChildRetry, workflow.to_string())
            }
            Some(Origin::CreateTimer | Origin::Condition { .. }) | None => {
                (WaitKind::Timer, id.to_string())
            }
        };
        WaitRow {
            kind,
            name,
            since: self.since,
            until: self.until,
            timer: (!self.spec.optional()).then(|| id.clone()),
            details: codec::encode_wait_details(self.spec.details.as_ref()),
            ..row_of(story, &WaitKey::Timer(id))
        }
    }
}

impl OpenCondition<'_> {
    fn row(&self, story: &Story, timer: Option<&OpenTimer<'_>>) -> WaitRow {
        let details = self.details;
        let approval = details.is_some_and(|details| details.approval.is_some());
        let deadline = timer.map(|timer| timer.until).or(self.passed);
        WaitRow {
            kind: if approval { WaitKind::Approval } else { WaitKind::Condition },
            name: self.spec.condition.key.clone().unwrap_or_default(),
            since: self.since,
            until: deadline.unwrap_or(Timestamp::NEVER),
            timer: timer.map(|timer| timer.spec.timer.clone()),
            details: codec::encode_wait_details(details),
            ..row_of(story, &WaitKey::Condition(self.spec.wait.clone()))
        }
    }
}

/// Activities that wait for a retry by the server.
fn retries(story: &Story) -> impl Iterator<Item = WaitRow> {
    let activities = story.run.activities.iter().filter(|(_, activity)| !activity.closing);
    activities.filter(|_| story.run.open()).filter_map(|(scheduled, activity)| {
        let Phase::Backoff { until } = activity.phase else { return None };
        Some(WaitRow {
            kind: WaitKind::ActivityRetry,
            name: activity.execution.to_string(),
            since: activity.scheduled_at,
            until,
            ..row_of(story, &WaitKey::Activity(*scheduled))
        })
    })
}

/// Fields that all rows of a run share.
fn row_of(story: &Story, wait: &WaitKey) -> WaitRow {
    let run = &story.run;
    WaitRow {
        run: run.id,
        wait: wait.to_bytes(),
        namespace: run.workflow.namespace.clone(),
        workflow: run.workflow.workflow.clone(),
        workflow_type: run.spec.workflow_type.clone(),
        kind: WaitKind::Timer,
        name: String::new(),
        since: Timestamp::EPOCH,
        until: Timestamp::NEVER,
        timer: None,
        details: Bytes::new(),
    }
}
