//! A run that is a schedule: it has no code and no tasks. Whatever happens to it, it acts in the same
//! transition; `crate::schedule` decides how.
//!
//! | input | becomes |
//! |---|---|
//! | its time has come | a step, or the next run if its log is long, or its end if it ended long ago |
//! | a change from outside | ScheduleChanged and a step |
//! | a run that it started closed, or did not start | ScheduledRunEnded and a step |
//! | a run that it started has started | the effect is settled |
//! | deleted | RunTerminated; the runs that it started go on |
//! | anything else | refused |

use std::collections::BTreeMap;

use super::{
    ChangeSchedule, Context, Decision, Input, Refusal, Reply, Run, StartRun, TimerKey, Touch,
    cancel, close, draft::Draft,
};
use crate::{
    codec,
    digest::Digest,
    effect::{Action, ChildClosed, EffectOutcome, RunOutcome, StartChild},
    event::{
        ChildSpec, DeliveryFailure, Initiator, Parent, ParentClosePolicy, ReusePolicy,
        RunCompleted, RunContinuedAsNew, RunSpec, Target,
    },
    ids::{Key, RunId, WorkflowId, WorkflowKey},
    limits::Exceeded,
    note::Note,
    operation::{CreateSchedule, ScheduleDescription},
    payload::Payload,
    schedule::{
        SCHEDULE_TYPE, ScheduleChange, ScheduleChanged, ScheduleState, ScheduleStepped,
        ScheduledOutcome, ScheduledRun, ScheduledRunEnded, StepContext, id_of, step,
    },
    time::Timestamp,
};

/// Bytes of a failure's message that a schedule keeps: it is shown with each of the last runs.
const MESSAGE_BYTES: usize = 500;

/// Next times that a description has.
const NEXT_TIMES: usize = 10;

pub(super) fn decide(draft: Draft<'_>, input: Input) -> Result<Decision, Refusal> {
    #[expect(clippy::wildcard_enum_match_arm, reason = "a schedule refuses everything else")]
    match input {
        Input::Due { timer: TimerKey::Schedule } => super::due::handle(draft, TimerKey::Schedule),
        Input::Due { .. } => Ok(draft.finish(Reply::NotDue)),
        Input::ChangeSchedule(change) => self::change(draft, *change),
        Input::Terminate(terminated) => Ok(cancel::terminate(draft, terminated)),
        Input::Deliver { action: Action::ChildClosed(closed), .. } => Ok(run_closed(draft, closed)),
        Input::Deliver { .. } => {
            let refused = EffectOutcome::Failed(DeliveryFailure::Refused);
            Ok(draft.finish(Reply::Delivered(refused)))
        }
        Input::EffectAnswered { number, answer } => Ok(answered(draft, number, answer)),
        Input::Recover | Input::Repair { .. } => {
            draft.run.touch_everything();
            Ok(draft.finish(Reply::Done))
        }
        _ => Err(Refusal::IsSchedule),
    }
}

/// The time of the schedule has come.
pub(super) fn fall_due(mut draft: Draft<'_>) -> Decision {
    let now = draft.now();
    let Some(state) = draft.run.schedule.clone() else { return draft.finish(Reply::NotDue) };
    let bounds = &draft.context.limits.schedules;
    if draft.run.log_is_long(bounds.rows, None) {
        let mut state = *state;
        // It was woken to continue, so this says nothing about how long it was kept.
        if state.may_close(now) {
            state.wake_at = now.saturating_add(bounds.kept_after_end);
        }
        continue_as_new(&mut draft, state);
        return draft.finish(Reply::Done);
    }
    if state.may_close(now) {
        draft.event(RunCompleted::default());
        return draft.finish(Reply::Done);
    }
    act(draft, *state, Vec::new(), None)
}

/// The log is long: the schedule goes on in a new run. It waits until no start is in flight, because
/// the new run would not learn of one that failed.
fn continue_as_new(draft: &mut Draft<'_>, state: ScheduleState) {
    let previous = close::previous(draft.run, draft.context, Initiator::ContinueAsNew);
    let mut start = close::successor(draft.run, draft.context, previous);
    start.schedule = Some(Box::new(state));
    let (next_run, spec) = (start.run, start.spec.clone());
    draft.follow(start);
    draft.event(RunContinuedAsNew { next_run, spec, signals: Vec::new(), updates: Vec::new() });
}

fn change(draft: Draft<'_>, request: ChangeSchedule) -> Result<Decision, Refusal> {
    let ChangeSchedule { change, revision, identity, key } = request;
    let Some(mut state) = draft.run.schedule.clone() else { return Err(Refusal::RunClosed) };
    if revision.is_some_and(|revision| revision != state.revision) {
        return Err(Refusal::ScheduleRevised { revision: state.revision });
    }
    check(&draft, &state, &change)?;
    let at = draft.now();
    let asked = key.as_ref().map_or(Digest::UNKNOWN, |_| codec::digest_of_change(&change));
    // What was due before the change is done by the old rules.
    let mut notes = Vec::new();
    take_step(&draft, &mut state, &mut notes, None);
    let changed = ScheduleChanged { at, identity, key, asked, change };
    state.apply_changed(&changed);
    notes.push(Note::ScheduleChanged(Box::new(changed)));
    Ok(act(draft, *state, notes, None))
}

/// Refuses a change that the bounds have no room for.
fn check(draft: &Draft<'_>, state: &ScheduleState, change: &ScheduleChange) -> Result<(), Refusal> {
    let bounds = &draft.context.limits.schedules;
    match change {
        ScheduleChange::Triggered { .. } => {
            let waiting = state.waiting.len();
            Ok(Exceeded::check("waiting starts of the schedule", waiting, bounds.waiting)?)
        }
        ScheduleChange::Backfilled { from, to, .. } => {
            let open = state.backfills.len();
            Exceeded::check("unfinished backfills of the schedule", open, bounds.backfills)?;
            if state.can_backfill(*from, *to, bounds) {
                return Ok(());
            }
            let limit = bounds.backfill_times;
            Ok(Exceeded::check("times of the backfill, which can be divided,", limit, limit)?)
        }
        ScheduleChange::Updated(_)
        | ScheduleChange::Paused { .. }
        | ScheduleChange::Unpaused { .. } => Ok(()),
    }
}

/// Takes the notes, lets the schedule act, and records all of it.
fn act(
    mut draft: Draft<'_>,
    mut state: ScheduleState,
    mut notes: Vec<Note>,
    settled: Option<u64>,
) -> Decision {
    take_step(&draft, &mut state, &mut notes, settled);
    notes.into_iter().for_each(|note| draft.note(note));
    draft.finish(Reply::Done)
}

/// Lets the schedule act. `settled` is the effect whose answer is being recorded.
fn take_step(
    draft: &Draft<'_>,
    state: &mut ScheduleState,
    notes: &mut Vec<Note>,
    settled: Option<u64>,
) {
    let bounds = &draft.context.limits.schedules;
    let (now, run) = (draft.now(), draft.run.id);
    let context = StepContext { now, workflow: &draft.run.workflow, run, bounds };
    let mut done = step(state, context);
    let in_flight = !done.started.is_empty() || !done.ending.is_empty();
    if !in_flight && draft.run.log_is_long(bounds.rows, settled) {
        // The next run begins at once.
        done.wake_at = done.wake_at.min(now);
    }
    state.apply_stepped(&done);
    notes.push(Note::ScheduleStepped(Box::new(done)));
}

/// A run that the schedule started has closed. If its start is not answered yet, the close proves it.
fn run_closed(draft: Draft<'_>, closed: ChildClosed) -> Decision {
    let ChildClosed { initiated, first_run, outcome, .. } = closed;
    let outcome = match outcome {
        RunOutcome::Completed(_) => ScheduledOutcome::Completed,
        RunOutcome::Failed { failure, .. } => {
            ScheduledOutcome::Failed { message: shortened(failure.message) }
        }
        RunOutcome::TimedOut { .. } => ScheduledOutcome::TimedOut,
        RunOutcome::Cancelled(_) => ScheduledOutcome::Cancelled,
        RunOutcome::Terminated { .. } => ScheduledOutcome::Terminated,
    };
    let same = |run: &ScheduledRun| run.number == initiated && run.run == first_run;
    let mut decision = ended(draft, outcome, same, None);
    decision.reply = Reply::Delivered(EffectOutcome::Applied);
    decision
}

fn shortened(mut message: String) -> String {
    let end = (0..=MESSAGE_BYTES).rev().find(|end| message.is_char_boundary(*end));
    if message.len() > MESSAGE_BYTES {
        message.truncate(end.unwrap_or_default());
        message.push('…');
    }
    message
}

/// Records the end of an open run that is found so, and acts on it.
fn ended(
    draft: Draft<'_>,
    outcome: ScheduledOutcome,
    found: impl Fn(&ScheduledRun) -> bool,
    settled: Option<u64>,
) -> Decision {
    let state = draft.run.schedule.clone();
    let open = state.as_ref().and_then(|state| state.running.iter().find(|run| found(run)));
    let number = open.map(|run| run.number);
    let (Some(number), Some(mut state)) = (number, state) else {
        return draft.finish(Reply::Done);
    };
    let ended = ScheduledRunEnded { number, outcome };
    state.apply_ended(&ended);
    act(draft, *state, vec![Note::ScheduledRunEnded(ended)], settled)
}

/// A start or a request to end was answered.
fn answered(mut draft: Draft<'_>, number: u64, answer: EffectOutcome) -> Decision {
    let Some(effect) = draft.run.outbox.get(&number) else {
        return draft.finish(Reply::Repeat);
    };
    let failed = match (&effect.action, answer) {
        (Action::StartChild(start), EffectOutcome::Failed(cause)) => Some((start.run, cause)),
        _ => None,
    };
    let delivered = answer == EffectOutcome::Applied;
    draft.note(Note::EffectSettled { number, delivered });
    match failed {
        Some((run, cause)) => {
            let outcome = ScheduledOutcome::NotStarted { cause };
            ended(draft, outcome, |open| open.run == run, Some(number))
        }
        None => continue_when_settled(draft, number),
    }
}

/// If the log is long and this was the last effect in flight, the next run begins at once.
fn continue_when_settled(draft: Draft<'_>, number: u64) -> Decision {
    let rows = draft.context.limits.schedules.rows;
    match draft.run.schedule.clone() {
        Some(state) if draft.run.log_is_long(rows, Some(number)) => {
            act(draft, *state, Vec::new(), Some(number))
        }
        _ => draft.finish(Reply::Done),
    }
}

/// The first run of a new schedule.
pub fn begin_schedule(
    context: &Context<'_>,
    create: &CreateSchedule,
    run: RunId,
    ordinal: u64,
) -> StartRun {
    let workflow = &create.workflow;
    let step = StepContext { now: context.now, workflow, run, bounds: &context.limits.schedules };
    let pause = (create.paused, create.note.clone());
    let state = ScheduleState::begin(create.schedule.clone(), pause, create.trigger, step);
    let spec = RunSpec { workflow_type: SCHEDULE_TYPE.to_owned(), ..RunSpec::default() };
    StartRun {
        ordinal,
        identity: create.identity.clone(),
        key: create.key.clone(),
        schedule: Some(Box::new(state)),
        ..StartRun::new(workflow.clone(), run, spec)
    }
}

impl Run {
    /// Whether the request to create the schedule was carried out before.
    pub fn created_by(&self, create: &CreateSchedule) -> Result<bool, Refusal> {
        let change = ScheduleChange::Updated(Box::new(create.schedule.clone()));
        let (identity, key) = (String::new(), create.key.clone());
        let asked = ChangeSchedule { change, revision: None, identity, key };
        self.is_repeat(&Input::ChangeSchedule(Box::new(asked)))
    }

    /// The schedule that the run is, as people and programs see it.
    pub fn describe_schedule(&self, now: Timestamp) -> Option<ScheduleDescription> {
        let state = self.schedule.as_ref().filter(|_| self.open())?;
        Some(ScheduleDescription {
            workflow: self.workflow.clone(),
            run: self.id,
            state: (**state).clone(),
            next_times: state.next_times(now, NEXT_TIMES),
        })
    }

    /// Takes over the key of the request that created the schedule.
    pub(super) fn remember_creation(&mut self, key: &Key) {
        if let Some(state) = &self.schedule {
            let created = ScheduleChange::Updated(Box::new(state.schedule.clone()));
            self.signal_keys.insert(key, codec::digest_of_change(&created));
        }
    }

    /// Whether the log is so long that a new run should continue it, and nothing is in flight beside
    /// the effect that is being settled.
    fn log_is_long(&self, rows: u64, settled: Option<u64>) -> bool {
        self.log_rows >= rows && self.outbox.keys().all(|number| Some(*number) == settled)
    }

    pub(super) fn apply_schedule_changed(&mut self, changed: &ScheduleChanged) {
        let Some(state) = &mut self.schedule else { return };
        state.apply_changed(changed);
        if let Some(key) = &changed.key {
            self.signal_keys.insert(key, changed.asked);
        }
        self.touch(Touch::Schedule);
    }

    pub(super) fn apply_scheduled_run_ended(&mut self, ended: &ScheduledRunEnded) {
        if let Some(state) = &mut self.schedule {
            state.apply_ended(ended);
        }
        self.touch(Touch::Schedule);
    }

    pub(super) fn apply_schedule_stepped(&mut self, step: &ScheduleStepped) {
        let Some(mut state) = self.schedule.take() else { return };
        state.apply_stepped(step);
        for run in &step.started {
            let start = self.scheduled_start(&state, run);
            let target = Target { workflow: start.child.workflow.clone(), run: None, child: None };
            self.send(target, Action::StartChild(Box::new(start)), None);
        }
        for told in &step.ending {
            let open = state.running.iter().find(|run| run.number == told.number);
            let Some(workflow) = open.map(|run| run.workflow.clone()) else { continue };
            let workflow = self.beside(workflow);
            let target = Target { workflow, run: None, child: Some(told.number) };
            let reason = "the schedule starts another run".to_owned();
            self.send(target, Action::Cancel { mode: told.mode, reason }, None);
        }
        self.schedule = Some(state);
        self.touch(Touch::Schedule);
    }

    fn beside(&self, workflow: WorkflowId) -> WorkflowKey {
        WorkflowKey { namespace: self.workflow.namespace.clone(), workflow }
    }

    fn scheduled_start(&self, state: &ScheduleState, run: &ScheduledRun) -> StartChild {
        let mut spec = state.schedule.run.clone();
        let id = id_of(&self.workflow.workflow).unwrap_or_default();
        spec.memo.extend([
            ("schedule_id".to_owned(), json_text(id)),
            ("scheduled_at".to_owned(), json_text(&run.nominal.to_string())),
        ]);
        let child = ChildSpec {
            workflow: self.beside(run.workflow.clone()),
            spec,
            parent_close: ParentClosePolicy::Abandon,
            reuse: ReusePolicy::Allow,
            retry_of: None,
            attempt: 0,
            recorded_retry: None,
        };
        let parent = Parent { run: self.reference(), initiated: run.number, ordinal: self.ordinal };
        StartChild { run: run.run, child, parent, root: self.reference() }
    }
}

/// A text as a payload that SDKs and people can read.
fn json_text(text: &str) -> Payload {
    let mut json = String::from('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => json.extend(['\\', character]),
            control if control < ' ' => json.push_str(&format!("\\u{:04x}", u32::from(control))),
            other => json.push(other),
        }
    }
    json.push('"');
    let metadata = BTreeMap::from([("encoding".to_owned(), "json/plain".into())]);
    Payload { metadata, data: json.into() }
}
