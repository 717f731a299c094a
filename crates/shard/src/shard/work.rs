//! Work for workers: offers, and what happens when an offer is matched.

use std::collections::BTreeSet;

use abide_core::{
    attempt::ActivityToken,
    dispatch::{Dispatch, QueueKey, WorkKind, Worker},
    ids::{EventNumber, RunId, StartId},
    operation::CallError,
    report::TaskToken,
    run::{Decision, Input, Phase, Reply, StartActivity, StartTask, StartedTask, Task},
};

use super::{Shard, Todo};
use crate::{
    alarm::Alarm,
    cache::Entry,
    message::{Offer, Output, Work},
};

impl Shard {
    /// Offers the workflow task, now or when its delay is over.
    pub(super) fn offer_task(&mut self, run: RunId) {
        let Some(entry) = self.memory.cache.peek(run).filter(|entry| entry.run.task_pending())
        else {
            return;
        };
        let now = self.moment.now;
        if let Some(at) = entry.run.task_not_before(now).filter(|at| *at > now) {
            return self.memory.alarms.set(at, Alarm::TaskReady(run));
        }
        let offer = self.task_offer(entry);
        self.emit_after(run, Output::Offer(offer));
    }

    pub(super) fn task_offer(&self, entry: &Entry) -> Offer {
        let mut offer = self.offer_of(entry, entry.run.spec.queue.clone(), Work::Workflow);
        offer.except = match &entry.run.task {
            Task::Retry(retry) => retry.tried.clone(),
            Task::Idle | Task::Scheduled { .. } => BTreeSet::new(),
        };
        offer
    }

    pub(super) fn offer_activity(&mut self, run: RunId, scheduled: EventNumber) {
        let Some(entry) = self.memory.cache.peek(run) else { return };
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
                        self.record(run, [decision]);
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
            // The run is set aside, so its task is not offered again.
            Err(CallError::SetAside(_)) => return self.emit(Output::Unmatched(offer, worker)),
            Ok(_) | Err(_) => {
                self.emit(Output::Unmatched(offer, worker));
                return self.offer_task(run);
            }
        };
        self.starts += 1;
        let Some(entry) = self.memory.cache.get(run) else { return };
        if let Some((at, start)) = entry.set_turn_alarm(&self.limits) {
            self.memory.alarms.set(at, Alarm::Turn(run, start));
        }
        let in_memory = entry.affinity.as_ref() == Some(&worker.session);
        let dispatch = Dispatch::Workflow {
            token: TaskToken { workflow: entry.run.workflow.clone(), run, start },
            given,
            last_event: entry.run.last_event,
            recent: entry.recent(in_memory),
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

    /// Starts activities that the worker of a completed task takes at once, so that their start
    /// needs no commit of its own.
    pub(super) fn start_eager(
        &mut self,
        run: RunId,
        turn: &StartedTask,
        most: usize,
    ) -> Vec<(EventNumber, Decision)> {
        let worker = worker_of(turn);
        self.eager_candidates(run, most)
            .into_iter()
            .filter_map(|scheduled| {
                Some((scheduled, self.start_activity(run, scheduled, &worker).ok()?))
            })
            .collect()
    }

    fn eager_candidates(&self, run: RunId, most: usize) -> Vec<EventNumber> {
        let Some(entry) = self.memory.cache.peek(run) else { return Vec::new() };
        let run = &entry.run;
        run.activities
            .range(run.completed..)
            .filter(|(_, activity)| activity.spec.queue == run.spec.queue && activity.starts == 0)
            .map(|(scheduled, _)| *scheduled)
            .take(most)
            .collect()
    }

    /// Dispatches the activities that were started with the completion of the worker's task.
    pub(super) fn dispatch_eager(
        &mut self,
        run: RunId,
        turn: &StartedTask,
        started: &[EventNumber],
    ) {
        for scheduled in started {
            let reply = Reply::ActivityGiven { start: 1 };
            self.dispatch_activity(run, *scheduled, &reply, worker_of(turn), true);
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
        let Some(entry) = self.memory.cache.peek(run) else { return };
        let Some(given) = entry.run.activity_given(scheduled) else { return };
        let workflow = entry.run.workflow.clone();
        let token = ActivityToken { workflow, run, scheduled, start };
        let dispatch = Dispatch::Activity { token, given: Box::new(given), eager };
        self.emit_after(run, Output::Dispatch(worker, Box::new(dispatch)));
    }

    /// Whether the attempt has ended before it was sent to its worker: an outside caller completed
    /// it.
    pub(super) fn is_over(&self, dispatch: &Dispatch) -> bool {
        let Dispatch::Activity { token, .. } = dispatch else { return false };
        self.memory.cache.peek(token.run).is_some_and(|entry| {
            let activity = entry.run.activities.get(&token.scheduled);
            activity.is_none_or(|activity| activity.starts != token.start)
        })
    }

    /// The offer for which a worker gave credit, to return that credit when the work does not reach
    /// it; none if the work took no credit.
    pub(super) fn credit_of(&self, dispatch: &Dispatch) -> Option<Offer> {
        if matches!(dispatch, Dispatch::Activity { eager: true, .. }) {
            // Eager work takes a slot of the worker, not credit of the queue.
            return None;
        }
        let (run, work) = Work::of(dispatch);
        let entry = self.memory.cache.peek(run)?;
        let queue = match dispatch {
            Dispatch::Activity { given, .. } => given.spec.queue.clone(),
            Dispatch::Workflow { .. } | Dispatch::Query { .. } => entry.run.spec.queue.clone(),
        };
        Some(self.offer_of(entry, queue, work))
    }
}

impl Work {
    pub(super) fn kind(self) -> WorkKind {
        match self {
            Self::Workflow | Self::Query(_) => WorkKind::Workflow,
            Self::Activity(_) => WorkKind::Activity,
        }
    }
}

fn worker_of(turn: &StartedTask) -> Worker {
    Worker {
        session: turn.session.clone(),
        identity: turn.identity.clone(),
        build: turn.build.clone(),
    }
}
