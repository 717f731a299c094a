//! The commands of a completed task: all are checked before the first takes effect, then they are
//! carried out one by one. Each becomes one event; what a command itself causes comes after all of
//! them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use super::{KnownUpdate, Phase, Run, activity, close, draft::Draft, update};
use crate::{
    command::{Ask, Command},
    event::{
        ActivityCancelRequested, ActivityCancelled, ActivityScheduled, ActivitySpec, Body,
        ChildInitiated, Condition, ExternalCancelInitiated, ExternalSignalInitiated, Fact,
        MarkerRecorded, MemoUpserted, Mover, Origin, RunCancelled, SearchAttributesUpserted,
        TimerCancelled, TimerRescheduled, TimerStarted, WaitCancelled, WaitDescribed, WaitDetails,
        WaitOpened, WaitSatisfied, WaitTimedOut,
    },
    ids::{ActivityId, EventNumber, ExecutionId, RunId, TimerId, UpdateId, WaitId, WorkflowId},
    limits::{Exceeded, InvalidField, Limits, valid_condition_key},
    payload::{self, PayloadMap, map_size, size},
    search::attribute,
};

/// A command that is invalid in the run's state.
#[derive(Debug)]
pub(super) struct BadCommand {
    index: usize,
    reason: String,
}

impl fmt::Display for BadCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "command {}: {}", self.index + 1, self.reason)
    }
}

/// Number of commands for a condition wait with a deadline, from start to end.
const COMMANDS_OF_A_WAIT: usize = 4;

/// What is open at this point of the commands, without the buffer.
struct CommandLedger<'a> {
    run: &'a Run,
    limits: &'a Limits,
    timers: Overlay<TimerId>,
    waits: Overlay<WaitId>,
    activities: Overlay<ActivityId>,
    accepted: Overlay<UpdateId>,
    rejected: BTreeSet<UpdateId>,
    children: usize,
    /// Bytes of the details of all open waits, computed on first use.
    details: Option<usize>,
    /// Bytes of the details of waits that the commands opened or described.
    shown: BTreeMap<WaitId, usize>,
    /// Bytes of the inputs of pending activities, computed on first use. Those that the commands close
    /// still count.
    inputs: Option<usize>,
    /// What the commands have made of the run's attributes, from the first change on.
    search_attributes: Option<PayloadMap>,
    memo: Option<PayloadMap>,
}

/// Changes to a set of open items.
struct Overlay<T> {
    opened: BTreeSet<T>,
    closed: BTreeSet<T>,
    count: usize,
}

impl<T: Ord + Clone + fmt::Display> Overlay<T> {
    fn new(count: usize) -> Self {
        Self { opened: BTreeSet::new(), closed: BTreeSet::new(), count }
    }

    fn holds(&self, id: &T, before: bool) -> bool {
        self.opened.contains(id) || (before && !self.closed.contains(id))
    }

    fn touched(&self, id: &T) -> bool {
        self.opened.contains(id) || self.closed.contains(id)
    }

    fn open(
        &mut self,
        id: &T,
        before: bool,
        what: &'static str,
        limit: usize,
    ) -> Result<(), String> {
        if self.holds(id, before) {
            return Err(format!("{what} {id} is already open"));
        }
        Exceeded::check(what, self.count, limit).map_err(|exceeded| exceeded.to_string())?;
        self.opened.insert(id.clone());
        self.count += 1;
        Ok(())
    }

    fn close(&mut self, id: &T, before: bool, what: &'static str) -> Result<(), String> {
        if !self.holds(id, before) {
            return Err(format!("there is no open {what} {id}"));
        }
        self.opened.remove(id);
        self.closed.insert(id.clone());
        self.count = self.count.saturating_sub(1);
        Ok(())
    }
}

pub(super) fn check(run: &Run, limits: &Limits, commands: &[Command]) -> Result<(), BadCommand> {
    let mut ledger = CommandLedger {
        run,
        limits,
        timers: Overlay::new(run.timers.len()),
        waits: Overlay::new(run.waits.len()),
        activities: Overlay::new(run.activities.len()),
        accepted: Overlay::new(0),
        rejected: BTreeSet::new(),
        children: run.children.len() + run.pending_requests(),
        details: None,
        shown: BTreeMap::new(),
        inputs: None,
        search_attributes: None,
        memo: None,
    };
    // Everything that is open can be ended in addition: otherwise a run with many open items could
    // not handle a cancel request.
    let open = run.timers.len() + run.waits.len() + run.activities.len() + run.children.len();
    // Code may also wait for each input that the task saw: otherwise a client could stop the run by
    // sending many signals.
    let seen = usize::try_from(run.last_event.saturating_sub(run.completed)).unwrap_or(usize::MAX);
    let limit = seen.saturating_mul(COMMANDS_OF_A_WAIT).saturating_add(limits.commands + open);
    if commands.len() > limit {
        let reason = format!("a task may have {limit} commands, not {}", commands.len());
        return Err(BadCommand { index: limit, reason });
    }
    for (index, command) in commands.iter().enumerate() {
        let last = index + 1 == commands.len();
        let checked = if command.ask.closes() && !last {
            Err("a command that closes the run must be the last one".to_owned())
        } else {
            check_sizes(command, limits)
                .map_err(|invalid| invalid.to_string())
                .and_then(|()| ledger.check(&command.ask))
        };
        checked.map_err(|reason| BadCommand { index, reason })?;
    }
    Ok(())
}

impl CommandLedger<'_> {
    fn check(&mut self, ask: &Ask) -> Result<(), String> {
        let run = self.run;
        match ask {
            Ask::ScheduleActivity(spec) => self.check_activity(spec),
            Ask::CancelActivity(id) => {
                let before = run.activity_ids.contains_key(id);
                let open = self.activities.holds(id, before);
                open.then_some(()).ok_or_else(|| format!("there is no pending activity {id}"))
            }
            Ask::StartTimer(spec) => {
                let before = run.timers.contains_key(&spec.timer);
                self.timers.open(&spec.timer, before, "timer", self.limits.pending_timers)?;
                self.check_shown(spec.details.as_ref())
            }
            Ask::RescheduleTimer { timer, .. } => self.check_move(timer),
            Ask::CancelTimer(timer) => {
                self.timers.close(timer, run.timers.contains_key(timer), "timer")
            }
            Ask::OpenWait(spec) => {
                let before = run.waits.contains_key(&spec.wait);
                self.waits.open(&spec.wait, before, "wait", self.limits.pending_timers)?;
                let size = spec.details.as_ref().map_or(0, WaitDetails::size);
                self.shown.insert(spec.wait.clone(), size);
                self.check_shown(spec.details.as_ref())
            }
            Ask::DescribeWait { wait, details } => {
                let open = self.waits.holds(wait, run.waits.contains_key(wait));
                open.then_some(()).ok_or_else(|| format!("there is no open wait {wait}"))?;
                self.check_redescribed(wait, details)
            }
            Ask::SatisfyWait(wait) | Ask::TimeOutWait(wait) | Ask::CancelWait(wait) => {
                self.waits.close(wait, run.waits.contains_key(wait), "wait")
            }
            // All children can be cancelled at the same time, however many there are.
            Ask::CancelExternal { target, .. } if target.child.is_some() => Ok(()),
            Ask::StartChild(_) | Ask::SignalExternal { .. } | Ask::CancelExternal { .. } => {
                self.children += 1;
                let limit = self.limits.pending_children;
                Exceeded::check("pending children and requests", self.children - 1, limit)
                    .map_err(|exceeded| exceeded.to_string())
            }
            Ask::AcceptUpdate { update, .. } => self.check_accept(update),
            Ask::CompleteUpdate { update, .. } => {
                let before = matches!(run.updates.get(update), Some(KnownUpdate::Accepted { .. }));
                self.accepted.close(update, before, "accepted update")
            }
            Ask::RejectUpdate { update, .. } => {
                self.check_unanswered(update)?;
                self.rejected.insert(update.clone());
                Ok(())
            }
            Ask::UpsertSearchAttributes(changes) => {
                let (field, before) = ("search attributes", &run.spec.search_attributes);
                check_upsert(self.limits, field, &mut self.search_attributes, before, changes)?;
                let all = self.search_attributes.as_ref().unwrap_or(before);
                attribute::check_entries(all, self.limits).map_err(|invalid| invalid.to_string())
            }
            Ask::UpsertMemo(changes) => {
                check_upsert(self.limits, "memo", &mut self.memo, &run.spec.memo, changes)
            }
            Ask::RecordMarker(_) | Ask::CompleteRun(_) | Ask::FailRun(_) | Ask::CancelRun(_) => {
                Ok(())
            }
            // The event that closes the run tells all of them.
            Ask::ContinueAsNew(command) => {
                let signals = usize::try_from(run.last_event).unwrap_or(usize::MAX);
                at_most("signals", command.signals.len(), signals)?;
                at_most("updates", command.updates.len(), self.limits.updates)
            }
        }
    }

    /// An open timer is rescheduled, or one that fired before the task is opened again.
    fn check_move(&mut self, timer: &TimerId) -> Result<(), String> {
        if self.timers.holds(timer, self.run.timers.contains_key(timer)) {
            return Ok(());
        }
        let fired = self.run.fired_unseen(timer).filter(|_| !self.timers.touched(timer));
        fired.ok_or_else(|| format!("there is no open timer {timer}"))?;
        // A timer that is armed again was within the limits when it fired. Refusing it now would
        // refuse the task forever, after its code was told that the reschedule succeeded.
        self.timers.open(timer, false, "timer", usize::MAX)
    }

    fn check_activity(&mut self, spec: &ActivitySpec) -> Result<(), String> {
        if spec.start_to_close.is_none() && spec.schedule_to_close.is_none() {
            let id = &spec.activity;
            return Err(format!(
                "activity {id} needs a start-to-close or schedule-to-close timeout"
            ));
        }
        let inputs = self.inputs.unwrap_or_else(|| self.run.pending_memory());
        let limit = self.limits.pending_activity_bytes;
        Exceeded::check("bytes of pending activities' inputs", inputs, limit)
            .map_err(|exceeded| exceeded.to_string())?;
        self.inputs = Some(inputs.saturating_add(spec.memory()));
        let before = self.run.activity_ids.contains_key(&spec.activity);
        let limit = self.limits.pending_activities;
        self.activities.open(&spec.activity, before, "activity", limit)
    }

    /// Checks that there is room for the details of one more wait.
    fn check_shown(&mut self, details: Option<&WaitDetails>) -> Result<(), String> {
        let Some(details) = details else { return Ok(()) };
        self.check_all_shown(self.shown_bytes() + details.size())
    }

    /// Checks that there is room for the new details of a wait instead of the old ones.
    fn check_redescribed(&mut self, wait: &WaitId, details: &WaitDetails) -> Result<(), String> {
        let all = self.shown_bytes();
        let recorded = || self.run.waits.get(wait)?.spec.details.as_ref().map(WaitDetails::size);
        let size = details.size();
        let before = self.shown.insert(wait.clone(), size).or_else(recorded).unwrap_or_default();
        self.check_all_shown((all + size).saturating_sub(before))
    }

    /// Bytes of the details of waits that no command has closed.
    fn shown_bytes(&self) -> usize {
        self.details.unwrap_or_else(|| {
            let timers = self.run.timers.values().map(|timer| &timer.spec);
            let timers = timers.filter(|spec| !self.timers.closed.contains(&spec.timer));
            let waits = self.run.waits.values().map(|wait| &wait.spec);
            let waits = waits.filter(|spec| !self.waits.closed.contains(&spec.wait));
            let shown = timers.map(|spec| &spec.details).chain(waits.map(|spec| &spec.details));
            shown.flatten().map(WaitDetails::size).sum()
        })
    }

    fn check_all_shown(&mut self, all: usize) -> Result<(), String> {
        self.details = Some(all);
        let limit = self.limits.open_details_bytes;
        if all <= limit {
            return Ok(());
        }
        Err(format!("details of all waits have {all} bytes, the limit is {limit}"))
    }

    fn check_accept(&mut self, update: &UpdateId) -> Result<(), String> {
        self.check_unanswered(update)?;
        self.accepted.open(update, false, "accepted update", self.limits.commands)
    }

    /// Checks that an update is accepted or rejected only once, also within one task.
    fn check_unanswered(&self, update: &UpdateId) -> Result<(), String> {
        let before = matches!(
            self.run.updates.get(update),
            Some(KnownUpdate::Accepted { .. } | KnownUpdate::Completed { .. })
        );
        if before || self.accepted.touched(update) {
            return Err(format!("update {update} was already accepted"));
        }
        let rejected = matches!(self.run.updates.get(update), Some(KnownUpdate::Rejected { .. }));
        if rejected || self.rejected.contains(update) {
            return Err(format!("update {update} was already rejected"));
        }
        Ok(())
    }
}

fn at_most(what: &'static str, count: usize, limit: usize) -> Result<(), String> {
    let refused = || format!("the next run may take over {limit} {what}, not {count}");
    (count <= limit).then_some(()).ok_or_else(refused)
}

/// Checks what changes make of all attributes. Those of a run from before the limit may only shrink.
fn check_upsert(
    limits: &Limits,
    field: &'static str,
    changed: &mut Option<PayloadMap>,
    before: &PayloadMap,
    changes: &PayloadMap,
) -> Result<(), String> {
    let all = changed.get_or_insert_with(|| before.clone());
    let size = map_size(all).bytes;
    payload::merge(all, changes);
    if map_size(all).bytes <= size {
        return Ok(());
    }
    limits.check_attributes(field, all).map_err(|invalid| invalid.to_string())
}

/// Checks names and data of a command against the limits.
fn check_sizes(command: &Command, limits: &Limits) -> Result<(), InvalidField> {
    limits.check_extension(&command.extension)?;
    match &command.ask {
        Ask::ScheduleActivity(spec) => check_activity_sizes(spec, limits),
        Ask::StartTimer(spec) => {
            limits.check_name("timer id", spec.timer.as_str())?;
            check_origin(spec.origin.as_ref(), limits)?;
            check_details(spec.details.as_ref(), limits)
        }
        Ask::OpenWait(spec) => {
            limits.check_name("wait id", spec.wait.as_str())?;
            let Condition { key, fingerprint } = &spec.condition;
            check_condition(key.as_deref(), fingerprint.as_deref(), limits)?;
            let timer = spec.timer.as_ref().map_or("", TimerId::as_str);
            limits.check_length("timer id of the deadline", timer)?;
            check_details(spec.details.as_ref(), limits)
        }
        Ask::DescribeWait { wait, details } => {
            limits.check_length("wait id", wait.as_str())?;
            limits.check_details(details)
        }
        Ask::StartChild(child) => {
            limits.check_workflow(&child.workflow)?;
            let retry_of = child.retry_of.as_ref().map_or("", WorkflowId::as_str);
            limits.check_length("workflow id of the first child", retry_of)?;
            limits.check_retry(child.recorded_retry.as_ref())?;
            limits.check_spec(&child.spec)
        }
        Ask::SignalExternal { target, name, input, header } => {
            limits.check_workflow(&target.workflow)?;
            limits.check_name("signal name", name)?;
            limits.check_size("signal input", size(input) + map_size(header))
        }
        Ask::CancelExternal { target, reason, .. } => {
            limits.check_length("reason", reason)?;
            limits.check_workflow(&target.workflow)
        }
        Ask::RecordMarker(marker) => limits.check_marker(marker),
        // What they make of the run's attributes is checked with the run.
        Ask::UpsertSearchAttributes(map) | Ask::UpsertMemo(map) => {
            limits.check_size("attributes", map_size(map))
        }
        Ask::AcceptUpdate { update, request } => {
            limits.check_name("update id", update.as_str())?;
            limits.check_length("update name", &request.name)?;
            limits.check_length("identity", &request.identity)?;
            limits.check_size("update", size(&request.input) + map_size(&request.header))
        }
        // An outcome that is too large is reported to the caller, and is no reason to fail the
        // task.
        Ask::CompleteUpdate { update, .. } | Ask::RejectUpdate { update, .. } => {
            limits.check_length("update id", update.as_str())
        }
        Ask::CompleteRun(result) | Ask::CancelRun(result) => {
            limits.check_size("result", size(result))
        }
        Ask::FailRun(failure) => limits.check_failure(failure),
        Ask::ContinueAsNew(command) => {
            for update in &command.updates {
                limits.check_length("update id", update.as_str())?;
            }
            limits.check_spec(&command.spec)
        }
        // Ids of unknown items are part of the refusal's text, so they have a limit too.
        Ask::CancelActivity(activity) => limits.check_length("activity id", activity.as_str()),
        Ask::RescheduleTimer { timer, .. } | Ask::CancelTimer(timer) => {
            limits.check_length("timer id", timer.as_str())
        }
        Ask::SatisfyWait(wait) | Ask::TimeOutWait(wait) | Ask::CancelWait(wait) => {
            limits.check_length("wait id", wait.as_str())
        }
    }
}

fn check_activity_sizes(spec: &ActivitySpec, limits: &Limits) -> Result<(), InvalidField> {
    limits.check_name("activity id", spec.activity.as_str())?;
    limits.check_name("activity type", &spec.activity_type)?;
    limits.check_length("queue", &spec.queue)?;
    limits.check_retry(spec.retry.as_ref())?;
    let retry_of = spec.retry_of.as_ref().map_or("", ExecutionId::as_str);
    limits.check_length("execution id", retry_of)?;
    limits.check_size("header", map_size(&spec.header))?;
    limits.check_size("input", size(&spec.input))
}

fn check_details(details: Option<&WaitDetails>, limits: &Limits) -> Result<(), InvalidField> {
    details.map_or(Ok(()), |details| limits.check_details(details))
}

fn check_origin(origin: Option<&Origin>, limits: &Limits) -> Result<(), InvalidField> {
    match origin {
        None | Some(Origin::CreateTimer) => Ok(()),
        Some(Origin::ExternalEvent { name }) => limits.check_length("signal name", name),
        Some(Origin::Condition { key, fingerprint }) => {
            check_condition(key.as_deref(), fingerprint.as_deref(), limits)
        }
        Some(Origin::ActivityRetry { execution }) => {
            limits.check_length("execution id", execution.as_str())
        }
        Some(Origin::ChildWorkflowRetry { workflow }) => {
            limits.check_length("workflow id", workflow.as_str())
        }
    }
}

fn check_condition(
    key: Option<&str>,
    fingerprint: Option<&str>,
    limits: &Limits,
) -> Result<(), InvalidField> {
    check_key(key, limits)?;
    limits.check_length("fingerprint of the condition", fingerprint.unwrap_or_default())
}

fn check_key(key: Option<&str>, limits: &Limits) -> Result<(), InvalidField> {
    limits.check_length("condition key", key.unwrap_or_default())?;
    match key {
        Some(key) if !valid_condition_key(key) => Err(InvalidField::new(
            "condition key",
            format!("{key:?} is not 1 to 128 letters, digits and . _ - : characters"),
        )),
        _ => Ok(()),
    }
}

/// Turns checked commands into events, then adds what they cause.
pub(super) fn carry_out(
    draft: &mut Draft<'_>,
    completed: EventNumber,
    commands: Vec<Command>,
    carried: Vec<Body>,
) {
    let mut carried = Some(carried);
    let mut provoked = Vec::new();
    for Command { ask, extension, .. } in commands {
        if let Ask::CancelActivity(id) = &ask {
            provoked.extend(cancelled_at_once(draft.run, id));
        }
        let schedules = matches!(ask, Ask::ScheduleActivity(_));
        if let Some(fact) = fact(draft, completed, ask, &mut carried) {
            draft.body(Body::new(fact).with_extension(extension));
        }
        if schedules {
            activity::count_from_true_time(draft);
        }
    }
    for fact in provoked {
        if draft.run.open() {
            draft.event(fact);
        }
    }
}

/// An activity without a running attempt is cancelled immediately.
fn cancelled_at_once(run: &Run, id: &ActivityId) -> Option<ActivityCancelled> {
    let scheduled = *run.activity_ids.get(id)?;
    let activity = run.activities.get(&scheduled)?;
    let running = matches!(activity.phase, Phase::Started { .. });
    let at_once = !running && !activity.closing && !activity.cancel_requested;
    at_once.then(|| ActivityCancelled { scheduled, ..ActivityCancelled::default() })
}

fn fact(
    draft: &mut Draft<'_>,
    completed: EventNumber,
    ask: Ask,
    carried: &mut Option<Vec<Body>>,
) -> Option<Fact> {
    let task_completed = completed;
    Some(match ask {
        Ask::ScheduleActivity(spec) => schedule_activity(draft.run, spec, completed).into(),
        Ask::CancelActivity(id) => {
            let scheduled = draft.run.activity_ids.get(&id).copied().unwrap_or_default();
            ActivityCancelRequested { scheduled, task_completed }.into()
        }
        Ask::StartTimer(spec) => TimerStarted { spec, task_completed }.into(),
        Ask::RescheduleTimer { timer, fire_at } => {
            TimerRescheduled { timer, fire_at, by: Mover::Code }.into()
        }
        Ask::CancelTimer(timer) => {
            let started = draft.run.timers.get(&timer).map_or(0, |open| open.started);
            TimerCancelled { timer, started }.into()
        }
        Ask::OpenWait(spec) => WaitOpened { spec, task_completed }.into(),
        Ask::DescribeWait { wait, details } => {
            let (opened, _) = opened(draft.run, &wait);
            WaitDescribed { wait, opened, details }.into()
        }
        Ask::SatisfyWait(wait) => {
            let (opened, condition) = opened(draft.run, &wait);
            WaitSatisfied { wait, opened, condition }.into()
        }
        Ask::TimeOutWait(wait) => {
            let (opened, condition) = opened(draft.run, &wait);
            WaitTimedOut { wait, opened, condition }.into()
        }
        Ask::CancelWait(wait) => {
            let (opened, _) = opened(draft.run, &wait);
            WaitCancelled { wait, opened }.into()
        }
        Ask::StartChild(child) => {
            let run = RunId::of_child(draft.run.id, draft.run.last_event + 1, draft.now());
            ChildInitiated { child: *child, run, task_completed }.into()
        }
        Ask::SignalExternal { target, name, input, header } => {
            ExternalSignalInitiated { target, name, input, header, task_completed }.into()
        }
        Ask::CancelExternal { target, mode, reason } => {
            ExternalCancelInitiated { target, mode, reason, task_completed }.into()
        }
        Ask::RecordMarker(marker) => MarkerRecorded { marker, task_completed }.into(),
        Ask::UpsertSearchAttributes(attributes) => {
            SearchAttributesUpserted { attributes, task_completed }.into()
        }
        Ask::UpsertMemo(memo) => MemoUpserted { memo, task_completed }.into(),
        Ask::AcceptUpdate { update, request } => update::accept(draft, update, request),
        Ask::CompleteUpdate { update, outcome } => update::complete(draft, update, outcome),
        Ask::RejectUpdate { update, failure } => {
            update::reject(draft, update, failure);
            return None;
        }
        Ask::CompleteRun(result) => close::complete(draft, result),
        Ask::FailRun(failure) => close::fail(draft, failure),
        Ask::CancelRun(details) => RunCancelled { details }.into(),
        Ask::ContinueAsNew(command) => {
            close::continue_as_new(draft, *command, carried.take().unwrap_or_default())
        }
    })
}

fn schedule_activity(
    run: &Run,
    mut spec: ActivitySpec,
    completed: EventNumber,
) -> ActivityScheduled {
    if spec.queue.is_empty() {
        spec.queue.clone_from(&run.spec.queue);
    }
    let execution =
        spec.retry_of.clone().unwrap_or_else(|| run.id.execution_id(run.last_event + 1));
    ActivityScheduled { spec, execution, task_completed: completed }
}

fn opened(run: &Run, wait: &WaitId) -> (EventNumber, Condition) {
    run.waits.get(wait).map(|open| (open.opened, open.spec.condition.clone())).unwrap_or_default()
}
