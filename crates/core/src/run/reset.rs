//! Reset: a new run begins with a copy of another one's history, up to a workflow task that its code then
//! runs again. The old run is terminated if it is open, and says where it went.
//!
//! | of the old run | in the new run |
//! |---|---|
//! | events up to the TaskStarted | copied as they are; only RunStarted is written anew |
//! | the end of that task | TaskFailed, cause Reset |
//! | later signals and updates | follow in their order, unless they are to be dropped |
//! | updates that code rejected in a copied task | stay rejected, if the history has them |
//! | answers of other workflows to what was copied | follow in their order |
//! | open timers | are armed with their due times; those that have passed fire |
//! | pending activities | are scheduled again, as first attempts, with new time limits |
//! | open children | stay, and get the new run as their parent |
//! | cancel requests, moves of timers | are dropped |
//!
//! An effect on another workflow must not take place twice. So a command to another workflow that was
//! copied must have its answer in the old run's history, else the reset is refused.

use std::collections::BTreeSet;

use super::{
    Context, Decision, KnownUpdate, Phase, Refusal, Reply, ResetPoint, Run, Status, Touch, buffer,
    close, draft::Draft, reset_point::TaskPlace, task,
};
use crate::{
    codec,
    effect::{Action, AdoptChild},
    event::{
        Body, Event, Fact, Initiator, Parent, ResetFrom, ResetTo, RunPaused, RunStarted,
        RunTerminated, RunUnpaused, Target, TaskFailed, TaskFailureCause, UpdateAdmitted,
    },
    failure::{Failure, FailureKind},
    ids::{EventNumber, Key, RunId, UpdateId},
    limits::{Exceeded, Limits},
    note::{Note, Record},
    time::Timestamp,
};

/// A reset of a run.
#[derive(Clone, Debug)]
pub struct ResetRun {
    /// Id of the new run.
    pub run: RunId,
    /// Number of the new run among the runs of its workflow id.
    pub ordinal: u64,
    /// Which task to go back to.
    pub to: ResetPoint,
    pub reapply: Reapply,
    pub reason: String,
    pub identity: String,
    /// Idempotency key of the reset.
    pub key: Option<Key>,
    /// Keys of the terminations of earlier runs of the workflow id.
    pub terminate_keys: Vec<Key>,
    /// Keys of the resets of earlier runs of the workflow id.
    pub reset_keys: Vec<Key>,
    /// The whole history of the old run, by log row.
    pub history: Vec<Vec<Event>>,
}

/// Which later inputs of the old run the new one gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reapply {
    pub signals: bool,
    pub updates: bool,
}

impl Reapply {
    pub const ALL: Self = Self { signals: true, updates: true };
}

/// What a reset made.
#[derive(Debug)]
pub struct ResetDone {
    /// What is written to the old run.
    pub base: Decision,
    /// The new run, with all its records applied.
    pub run: Run,
    /// Its first log rows: the copied history, each with the number of its first event.
    pub copied: Vec<(EventNumber, codec::Row)>,
    /// Its next log row.
    pub decision: Decision,
}

/// Resets a run. On `Err` nothing has changed.
pub fn reset(base: &mut Run, context: &Context<'_>, asked: ResetRun) -> Result<ResetDone, Refusal> {
    base.fits_reset(context.limits)?;
    let events: Vec<_> = asked.history.iter().flatten().collect();
    let place = asked.to.find(&events)?;
    let later: Vec<_> = events.iter().filter(|event| event.number > place.started).collect();
    let (mut run, copied) = copy(base, context, &asked, place)?;
    all_answered(&run, later.iter().map(|event| &event.body).chain(&base.buffer))?;

    let paused = base.open() && base.paused_with_buffer();
    let reset = ResetTo { run: asked.run, copied: place.started, key: asked.key.clone() };
    let ended = end_base(base, context, &asked, reset);
    let later = later.iter().map(|event| &event.body).chain(ended.records.iter().filter_map(body));
    let inputs = inputs(&run, later, asked.reapply);
    let rejected = rejections(base, &run, &events);
    let decision = go_on(&mut run, context, &asked, (place, paused), (inputs, rejected));
    run.touch_everything();
    Ok(ResetDone { base: ended, run, copied, decision })
}

fn body(record: &Record) -> Option<&Body> {
    match record {
        Record::Event(event) => Some(&event.body),
        Record::Note(_) => None,
    }
}

/// The new run up to the started task, and the log rows that it is folded from. Stored bodies keep their
/// bytes.
fn copy(
    base: &Run,
    context: &Context<'_>,
    asked: &ResetRun,
    place: TaskPlace,
) -> Result<(Run, Vec<(EventNumber, codec::Row)>), Refusal> {
    let unreadable = || Refusal::NoSuchTask("the history cannot be folded up to that task".into());
    let mut run: Option<Run> = None;
    let mut rows = Vec::new();
    for row in &asked.history {
        let kept = row.iter().filter(|event| event.number <= place.started);
        let records: Vec<_> =
            kept.map(|event| Record::Event(copied(base, context, asked, place, event))).collect();
        let Some(Record::Event(Event { number: first, .. })) = records.first() else { continue };
        let first = *first;
        let encoded = codec::encode_row(&records);
        match &mut run {
            Some(run) => run.fold_more(&records).map_err(|_| unreadable())?,
            None => run = Some(Run::fold(&records).map_err(|_| unreadable())?),
        }
        if let Some(run) = &mut run {
            run.logged(encoded.events.len());
        }
        rows.push((first, encoded));
    }
    Ok((run.ok_or_else(unreadable)?, rows))
}

/// The event as the new run has it. RunStarted says what the run is; all else is copied.
fn copied(
    base: &Run,
    context: &Context<'_>,
    asked: &ResetRun,
    place: TaskPlace,
    event: &Event,
) -> Event {
    let Fact::RunStarted(started) = &event.body.fact else { return event.clone() };
    let timeout = started.spec.execution_timeout;
    let started = RunStarted {
        run: asked.run,
        ordinal: asked.ordinal,
        identity: asked.identity.clone(),
        key: None,
        expires_at: timeout.map(|limit| context.now.saturating_add(limit)),
        first_task_at: None,
        parent: base.parent.clone(),
        terminate_keys: asked.terminate_keys.clone(),
        reset_keys: asked.reset_keys.clone(),
        reset: Some(ResetFrom {
            base: close::previous(base, context, Initiator::Reset),
            copied: place.started,
            at: context.now,
            reason: asked.reason.clone(),
            key: asked.key.clone(),
        }),
        ..(**started).clone()
    };
    let body = Body::new(started).with_extension(event.body.extension.clone());
    Event { body, ..event.clone() }
}

/// Checks that each command to another workflow that was copied has its answer among what follows.
fn all_answered<'a>(run: &Run, later: impl Iterator<Item = &'a Body>) -> Result<(), Refusal> {
    let answered: BTreeSet<_> = later.filter_map(|body| answer_to(&body.fact)).collect();
    let waits = run.outbox.values().filter_map(|effect| match effect.action {
        Action::StartChild(_) | Action::Signal { .. } | Action::Cancel { .. } => effect.initiated,
        Action::ChildClosed(_) | Action::AdoptChild(_) => None,
    });
    match waits.into_iter().find(|initiated| !answered.contains(initiated)) {
        Some(initiated) => Err(Refusal::Unanswered(initiated)),
        None => Ok(()),
    }
}

/// The command to another workflow that a fact answers, or whose child it closes.
fn answer_to(fact: &Fact) -> Option<EventNumber> {
    if let Fact::ChildStarted(started) = fact {
        return Some(started.initiated);
    }
    super::child::closes_child(fact)
}

/// Ends the old run, or notes in it that another one goes on.
fn end_base(base: &mut Run, context: &Context<'_>, asked: &ResetRun, reset: ResetTo) -> Decision {
    let mut draft = Draft::new(base, context);
    if draft.run.open() {
        task::abandon_turn(&mut draft, TaskFailureCause::Closed);
        buffer::release(&mut draft);
        let reason = match asked.reason.as_str() {
            "" => "reset".to_owned(),
            reason => format!("reset: {reason}"),
        };
        let identity = asked.identity.clone();
        draft.event(RunTerminated {
            reason,
            identity,
            reset: Some(reset),
            ..RunTerminated::default()
        });
    } else {
        draft.note(Note::ResetTo(reset));
    }
    draft.finish(Reply::Done)
}

/// What happened to the old run after the task, as far as the new one gets it.
fn inputs<'a>(run: &Run, later: impl Iterator<Item = &'a Body>, reapply: Reapply) -> Vec<Body> {
    let mut known: BTreeSet<UpdateId> = run.updates.keys().cloned().collect();
    let mut inputs = Vec::new();
    for body in later {
        #[expect(clippy::wildcard_enum_match_arm, reason = "the task itself leads to all others")]
        match &body.fact {
            Fact::SignalReceived(_) if reapply.signals => inputs.push(body.clone()),
            Fact::UpdateAdmitted(admitted) if reapply.updates => {
                if known.insert(admitted.update.clone()) {
                    inputs.push(body.clone());
                }
            }
            Fact::UpdateAccepted(accepted) if reapply.updates => {
                if known.insert(accepted.update.clone()) {
                    let (update, request) = (accepted.update.clone(), accepted.request.clone());
                    let again = Body::new(UpdateAdmitted { update, request });
                    inputs.push(again.with_extension(body.extension.clone()));
                }
            }
            other => {
                let pending = |number: &EventNumber| {
                    run.children.contains_key(number) || run.externals.contains_key(number)
                };
                inputs.extend(answer_to(other).filter(pending).map(|_| body.clone()));
            }
        }
    }
    inputs
}

/// The rejections by copied tasks. A task that completes has judged every update that was in history
/// before it.
fn rejections(base: &Run, run: &Run, events: &[&Event]) -> Vec<Note> {
    let judged = events.iter().take_while(|event| event.number < run.completed);
    let updates = judged.filter_map(|event| {
        let Fact::UpdateAdmitted(admitted) = &event.body.fact else { return None };
        Some(&admitted.update)
    });
    let rejected =
        updates.filter_map(|update| match (run.updates.get(update), base.updates.get(update)) {
            (Some(KnownUpdate::Admitted(_)), Some(KnownUpdate::Rejected { failure, .. })) => {
                let (update, failure) = (update.clone(), failure.clone());
                Some(Note::UpdateRejected { update, failure })
            }
            _ => None,
        });
    rejected.collect()
}

/// Ends the copied task, takes the inputs, and schedules the task that shows them to code.
fn go_on(
    run: &mut Run,
    context: &Context<'_>,
    asked: &ResetRun,
    (place, paused): (TaskPlace, bool),
    (inputs, rejected): (Vec<Body>, Vec<Note>),
) -> Decision {
    let mut draft = Draft::new(run, context);
    let message = format!("the run was reset to this task: {}", asked.reason);
    let identity = asked.identity.clone();
    draft.event(TaskFailed {
        scheduled: place.scheduled,
        started: place.started,
        cause: TaskFailureCause::Reset,
        failure: Failure::server(FailureKind::Server, message),
        identity: identity.clone(),
        ..TaskFailed::default()
    });
    if paused && !draft.run.paused {
        draft.event(RunPaused {
            reason: "it was paused before the reset".into(),
            identity,
            key: None,
        });
    } else if draft.run.paused && !paused {
        draft.event(RunUnpaused { reason: "reset".into(), identity, key: None });
    }
    for note in rejected {
        draft.note(note);
    }
    for input in inputs {
        draft.body(input);
    }
    if !paused {
        draft.schedule_task(1);
    }
    draft.finish(Reply::Done)
}

/// The parent of the run was reset. A request that was overtaken by one of a later run changes nothing.
pub(super) fn adopt(draft: &mut Draft<'_>, parent: Parent) {
    if draft.run.parent.as_ref().is_some_and(|known| known.ordinal < parent.ordinal) {
        draft.note(Note::ParentChanged { parent });
    }
}

impl Run {
    /// Refuses the reset of a run whose history is too large.
    pub fn fits_reset(&self, limits: &Limits) -> Result<(), Refusal> {
        let (limit, what) = (limits.reset_bytes, "bytes of the history that a reset copies");
        if self.history_bytes > limit {
            return Err(Exceeded { what: what.into(), limit }.into());
        }
        Ok(())
    }

    /// Keys of the resets that the next run of the workflow id knows.
    pub fn known_resets(&self, limits: &Limits) -> Vec<Key> {
        self.reset_keys.carried(limits)
    }

    /// The run that the reset with this key made, if it was one of this run.
    pub fn reset_by(&self, key: Option<&Key>) -> Option<RunId> {
        self.reset_keys.known(key?).copied().flatten()
    }

    /// Whether a reset with this key has taken place, of this run or an earlier one.
    pub fn was_reset_by(&self, key: Option<&Key>) -> bool {
        key.is_some_and(|key| self.reset_keys.contains(key))
    }

    /// What a run that a reset makes knows of the one that it copies. Its timeouts begin again.
    pub(super) fn begin_reset(&mut self, reset: &ResetFrom) {
        self.inherit_keys(&reset.base);
        self.carried_updates.clone_from(&reset.base.completed_updates);
        self.started_at = reset.at;
        self.begins_at = reset.at;
        if let Some(key) = &reset.key {
            self.reset_keys.insert(key, Some(self.id));
        }
    }

    pub(super) fn remember_reset(&mut self, reset: &ResetTo) {
        if let Some(key) = &reset.key {
            self.reset_keys.insert(key, Some(reset.run));
        }
    }

    pub(super) fn apply_reset_to(&mut self, reset: &ResetTo) {
        self.remember_reset(reset);
        if let Status::Closed { next_run, .. } = &mut self.status {
            *next_run = Some(reset.run);
        }
        self.touch(Touch::Run);
    }

    /// Everything that the run waits for is as new: what the old run did about it is not known here.
    pub(super) fn go_on_after_reset(&mut self, at: Timestamp) {
        let scheduled: Vec<_> = self.activities.keys().copied().collect();
        for number in scheduled {
            if let Some(activity) = self.activities.get_mut(&number) {
                activity.scheduled_at = at;
                activity.phase = Phase::Ready { since: at };
            }
            self.touch(Touch::Activity(number));
        }
        let started = self.children.iter().filter(|(_, child)| child.started);
        let started: Vec<_> = started.map(|(number, _)| *number).collect();
        for number in started {
            self.adopt_child(number);
        }
    }

    /// Makes this run the parent of a child that an earlier run started.
    pub(super) fn adopt_child(&mut self, initiated: EventNumber) {
        if initiated > self.copied {
            return;
        }
        self.settle_initiated(initiated);
        let Some(child) = self.children.get(&initiated) else { return };
        let workflow = child.child.workflow.clone();
        let parent = Parent { run: self.reference(), initiated, ordinal: self.ordinal };
        let action = Action::AdoptChild(AdoptChild { run: child.run, parent });
        // It goes along the child's chain: another run may be the current one of that workflow.
        let target = Target { workflow, run: Some(child.run), child: None };
        let effect = self.send(target, action, Some(initiated));
        if let Some(child) = self.children.get_mut(&initiated) {
            child.effect = effect;
        }
    }

    /// A child learns of its new parent, which learns of its outcome if it has one.
    pub(super) fn apply_parent_changed(&mut self, parent: &Parent) {
        self.parent = Some(parent.clone());
        self.touch(Touch::Run);
        if let Status::Closed { next_run: None, .. } = self.status {
            self.notify_parent(self.outcome.clone());
        }
    }
}
