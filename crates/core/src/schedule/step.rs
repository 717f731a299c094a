//! What a schedule does when its time has come, when it was changed, or when a run that it started has
//! ended. Pure: the result is a record, and applying the record is the only way to change the state.
//!
//! | a start is due, policy | no run is open | a run is open |
//! |---|---|---|
//! | skip | starts | left out |
//! | buffer one | starts | waits, unless another waits |
//! | buffer all | starts | waits |
//! | allow all | starts | starts |
//! | cancel other, terminate other | starts | the open runs are told to end; the start waits and replaces earlier ones of its kind |
//!
//! Times that the bounds leave no room for are not considered yet, so they are neither lost nor held
//! in memory.

use super::{
    Backfill, Overlap, PlannedStart, Schedule, ScheduleBounds, ScheduleState, ScheduledRun, Search,
    Times,
    definition::planned_workflow,
    record::{EndRun, ScheduleStepped},
    state::just_before,
};
use crate::{
    event::CancelMode,
    ids::{RunId, WorkflowKey},
    time::Timestamp,
};

/// What a step depends on beside the schedule's state.
#[derive(Clone, Copy)]
pub(crate) struct StepContext<'a> {
    pub(crate) now: Timestamp,
    /// The schedule.
    pub(crate) workflow: &'a WorkflowKey,
    /// The schedule's own run, from which the ids of the runs that it starts are derived.
    pub(crate) run: RunId,
    pub(crate) bounds: &'a ScheduleBounds,
}

/// Decides what the schedule does now.
pub(crate) fn step(state: &ScheduleState, context: StepContext<'_>) -> ScheduleStepped {
    let mut step = Step::new(state, context);
    for planned in &state.waiting {
        step.place(*planned);
    }
    step.take_backfills();
    step.take_times();
    step.finish()
}

struct Step<'a> {
    state: &'a ScheduleState,
    context: StepContext<'a>,
    /// `None` if this version does not know its time zone.
    times: Option<Times>,
    done: ScheduleStepped,
    /// Number of open runs, those that this step starts included.
    open: usize,
    /// Most starts of this step, and most open runs, by their number and their bytes.
    starts_max: usize,
    running_max: usize,
    /// How many times may still be considered.
    budget: usize,
    /// Whether there is more to do than one step may.
    unfinished: bool,
}

/// Whether there is room for another start.
enum Room {
    Now,
    /// In the next step.
    Soon,
    /// When a run has ended.
    Later,
}

impl<'a> Step<'a> {
    fn new(state: &'a ScheduleState, context: StepContext<'a>) -> Self {
        let done = ScheduleStepped {
            considered: state.considered,
            next: None,
            wake_at: Timestamp::NEVER,
            waiting: Vec::new(),
            backfills: Vec::new(),
            remaining: state.schedule.remaining,
            started: Vec::new(),
            ending: Vec::new(),
            skipped: 0,
            missed: 0,
        };
        let bounds = context.bounds;
        let each = state.schedule.start_bytes().max(1);
        Self {
            state,
            context,
            starts_max: bounds.starts.min((bounds.start_bytes / each).max(1)),
            running_max: bounds.running.min((bounds.running_bytes / each).max(1)),
            times: state.schedule.spec.times().ok(),
            done,
            open: state.running.len(),
            budget: bounds.times,
            unfinished: false,
        }
    }

    /// Starts, keeps or leaves out a start that is due.
    fn place(&mut self, planned: PlannedStart) {
        let exhausted = !planned.manual && self.done.remaining == Some(0);
        if !planned.manual && self.state.paused {
            return self.done.waiting.push(planned);
        }
        if exhausted {
            self.done.skipped += 1;
            return;
        }
        let policy = self.policy(&planned);
        let others_wait = self.done.waiting.iter().any(|other| self.waits_for_end(other));
        match policy {
            Overlap::AllowAll => match self.room(Overlap::AllowAll) {
                Room::Now => self.start(planned),
                room @ (Room::Soon | Room::Later) => {
                    self.unfinished |= matches!(room, Room::Soon);
                    self.done.waiting.push(planned);
                }
            },
            _ if self.open == 0 && !others_wait => self.start(planned),
            Overlap::Skip => self.done.skipped += 1,
            Overlap::BufferOne if others_wait => self.done.skipped += 1,
            Overlap::BufferAll if self.done.waiting.len() >= self.context.bounds.waiting => {
                self.done.skipped += 1;
            }
            Overlap::BufferOne | Overlap::BufferAll => self.done.waiting.push(planned),
            Overlap::CancelOther => self.replace(planned, CancelMode::Request),
            Overlap::TerminateOther => self.replace(planned, CancelMode::Terminate),
        }
    }

    fn policy(&self, planned: &PlannedStart) -> Overlap {
        planned.overlap.unwrap_or_else(|| self.state.schedule.overlap())
    }

    /// Whether a start that waits does so for the end of open runs, and not for the end of a pause.
    fn waits_for_end(&self, waiting: &PlannedStart) -> bool {
        let held = self.state.paused && !waiting.manual;
        !held && self.policy(waiting) != Overlap::AllowAll
    }

    /// Tells the open runs to end, and keeps the start instead of earlier ones of its kind.
    fn replace(&mut self, planned: PlannedStart, mode: CancelMode) {
        let before = self.done.waiting.len();
        let mut waiting = std::mem::take(&mut self.done.waiting);
        waiting.retain(|other| {
            let policy = self.policy(other);
            !matches!(policy, Overlap::CancelOther | Overlap::TerminateOther)
        });
        self.done.skipped += u64::try_from(before - waiting.len()).unwrap_or_default();
        waiting.push(planned);
        self.done.waiting = waiting;
        let open = self.state.running.iter().chain(&self.done.started);
        for run in open {
            let told = self.done.ending.iter_mut().find(|told| told.number == run.number);
            let known = told.as_ref().map(|told| told.mode).or(run.ending);
            if known == Some(CancelMode::Terminate) || known == Some(mode) {
                continue;
            }
            match told {
                Some(told) => told.mode = mode,
                None => self.done.ending.push(EndRun { number: run.number, mode }),
            }
        }
    }

    fn start(&mut self, planned: PlannedStart) {
        let StepContext { now, run, .. } = self.context;
        let number = self.done.started.last().map_or(self.state.starts, |last| last.number) + 1;
        self.open += 1;
        if !planned.manual {
            self.done.remaining = self.done.remaining.map(|left| left.saturating_sub(1));
        }
        self.done.started.push(ScheduledRun {
            number,
            nominal: planned.nominal,
            at: now,
            workflow: planned_workflow(&self.state.schedule.workflow, planned.nominal),
            run: RunId::of_child(run, number, now),
            ending: None,
            outcome: None,
        });
    }

    fn room(&self, policy: Overlap) -> Room {
        let bounds = self.context.bounds;
        match policy {
            Overlap::AllowAll if self.open >= self.running_max => Room::Later,
            Overlap::AllowAll if self.done.started.len() >= self.starts_max => Room::Soon,
            Overlap::BufferAll if self.open > 0 && self.done.waiting.len() >= bounds.waiting => {
                Room::Later
            }
            Overlap::Skip
            | Overlap::BufferOne
            | Overlap::BufferAll
            | Overlap::AllowAll
            | Overlap::CancelOther
            | Overlap::TerminateOther => Room::Now,
        }
    }

    /// Whether another time can be considered for a start of this policy.
    fn admits(&mut self, policy: Overlap) -> bool {
        let room = self.room(policy);
        self.unfinished |= self.budget == 0 || matches!(room, Room::Soon);
        self.budget > 0 && matches!(room, Room::Now)
    }

    /// Whether further searches are left to the next step. The first one never is.
    fn searched_enough(&mut self) -> bool {
        let steps = self.times.as_ref().map_or(0, Times::steps);
        let enough = steps > self.context.bounds.search_steps;
        self.unfinished |= enough;
        enough
    }

    fn take_backfills(&mut self) {
        for backfill in &self.state.backfills {
            if let Some(rest) = self.take_backfill(*backfill) {
                self.done.backfills.push(rest);
            }
        }
    }

    /// Places the starts of a backfill; returns what is left of it.
    fn take_backfill(&mut self, mut backfill: Backfill) -> Option<Backfill> {
        let overlap = backfill.overlap;
        let policy = overlap.unwrap_or_else(|| self.state.schedule.overlap());
        loop {
            if self.searched_enough() {
                return Some(backfill);
            }
            let Some(times) = &mut self.times else {
                self.look_again();
                return Some(backfill);
            };
            let searched = times.next_after(backfill.after);
            let nominal = match searched {
                Search::Never => return None,
                Search::Found(at) | Search::NoneUntil(at) if at > backfill.until => return None,
                Search::NoneUntil(at) => {
                    self.budget = self.budget.saturating_sub(1);
                    backfill.after = at;
                    None
                }
                Search::Found(at) => Some(at),
            };
            if !self.admits(policy) {
                return Some(backfill);
            }
            if let Some(nominal) = nominal {
                self.budget -= 1;
                backfill.after = nominal;
                self.place(PlannedStart { nominal, at: self.context.now, overlap, manual: true });
            }
        }
    }

    /// Places the starts of all times that have come, and plans the next one.
    fn take_times(&mut self) {
        let now = self.context.now;
        let policy = self.state.schedule.overlap();
        let too_late = now.saturating_sub(self.state.schedule.catch_up());
        let jitter = self.state.schedule.spec.jitter.unwrap_or_default();
        let skip_to = just_before(too_late.saturating_sub(jitter));
        let counted = u64::try_from(self.context.bounds.times).unwrap_or(u64::MAX);
        while !self.state.paused && self.done.remaining != Some(0) {
            if self.searched_enough() {
                return;
            }
            // After a long downtime the times that are too late are not all counted.
            if self.done.missed >= counted {
                self.done.considered = self.done.considered.max(skip_to);
            }
            let Some(searched) = self.next_time() else {
                self.done.next = self.state.next;
                return self.look_again();
            };
            let planned = match searched {
                Search::Never => return,
                Search::NoneUntil(until) if until > now => {
                    return self.wake(until);
                }
                Search::NoneUntil(until) => {
                    if !self.admits(policy) {
                        return;
                    }
                    self.budget -= 1;
                    self.done.considered = until;
                    continue;
                }
                Search::Found(nominal) => self.planned(nominal),
            };
            self.done.next = Some(planned);
            if planned.at > now {
                return self.wake(planned.at);
            }
            if planned.at < too_late {
                self.done.missed += 1;
            } else if self.admits(policy) {
                self.budget -= 1;
                self.place(planned);
            } else {
                return;
            }
            self.done.considered = planned.nominal;
            self.done.next = None;
        }
    }

    /// `None` if this version does not know the time zone.
    fn next_time(&mut self) -> Option<Search> {
        self.times.as_mut().map(|times| times.next_after(self.done.considered))
    }

    /// A later version, or a node that has it, may know the time zone.
    fn look_again(&mut self) {
        self.wake(self.context.now.saturating_add(self.context.bounds.unknown_zone_retry));
    }

    fn planned(&mut self, nominal: Timestamp) -> PlannedStart {
        let schedule = self.context.workflow.to_string();
        let delayed = self.times.as_mut().map(|times| times.delayed(&schedule, nominal));
        PlannedStart { nominal, at: delayed.unwrap_or(nominal), overlap: None, manual: false }
    }

    fn wake(&mut self, at: Timestamp) {
        self.done.wake_at = self.done.wake_at.min(at);
    }

    fn finish(mut self) -> ScheduleStepped {
        let now = self.context.now;
        if self.unfinished {
            self.wake(now);
        } else if self.over() {
            self.wake(now.saturating_add(self.context.bounds.kept_after_end));
        }
        self.done
    }

    /// Whether nothing will ever happen by itself, although something was to.
    fn over(&mut self) -> bool {
        let idle = self.open == 0 && self.done.waiting.is_empty() && self.done.backfills.is_empty();
        let ends = idle && !self.state.paused && self.done.next.is_none();
        ends && ended(&self.state.schedule, self.done.remaining, self.next_time())
    }
}

fn ended(schedule: &Schedule, remaining: Option<u64>, next: Option<Search>) -> bool {
    !schedule.spec.is_empty() && (remaining == Some(0) || next == Some(Search::Never))
}

impl ScheduleState {
    /// Whether the schedule has ended, and was kept long enough.
    pub(crate) fn may_close(&self, now: Timestamp) -> bool {
        let idle = self.running.is_empty() && self.waiting.is_empty() && self.backfills.is_empty();
        let due = idle && !self.paused && self.next.is_none() && self.wake_at <= now;
        due && {
            let times = self.schedule.spec.times().ok();
            let next = times.map(|mut times| times.next_after(self.considered));
            ended(&self.schedule, self.schedule.remaining, next)
        }
    }

    /// A new schedule. If it is to start at once, it does so as soon as it exists.
    pub(crate) fn begin(
        schedule: Schedule,
        (paused, note): (bool, String),
        trigger: bool,
        context: StepContext<'_>,
    ) -> Self {
        let now = context.now;
        let mut state = Self { paused, note, ..Self::new(schedule, now) };
        if trigger {
            state.trigger(now, None);
            state.wake_at = now;
        } else {
            // Nothing is due yet, so this only plans.
            let planned = step(&state, context);
            state.apply_stepped(&planned);
        }
        state
    }

    /// Whether the bounds allow a backfill: its times, and how long they are searched for.
    pub(crate) fn can_backfill(
        &self,
        from: Timestamp,
        to: Timestamp,
        bounds: &ScheduleBounds,
    ) -> bool {
        // Times of a zone that this version does not know are bounded when they are taken.
        let Ok(mut times) = self.schedule.spec.times() else { return true };
        let (mut after, mut found) = (just_before(from), 0);
        while found <= bounds.backfill_times && times.steps() <= bounds.search_steps {
            match times.next_after(after) {
                Search::Found(at) if at <= to => {
                    found += 1;
                    after = at;
                }
                Search::NoneUntil(until) if until < to => after = until,
                Search::Found(_) | Search::NoneUntil(_) | Search::Never => return true,
            }
        }
        false
    }

    /// The next nominal times, at most `count`. While it is paused: what they would be.
    pub fn next_times(&self, now: Timestamp, count: usize) -> Vec<Timestamp> {
        let after = if self.paused { self.considered.max(now) } else { self.considered };
        let left = self.schedule.remaining.and_then(|left| usize::try_from(left).ok());
        let count = left.map_or(count, |left| count.min(left));
        let times = self.schedule.spec.times().ok();
        times.map_or_else(Vec::new, |mut times| times.some_after(after, count))
    }
}
