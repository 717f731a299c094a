//! Promises to callers: what they were told was committed before, is still there at the end, and
//! happened once.

use std::collections::{BTreeMap, BTreeSet};

use abide_core::{
    attempt::{AttemptName, AttemptReport},
    event::{Fact, Initiator, Mover, SignalReceived, UpdateRequest},
    ids::{EventNumber, Key, RunId, UpdateId, WorkflowKey},
    operation::{
        AnyAnswer, AwaitUpdate, CallError, Cancel, Closed, Done, RescheduleTimer, RunOperation,
        RunTarget, Signal, Start, Started, Terminate, Update, UpdateAnswer,
    },
    run::{Description, KnownUpdate, Refusal, Resolution, Stage},
};
use bytes::Bytes;

use super::{
    Check, Checked, Violation, course, keys,
    ledger::{Ledger, Story},
    updates::{self, Outcomes},
};

/// Prefix of the name of a client that reschedules a timer with a key: all its reschedules are one.
pub const KEYED: &str = "key";

/// What callers were told and must hold at the end.
#[derive(Debug, Default)]
pub struct Promises {
    /// By workflow, key and text: a key that was reused for another signal acknowledges nothing.
    signals: BTreeSet<(WorkflowKey, Key, Bytes)>,
    starts: BTreeMap<(WorkflowKey, Key), RunId>,
    uses: keys::Uses,
    updates: BTreeMap<(WorkflowKey, UpdateId), Stage>,
    outcomes: Outcomes,
    rejected: BTreeSet<(WorkflowKey, UpdateId)>,
    /// By run and client; each client reschedules one timer.
    moves: BTreeSet<(RunId, String)>,
    refused_moves: BTreeSet<(RunId, String)>,
    ends: BTreeSet<RunId>,
    /// Activities that were completed from outside a worker.
    reports: BTreeSet<(RunId, EventNumber)>,
}

impl Promises {
    /// Records a reply to a caller.
    pub fn check_reply(
        &mut self,
        ledger: &Ledger,
        asked: &RunOperation,
        answer: &AnyAnswer,
    ) -> Checked {
        match (asked, answer) {
            (RunOperation::Start(start), AnyAnswer::Started(Started { run, started, update })) => {
                self.check_start(ledger, start, *run, *started)?;
                match (&start.update, update) {
                    (Some(asked), Some(Ok(answer))) => {
                        let asked = (&asked.update, Some(&asked.request));
                        self.check_update(ledger, &start.workflow, asked, answer)
                    }
                    (Some(with), Some(Err(error))) => {
                        self.check_key(asked, error)?;
                        updates::aborted(ledger, &with.update, error)
                    }
                    (_, None) | (None, _) => Ok(()),
                }
            }
            (
                RunOperation::Signal(Signal { target, signal, .. }),
                AnyAnswer::Done(Done { run, .. }),
            ) => {
                let story = story(ledger, *run)?;
                let Some(key) = &signal.key else { return Ok(()) };
                durable(story, story.run.signal_keys.contains(key), "the signal")?;
                self.signals.insert((target.workflow.clone(), key.clone(), text(signal)));
                Ok(())
            }
            (RunOperation::Cancel(Cancel { key, .. }), AnyAnswer::Done(Done { run, .. })) => {
                let story = story(ledger, *run)?;
                // A repeat may find a successor of the run that was asked.
                let known = key.as_ref().is_some_and(|key| story.run.cancel_keys.contains(key));
                durable(story, story.run.cancel_requested || known, "the cancel request")
            }
            (RunOperation::Terminate(asked), AnyAnswer::Done(Done { run, .. })) => {
                self.check_end(ledger, asked, *run)
            }
            (RunOperation::AwaitClose(_), AnyAnswer::Closed(Closed { run, outcome, .. })) => {
                let story = story(ledger, *run)?;
                self.ends.insert(*run);
                durable(story, !story.run.open() && story.run.outcome == *outcome, "the outcome")
            }
            (
                RunOperation::RescheduleTimer(RescheduleTimer { identity, .. }),
                AnyAnswer::Done(Done { run, .. }),
            ) => {
                self.moves.insert((*run, identity.clone()));
                let story = story(ledger, *run)?;
                durable(story, move_is_there(story, identity), "the timer's move")
            }
            (
                RunOperation::Update(Update { target, update, request, .. }),
                AnyAnswer::Update(answer),
            ) => self.check_update(ledger, &target.workflow, (update, Some(request)), answer),
            (
                RunOperation::AwaitUpdate(AwaitUpdate { target, update, .. }),
                AnyAnswer::Update(answer),
            ) => self.check_update(ledger, &target.workflow, (update, None), answer),
            (RunOperation::ReportAttempt(asked), AnyAnswer::Done(Done { run, .. })) => {
                self.check_report(ledger, &asked.attempt, &asked.report, *run)
            }
            (RunOperation::Describe(_), AnyAnswer::Description(shown)) => {
                was_shown_so(story(ledger, shown.run)?, shown)
            }
            (asked, AnyAnswer::Done(Done { run, .. })) => operated(ledger, asked, *run),
            _ => Ok(()),
        }
    }

    fn check_end(&mut self, ledger: &Ledger, asked: &Terminate, run: RunId) -> Checked {
        let story = story(ledger, run)?;
        // A repeat that names no run may find a successor of the run that it has ended.
        if asked.target.run.is_none() && ended_before(ledger, story, asked.key.as_ref()) {
            return Ok(());
        }
        self.ends.insert(run);
        durable(story, !story.run.open(), "the end")
    }

    /// A client sends a request.
    pub fn asks(&mut self, asked: &RunOperation) {
        self.uses.asks(asked);
    }

    /// Checks the refusal of a request by its key.
    pub fn check_key(&self, asked: &RunOperation, error: &CallError) -> Checked {
        match error {
            CallError::Refused(Refusal::KeyReused(key)) => self.uses.refused(asked, key.as_str()),
            _ => Ok(()),
        }
    }

    /// Records that a call failed.
    pub fn check_error(&self, ledger: &Ledger, asked: &RunOperation, error: &CallError) -> Checked {
        match asked {
            RunOperation::Update(Update { update, .. })
            | RunOperation::AwaitUpdate(AwaitUpdate { update, .. }) => {
                updates::aborted(ledger, update, error)
            }
            _ => Ok(()),
        }
    }

    /// Records that the first attempt of a call was refused.
    pub fn refused(&mut self, asked: &RunOperation) {
        if let RunOperation::RescheduleTimer(RescheduleTimer {
            target: RunTarget { run: Some(run), .. },
            identity,
            ..
        }) = asked
        {
            self.refused_moves.insert((*run, identity.clone()));
        }
    }

    fn check_start(
        &mut self,
        ledger: &Ledger,
        start: &Start,
        run: RunId,
        started: bool,
    ) -> Checked {
        let story = story(ledger, run)?;
        if let Some(key) = start.key.as_ref().filter(|_| started) {
            durable(story, story.run.key.as_ref() == Some(key), "the start's key")?;
            keys::start_is_the_one(ledger, run, start)?;
            self.starts.insert((start.workflow.clone(), key.clone()), run);
        }
        if let Some(signal) = &start.signal
            && let Some(key) = &signal.key
        {
            durable(story, story.run.signal_keys.contains(key), "the start's signal")?;
            self.signals.insert((start.workflow.clone(), key.clone(), text(signal)));
        }
        Ok(())
    }

    /// Only one report for an activity is accepted, and it is in history or buffered.
    fn check_report(
        &mut self,
        ledger: &Ledger,
        name: &AttemptName,
        report: &AttemptReport,
        run: RunId,
    ) -> Checked {
        let (AttemptName::Token(token), AttemptReport::Resolved(Resolution::Completed(_))) =
            (name, report)
        else {
            return Ok(());
        };
        let (run, scheduled) = (run.max(token.run), token.scheduled);
        if !self.reports.insert((run, scheduled)) {
            let what = format!("activity {scheduled}: two reports were accepted");
            return Err(Violation::of(Check::NothingTwice, run, what));
        }
        let story = story(ledger, run)?;
        let waits = |fact: &Fact| matches!(fact, Fact::ActivityCompleted(end) if end.scheduled == scheduled);
        let there = story.completed.contains(&scheduled)
            || story.run.buffer.iter().any(|body| waits(&body.fact));
        durable(story, there || !story.run.open(), "the end of the activity")
    }

    fn check_update(
        &mut self,
        ledger: &Ledger,
        workflow: &WorkflowKey,
        (update, request): (&UpdateId, Option<&UpdateRequest>),
        answer: &UpdateAnswer,
    ) -> Checked {
        let name = (workflow.clone(), update.clone());
        match answer {
            UpdateAnswer::Rejected(_) => {
                self.rejected.insert(name);
            }
            UpdateAnswer::Reached { run, stage } => {
                let story = story(ledger, *run)?;
                durable(story, update_fits(story, update, stage), "the update's stage")?;
                if let Some(request) = request {
                    keys::update_is_the_one(ledger, (*run, stage), update, request)?;
                }
                if let Stage::Completed(outcome) = stage {
                    self.outcomes.tell(ledger, story, update, outcome)?;
                }
                self.updates.insert(name, stage.clone());
            }
        }
        Ok(())
    }

    /// Everything that was acknowledged is in a history.
    pub fn nothing_is_lost(&self, ledger: &Ledger) -> Checked {
        for (workflow, key, said) in &self.signals {
            let it =
                |signal: &SignalReceived| signal.key.as_ref() == Some(key) && text(signal) == *said;
            let has = |story: &Story| signals(story).any(it);
            if !ledger.of_workflow(workflow).any(has) {
                return Err(lost(format!("signal {key} to {workflow}")));
            }
        }
        for ((workflow, key), run) in &self.starts {
            let story = ledger.stories.get(run);
            if story.is_none_or(|story| story.run.key.as_ref() != Some(key)) {
                return Err(lost(format!("start {key} of {workflow}")));
            }
        }
        for ((workflow, update), stage) in &self.updates {
            if !ledger.of_workflow(workflow).any(|story| update_fits(story, update, stage)) {
                return Err(lost(format!(
                    "update {update} of {workflow}, acknowledged as {stage:?}"
                )));
            }
        }
        for run in &self.ends {
            if ledger.stories.get(run).is_none_or(|story| story.run.open()) {
                return Err(lost(format!("the end of run {run}")));
            }
        }
        self.moves.iter().try_for_each(|(run, client)| move_is_kept(ledger, *run, client))
    }

    /// A rejected update and a refused reschedule left no event.
    pub fn rejected_leave_nothing(&self, ledger: &Ledger) -> Checked {
        for (run, client) in &self.refused_moves {
            if moves(story(ledger, *run)?).any(|mover| mover == client) {
                let what = format!("the move of a timer by {client} was refused and made");
                return Err(Violation::of(Check::NothingTwice, *run, what));
            }
        }
        for (workflow, update) in &self.rejected {
            // Code may judge an update otherwise that a reset has brought back.
            if ledger.of_workflow(workflow).any(|story| story.run.copied > 0) {
                continue;
            }
            for story in ledger.of_workflow(workflow) {
                if accepted(story).any(|accepted| accepted == update) {
                    let what = format!("update {update} was reported as rejected but is accepted");
                    return Err(Violation::of(Check::NothingTwice, story.run.id, what));
                }
            }
        }
        Ok(())
    }
}

/// A schedule knows the key of an acknowledged request.
fn schedule_knows(ledger: &Ledger, run: RunId, key: Option<&Key>) -> Checked {
    let story = story(ledger, run)?;
    let known = key.is_none_or(|key| story.run.signal_keys.contains(key));
    durable(story, known, "the request about the schedule")
}

/// A worker learns that it may drop an attempt only when that is durable.
pub fn detached_is_durable(
    ledger: &Ledger,
    run: RunId,
    scheduled: EventNumber,
    start: u32,
) -> Checked {
    let story = story(ledger, run)?;
    durable(story, story.detached.contains(&(scheduled, start)), "the attempt's detachment")
}

fn move_is_kept(ledger: &Ledger, run: RunId, client: &str) -> Checked {
    if move_is_there(story(ledger, run)?, client) {
        return Ok(());
    }
    Err(lost(format!("the move of a timer of run {run} by {client}")))
}

/// A reschedule from outside is in history, or buffered, or was dropped with a note because the
/// timer or the run had ended.
fn move_is_there(story: &Story, client: &str) -> bool {
    let dropped = story.dropped.iter().any(|name| name == "TimerRescheduled");
    let buffered = story.run.buffer.iter().any(|body| mover(&body.fact) == Some(client));
    dropped || buffered || !story.run.open() || moves(story).any(|mover| mover == client)
}

/// No input appears twice in the histories of a chain.
pub fn nothing_is_applied_twice(ledger: &Ledger) -> Checked {
    let mut starts = BTreeMap::new();
    let mut resets = BTreeSet::new();
    for story in ledger.stories.values() {
        let twice = |what: String| Err(Violation::of(Check::NothingTwice, story.run.id, what));
        if let Some(text) = signal_read_again(ledger, story) {
            return twice(format!("signal {text:?}"));
        }
        // A deleted run takes its keys with it.
        let kept = || story.run.workflow.clone();
        if let Some(key) = story.run.key.as_ref().filter(|_| !story.deleted)
            && let Some(other) = starts.insert((kept(), key.clone()), story.run.ordinal)
            && !forgotten(story, other)
        {
            return twice(format!("start {key}"));
        }
        let reset = course::started(story).and_then(|started| started.reset.as_ref());
        if let Some(key) = reset.and_then(|reset| reset.key.as_ref()).filter(|_| !story.deleted)
            && !resets.insert((kept(), key.clone()))
        {
            return twice(format!("reset {key}"));
        }
        let mut moved = BTreeSet::new();
        let mut keyed = moves(story).filter(|client| client.starts_with(KEYED));
        if let Some(client) = keyed.find(|client| !moved.insert(*client)) {
            return twice(format!("move of a timer by {client}"));
        }
        let mut updates = BTreeSet::new();
        if let Some(update) = accepted(story).find(|update| !updates.insert((*update).clone())) {
            return twice(format!("update {update}"));
        }
        let cancel = |fact: &&Fact| matches!(fact, Fact::RunCancelRequested(_));
        if facts(story).filter(cancel).count() > 1 {
            return twice("cancel request".into());
        }
    }
    Ok(())
}

/// Whether a schedule may have forgotten the key that created one with this ordinal: only the last one
/// with its id is known.
fn forgotten(story: &Story, other: u64) -> bool {
    story.run.schedule.is_some() && story.run.ordinal.abs_diff(other) > 1
}

/// A signal that the run has got twice, or that a run before it had got.
fn signal_read_again<'a>(ledger: &Ledger, story: &'a Story) -> Option<&'a Bytes> {
    let mut own = BTreeSet::new();
    if let Some(text) = signal_texts(story, 0).find(|text| !own.insert(*text)) {
        return Some(text);
    }
    let mut new = signal_texts(story, story.inherited);
    let carried = if story.run.copied > 0 { 0 } else { carried_signals(ledger, story) };
    let new: BTreeSet<_> = new.by_ref().skip(carried).collect();
    let earlier =
        std::iter::successors(course::before(ledger, story), |story| course::before(ledger, story));
    earlier.flat_map(|story| signal_texts(story, 0)).find_map(|text| new.get(text).copied())
}

/// How many of the run's first signals from clients were carried over from the previous run.
pub fn carried_signals(ledger: &Ledger, story: &Story) -> usize {
    let Some(Fact::RunStarted(started)) = facts(story).next() else { return 0 };
    let Some(previous) = &started.previous else { return 0 };
    if previous.initiator != Initiator::ContinueAsNew {
        return 0;
    }
    let before = ledger.stories.get(&previous.run);
    let last = before.and_then(|before| before.events.last());
    match last.map(|event| &event.body.fact) {
        Some(Fact::RunContinuedAsNew(closed)) => {
            let of_a_client = |number: &&u64| {
                let index = usize::try_from(**number).unwrap_or_default().wrapping_sub(1);
                let event = before.and_then(|before| before.events.get(index));
                matches!(
                    event.map(|event| &event.body.fact),
                    Some(Fact::SignalReceived(signal))
                        if signal.source.is_none() && !signal.input.is_empty()
                )
            };
            closed.signals.iter().filter(of_a_client).count()
        }
        _ => 0,
    }
}

/// What operators were told is done.
fn operated(ledger: &Ledger, asked: &RunOperation, run: RunId) -> Checked {
    match asked {
        RunOperation::Reset(asked) => course::reset_is_durable(ledger, asked.key.as_ref(), run),
        RunOperation::CreateSchedule(asked) => schedule_knows(ledger, run, asked.key.as_ref()),
        RunOperation::ChangeSchedule(asked) => schedule_knows(ledger, run, asked.key.as_ref()),
        RunOperation::DeleteSchedule(asked) => {
            let story = story(ledger, run)?;
            // A repeat is answered by a schedule that was created since.
            let ended = !story.run.open() || story.run.ended_earlier(asked.key.as_ref());
            durable(story, ended, "the end of the schedule")
        }
        RunOperation::Delete(_) => course::deletion_is_durable(ledger, run),
        _ => Ok(()),
    }
}

fn was_shown_so(story: &Story, shown: &Description) -> Checked {
    if story.shows(shown).is_some() {
        return Ok(());
    }
    let what = format!("at event {}: it never was so: {shown:?}", shown.last_event);
    Err(Violation::of(Check::Shown, shown.run, what))
}

/// Whether a request with this key ended an earlier run of the same workflow.
fn ended_before(ledger: &Ledger, of: &Story, key: Option<&Key>) -> bool {
    let ended = |earlier: &Story| {
        let ended = earlier.events.last().map(|event| &event.body.fact);
        matches!(ended, Some(Fact::RunTerminated(ended)) if ended.key.as_ref() == key)
    };
    let mut earlier = ledger.stories.values().filter(|story| {
        story.run.workflow == of.run.workflow && story.run.ordinal < of.run.ordinal
    });
    key.is_some() && earlier.any(ended)
}

fn story(ledger: &Ledger, run: RunId) -> Result<&Story, Violation> {
    let missing = || Violation::of(Check::AckedIsDurable, run, "the run is not committed");
    ledger.stories.get(&run).ok_or_else(missing)
}

fn durable(story: &Story, holds: bool, what: &str) -> Checked {
    if holds {
        return Ok(());
    }
    Err(Violation::of(Check::AckedIsDurable, story.run.id, format!("{what} is not committed")))
}

fn lost(what: String) -> Violation {
    Violation::new(Check::NothingLost, what)
}

fn update_fits(story: &Story, update: &UpdateId, stage: &Stage) -> bool {
    let carried = story.run.carried_updates.iter().any(|carried| carried.update == *update);
    match (story.run.updates.get(update), stage) {
        (Some(KnownUpdate::Completed { outcome, .. }), Stage::Completed(told)) => outcome == told,
        (Some(KnownUpdate::Accepted { .. } | KnownUpdate::Completed { .. }), Stage::Accepted)
        | (_, Stage::Admitted) => true,
        (None, _) => carried,
        (Some(_), _) => false,
    }
}

fn facts(story: &Story) -> impl Iterator<Item = &Fact> {
    story.events.iter().map(|event| &event.body.fact)
}

fn signals(story: &Story) -> impl Iterator<Item = &SignalReceived> {
    facts(story).filter_map(|fact| match fact {
        Fact::SignalReceived(signal) => Some(signal),
        _ => None,
    })
}

/// Texts of clients' signals after an event: each is unique, whatever key it used. A run that goes back
/// may send the same again.
fn signal_texts(story: &Story, after: EventNumber) -> impl Iterator<Item = &Bytes> {
    let later = story.events.iter().filter(move |event| event.number > after);
    later.filter_map(|event| match &event.body.fact {
        Fact::SignalReceived(signal) if signal.source.is_none() => {
            signal.input.first().map(|payload| &payload.data)
        }
        _ => None,
    })
}

fn text(signal: &SignalReceived) -> Bytes {
    signal.input.first().map(|payload| payload.data.clone()).unwrap_or_default()
}

/// Clients that rescheduled timers.
fn moves(story: &Story) -> impl Iterator<Item = &str> {
    facts(story).filter_map(mover)
}

fn mover(fact: &Fact) -> Option<&str> {
    match fact {
        Fact::TimerRescheduled(moved) => match &moved.by {
            Mover::Outside { identity, .. } => Some(identity),
            Mover::Code => None,
        },
        _ => None,
    }
}

fn accepted(story: &Story) -> impl Iterator<Item = &UpdateId> {
    facts(story).filter_map(|fact| match fact {
        Fact::UpdateAccepted(accepted) => Some(&accepted.update),
        _ => None,
    })
}
