//! Work for workers: what is offered, who gets it, and what happens when a worker is lost.

use std::collections::BTreeSet;

use abide_core::{
    ids::{EventNumber, RunId, SessionId, StartId},
    run::{Decision, Input, Phase, Reply, StartActivity, StartTask, Task, Turn},
    time::Timestamp,
};
use abide_store::rows::{TaskKey, TaskKind, TaskPhase, TaskRow};

use super::{Reading, Shard, Todo};
use crate::{
    alarm::Alarm,
    cache::Entry,
    message::{
        ActivityToken, CallError, CallReply, Dispatch, Fetch, Offer, Output, QueueKey, TaskToken,
        Ticket, Work, WorkKind, Worker,
    },
};

/// An attempt of an activity that a worker has.
#[derive(Debug)]
pub(super) struct Attempt {
    /// Whose it is; none after a restart, until the worker presents it.
    session: Option<SessionId>,
    /// Which start it is; zero after a restart, until the run is in memory.
    start: u32,
    /// When it is given up, unless the worker presents it.
    lost_at: Option<Timestamp>,
}

/// A search for tasks of a queue that were left as rows.
#[derive(Debug)]
pub(super) struct Refill {
    queue: QueueKey,
    /// Where it began.
    from: TaskKey,
    /// How many tasks may still be offered.
    left: usize,
    /// It went round to the beginning of the queue.
    wrapped: bool,
}

impl Shard {
    /// After the shard was taken into memory: all work that can be handed out, and all attempts.
    pub(super) fn scan_tasks(&mut self, after: Option<TaskKey>) {
        self.fetch(Reading::Tasks, Fetch::Tasks(after, self.limits.page_rows));
    }

    pub(super) fn tasks_scanned(&mut self, rows: Vec<TaskRow>) {
        if rows.len() >= self.limits.page_rows {
            self.scan_tasks(rows.last().map(|row| row.key.clone()));
        }
        for row in rows {
            if row.phase == TaskPhase::Started {
                self.await_presentation(row.key.run, row.key.scheduled);
            }
            self.take_row(&row);
        }
    }

    fn offer_row(&mut self, row: &TaskRow) {
        let work = match row.key.kind {
            TaskKind::Workflow => Work::Workflow,
            TaskKind::Activity => Work::Activity(row.key.scheduled),
        };
        let offer = Offer {
            queue: QueueKey {
                namespace: row.key.namespace.clone(),
                queue: row.key.queue.clone(),
                kind: work.kind(),
            },
            shard: self.id,
            workflow: abide_core::ids::WorkflowKey {
                namespace: row.key.namespace.clone(),
                workflow: row.workflow.clone(),
            },
            run: row.key.run,
            work,
            prefer: self.session_of(row.key.run),
            except: BTreeSet::new(),
        };
        self.emit(Output::Offer(offer));
    }

    /// A queue has room again for what was left as rows. The search goes on where the last one ended,
    /// and offers more than the queue can hold: what it turns away makes it ask again.
    pub(super) fn refill(&mut self, queue: QueueKey) {
        let most = 2 * self.limits.queued_offers + 1;
        let from = self.refilled.remove(&queue).unwrap_or_else(|| queue.first_task());
        self.read_refill(Refill { queue, from: from.clone(), left: most, wrapped: false }, from);
        self.reoffer_updates();
        self.reoffer_queries();
    }

    /// Workers have a new build, which any blocked run of the queue may fit.
    pub(super) fn new_build(&mut self, queue: QueueKey) {
        let from = queue.first_task();
        let all = usize::MAX;
        self.read_refill(Refill { queue, from: from.clone(), left: all, wrapped: false }, from);
    }

    fn read_refill(&mut self, refill: Refill, after: TaskKey) {
        let fetch = Fetch::Tasks(Some(after), self.limits.page_rows);
        self.fetch(Reading::Refill(Box::new(refill)), fetch);
    }

    pub(super) fn refill_read(&mut self, mut refill: Refill, rows: Vec<TaskRow>) {
        let full = rows.len() >= self.limits.page_rows;
        for row in &rows {
            if !refill.queue.holds(&row.key) {
                return self.wrap_refill(refill);
            }
            if refill.left == 0 || (refill.wrapped && row.key > refill.from) {
                self.refilled.insert(refill.queue, row.key.clone());
                return;
            }
            if row.phase == TaskPhase::Ready {
                refill.left -= 1;
            }
            self.take_row(row);
        }
        match rows.last() {
            Some(last) if full => self.read_refill(refill, last.key.clone()),
            _ => self.wrap_refill(refill),
        }
    }

    /// The end of the queue: what stands before the beginning of the search is left.
    fn wrap_refill(&mut self, refill: Refill) {
        let first = refill.queue.first_task();
        if !refill.wrapped && refill.from != first {
            self.read_refill(Refill { wrapped: true, ..refill }, first);
        }
    }

    /// Offers what a row stands for, or lets its run do so.
    fn take_row(&mut self, row: &TaskRow) {
        match (row.phase, row.key.kind) {
            (TaskPhase::Ready, _) => self.offer_row(row),
            // Blocked, or paused: the run knows.
            (TaskPhase::Held, TaskKind::Workflow) => self.with_run(row.key.run, Todo::Reoffer),
            (TaskPhase::Started, _) | (TaskPhase::Held, TaskKind::Activity) => {}
        }
    }

    /// Tasks whose only cause is an update have no row.
    fn reoffer_updates(&mut self) {
        let waiting: Vec<_> = self
            .cache
            .iter()
            .filter(|(_, entry)| !entry.run.volatile.admitted.is_empty())
            .map(|(run, _)| *run)
            .collect();
        for run in waiting {
            self.offer_task(run);
        }
    }

    /// Offers the workflow task, now or when it is no longer held back.
    pub(super) fn offer_task(&mut self, run: RunId) {
        let Some(entry) = self.cache.peek(run).filter(|entry| entry.run.task_pending()) else {
            return;
        };
        if let Some(at) = entry.run.task_not_before().filter(|at| *at > self.moment.now) {
            return self.alarms.set(at, Alarm::TaskReady(run));
        }
        let except = match &entry.run.task {
            Task::Retry(retry) => retry.tried.clone(),
            Task::Idle | Task::Scheduled { .. } => BTreeSet::new(),
        };
        let mut offer = self.offer_of(entry, entry.run.spec.queue.clone(), Work::Workflow);
        offer.except = except;
        self.emit_after(run, Output::Offer(offer));
    }

    pub(super) fn offer_activity(&mut self, run: RunId, scheduled: EventNumber) {
        let Some(entry) = self.cache.peek(run) else { return };
        let Some(activity) = entry.run.activities.get(&scheduled) else { return };
        let ready = matches!(activity.phase, Phase::Ready { .. });
        if ready && !activity.closing && !entry.run.paused {
            let queue = activity.spec.queue.clone();
            let offer = self.offer_of(entry, queue, Work::Activity(scheduled));
            self.emit_after(run, Output::Offer(offer));
        }
    }

    fn offer_of(&self, entry: &Entry, queue: String, work: Work) -> Offer {
        let workflow = entry.run.workflow.clone();
        let namespace = workflow.namespace.clone();
        let prefer = match work {
            Work::Workflow | Work::Query(_) => entry.affinity.clone(),
            Work::Activity(_) => None,
        };
        Offer {
            queue: QueueKey { namespace, queue, kind: work.kind() },
            shard: self.id,
            workflow,
            run: entry.run.id,
            work,
            prefer,
            except: BTreeSet::new(),
        }
    }

    pub(super) fn matched(&mut self, offer: Offer, worker: Worker) {
        self.with_run(offer.run, Todo::Matched(offer, worker));
    }

    pub(super) fn start_work(&mut self, run: RunId, offer: Offer, worker: Worker) {
        match offer.work {
            Work::Workflow => self.start_task(run, offer, worker),
            Work::Activity(scheduled) => {
                let started = self.start_activity(run, scheduled, &worker);
                match started {
                    Ok(decision) => {
                        let reply = decision.reply.clone();
                        self.record(run, vec![decision]);
                        self.dispatch_activity(run, scheduled, &reply, worker, false);
                    }
                    Err(_) => self.emit(Output::Unmatched(offer, worker)),
                }
            }
            Work::Query(_) => self.give_query(run, offer, worker),
        }
    }

    fn start_task(&mut self, run: RunId, offer: Offer, worker: Worker) {
        let start = StartId { incarnation: self.epoch, counter: self.starts + 1 };
        let input = StartTask {
            start,
            session: worker.session.clone(),
            identity: worker.identity.clone(),
            build: worker.build.clone(),
        };
        let given = match self.decide(run, Input::StartTask(input)) {
            Ok(Reply::TaskGiven(given)) => *given,
            // Nobody can have it, so it is not offered again.
            Err(CallError::SetAside(_)) => return self.emit(Output::Unmatched(offer, worker)),
            Ok(_) | Err(_) => {
                self.emit(Output::Unmatched(offer, worker));
                return self.offer_task(run);
            }
        };
        self.starts += 1;
        let Some(entry) = self.cache.peek(run) else { return };
        if let Some(at) = entry.run.turn_deadline(&self.limits) {
            self.alarms.set(at, Alarm::Turn(run, start));
        }
        let cached = entry.affinity.as_ref() == Some(&worker.session) && entry.recent.is_some();
        let dispatch = Dispatch::Workflow {
            token: TaskToken { workflow: entry.run.workflow.clone(), run, start },
            given,
            last_event: entry.run.last_event,
            recent: entry.recent.clone().filter(|_| cached).unwrap_or_default(),
            cached,
        };
        self.emit_after(run, Output::Dispatch(worker, Box::new(dispatch)));
    }

    fn start_activity(
        &mut self,
        run: RunId,
        scheduled: EventNumber,
        worker: &Worker,
    ) -> Result<Decision, CallError> {
        let input = StartActivity {
            scheduled,
            session: worker.session.clone(),
            identity: worker.identity.clone(),
        };
        self.judge(run, Input::StartActivity(input))
    }

    /// Activities that the worker of a completed task takes at once: their start costs no commit of
    /// its own.
    pub(super) fn start_eager(
        &mut self,
        run: RunId,
        turn: &Turn,
        most: usize,
    ) -> Vec<(EventNumber, Decision)> {
        let worker = Worker::of(turn);
        self.eager_candidates(run, most)
            .into_iter()
            .filter_map(|scheduled| {
                Some((scheduled, self.start_activity(run, scheduled, &worker).ok()?))
            })
            .collect()
    }

    fn eager_candidates(&self, run: RunId, most: usize) -> Vec<EventNumber> {
        let Some(entry) = self.cache.peek(run) else { return Vec::new() };
        let run = &entry.run;
        run.activities
            .range(run.completed..)
            .filter(|(_, activity)| activity.spec.queue == run.spec.queue && activity.starts == 0)
            .map(|(scheduled, _)| *scheduled)
            .take(most)
            .collect()
    }

    /// Sends the activities that were started with the completion of the worker's task.
    pub(super) fn dispatch_eager(&mut self, run: RunId, turn: &Turn, started: &[EventNumber]) {
        for scheduled in started {
            let reply = Reply::ActivityGiven { start: 1 };
            self.dispatch_activity(run, *scheduled, &reply, Worker::of(turn), true);
        }
    }

    fn dispatch_activity(
        &mut self,
        run: RunId,
        scheduled: EventNumber,
        reply: &Reply,
        worker: Worker,
        eager: bool,
    ) {
        let Reply::ActivityGiven { start } = *reply else { return };
        let Some(entry) = self.cache.peek(run) else { return };
        let Some(given) = entry.run.activity_given(scheduled) else { return };
        let workflow = entry.run.workflow.clone();
        let token = ActivityToken { workflow, run, scheduled, start };
        let dispatch = Dispatch::Activity { token, given: Box::new(given), eager };
        self.emit_after(run, Output::Dispatch(worker, Box::new(dispatch)));
    }

    /// The credit that a worker gave for work which does not reach it: the queue, and an offer of it.
    pub(super) fn credit_of(&self, dispatch: &Dispatch) -> Option<Offer> {
        let (run, work) = match dispatch {
            // A worker's own slot, no credit of the queue.
            Dispatch::Activity { eager: true, .. } => return None,
            Dispatch::Activity { token, .. } => (token.run, Work::Activity(token.scheduled)),
            Dispatch::Workflow { token, .. } => (token.run, Work::Workflow),
            Dispatch::Query { token, run, .. } => (*run, Work::Query(token.ticket)),
        };
        let entry = self.cache.peek(run)?;
        let queue = match dispatch {
            Dispatch::Activity { given, .. } => given.spec.queue.clone(),
            Dispatch::Workflow { .. } | Dispatch::Query { .. } => entry.run.spec.queue.clone(),
        };
        Some(self.offer_of(entry, queue, work))
    }

    /// An attempt that its worker speaks for is not lost.
    pub(super) fn attempt_alive(&mut self, token: &ActivityToken) {
        if let Some(attempt) = self.attempts.get_mut(&(token.run, token.scheduled)) {
            attempt.lost_at = None;
        }
    }

    /// Keeps track of who has which attempt. The worker that started it may have come back as another
    /// session since, so a start that is known is left as it is.
    pub(super) fn keep_attempt(
        &mut self,
        run: RunId,
        scheduled: EventNumber,
        started: Option<(SessionId, u32)>,
    ) {
        let Some((session, start)) = started else {
            self.attempts.remove(&(run, scheduled));
            return;
        };
        match self.attempts.get_mut(&(run, scheduled)) {
            Some(attempt) if attempt.start == 0 => attempt.start = start,
            Some(attempt) if attempt.start == start => {}
            _ => {
                let attempt = Attempt { session: Some(session), start, lost_at: None };
                self.attempts.insert((run, scheduled), attempt);
            }
        }
    }

    /// The worker of a started activity must present itself after a restart of the shard.
    fn await_presentation(&mut self, run: RunId, scheduled: EventNumber) {
        if self.attempts.contains_key(&(run, scheduled)) {
            return;
        }
        let lost_at = self.now().saturating_add(self.limits.session_grace);
        self.attempts
            .insert((run, scheduled), Attempt { session: None, start: 0, lost_at: Some(lost_at) });
        self.alarms.set(lost_at, Alarm::Grace(run, scheduled));
    }

    pub(super) fn session_lost(&mut self, session: &SessionId) {
        let turns: Vec<_> = self
            .cache
            .iter()
            .filter_map(|(run, entry)| Some((*run, entry.run.volatile.turn.as_ref()?)))
            .filter(|(_, turn)| turn.session == *session)
            .map(|(run, turn)| (run, turn.start))
            .collect();
        for (run, start) in turns {
            self.decide_quietly(run, Input::LoseTask { start });
        }
        self.take_back_queries(session);
        let lost_at = self.now().saturating_add(self.limits.session_grace);
        for ((run, scheduled), attempt) in &mut self.attempts {
            if attempt.session.as_ref() == Some(session) && attempt.lost_at.is_none() {
                attempt.lost_at = Some(lost_at);
                self.alarms.set(lost_at, Alarm::Grace(*run, *scheduled));
            }
        }
    }

    /// A worker that came back says that it still has the attempt.
    pub(super) fn present_attempt(
        &mut self,
        run: RunId,
        ticket: Ticket,
        token: &ActivityToken,
        session: SessionId,
    ) {
        let current = self.cache.peek(run).and_then(|entry| {
            let activity = entry.run.activities.get(&token.scheduled)?;
            let started = matches!(activity.phase, Phase::Started { .. });
            (started && !activity.closing && activity.starts == token.start)
                .then_some(activity.cancel_requested)
        });
        let Some(cancel_requested) = current else {
            let error = abide_core::run::Refusal::StaleAttempt.into();
            return self.reply(ticket, Err(error));
        };
        let attempt = Attempt { session: Some(session), start: token.start, lost_at: None };
        self.attempts.insert((run, token.scheduled), attempt);
        self.reply_after(run, ticket, Ok(CallReply::Alive { cancel_requested }));
    }

    pub(super) fn grace_over(&mut self, run: RunId, scheduled: EventNumber, at: Timestamp) {
        let lost = self.attempts.get(&(run, scheduled)).and_then(|attempt| attempt.lost_at);
        if lost == Some(at) {
            self.with_run(run, Todo::Grace(scheduled));
        }
    }

    pub(super) fn lose_attempt(&mut self, run: RunId, scheduled: EventNumber) {
        let presented = self
            .attempts
            .get(&(run, scheduled))
            .is_none_or(|attempt| attempt.lost_at.is_none_or(|at| at > self.moment.now));
        let start = self
            .cache
            .peek(run)
            .and_then(|entry| entry.run.activities.get(&scheduled))
            .map(|activity| activity.starts);
        let Some(start) = start.filter(|_| !presented) else { return };
        self.attempts.remove(&(run, scheduled));
        match self.decide(run, Input::LoseAttempt { scheduled, start }) {
            Err(error) if Self::busy(&error) => {
                let lost_at = Some(self.now());
                self.attempts.insert((run, scheduled), Attempt { session: None, start, lost_at });
                self.park_busy(run, Todo::Grace(scheduled));
            }
            Ok(_) | Err(_) => {}
        }
    }
}

impl Work {
    fn kind(self) -> WorkKind {
        match self {
            Self::Workflow | Self::Query(_) => WorkKind::Workflow,
            Self::Activity(_) => WorkKind::Activity,
        }
    }
}

impl From<TaskKind> for WorkKind {
    fn from(kind: TaskKind) -> Self {
        match kind {
            TaskKind::Workflow => Self::Workflow,
            TaskKind::Activity => Self::Activity,
        }
    }
}

impl Worker {
    fn of(turn: &Turn) -> Self {
        Self {
            session: turn.session.clone(),
            identity: turn.identity.clone(),
            build: turn.build.clone(),
        }
    }
}

impl QueueKey {
    fn holds(&self, task: &TaskKey) -> bool {
        task.namespace == self.namespace
            && task.queue == self.queue
            && WorkKind::from(task.kind) == self.kind
    }

    /// A key before all tasks of the queue.
    fn first_task(&self) -> TaskKey {
        TaskKey {
            namespace: self.namespace.clone(),
            queue: self.queue.clone(),
            kind: match self.kind {
                WorkKind::Workflow => TaskKind::Workflow,
                WorkKind::Activity => TaskKind::Activity,
            },
            run: RunId::MIN,
            scheduled: 0,
        }
    }
}
