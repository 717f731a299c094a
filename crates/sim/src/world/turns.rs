//! Workflow and query tasks: a worker replays the run's history, from its cache or from the log,
//! runs the open task and replies; in time, late, twice or never.

use abide_core::{
    codec,
    event::{Blocked, Event as Fact, TaskFailureCause, UpdateAdmitted},
    failure::{Failure, FailureKind},
    ids::{EventNumber, RunId, StartId},
    operation::CallError,
    replay::{Completion, Error},
    report::{QueryToken, Report, ReportAnswer, TaskCompletion, TaskToken},
    run::GivenTask,
};
use bytes::Bytes;

use super::{
    Event, World,
    credits::workflow_queue,
    workers::{Call, WorkerEvent},
};
use crate::{
    checks::{Check, Checked, Violation},
    code::{Machine, Trouble},
    programs::Build,
    schedule::{MILLIS, SECOND},
    settings::delay,
};

const CACHE_MAX: usize = 3;

pub(crate) enum TurnEnd {
    /// To a workflow task.
    Task(Box<Report>, RunId, StartId),
    /// To a query.
    Query(Box<Report>),
}

impl World {
    /// A workflow task arrives at a worker.
    pub(super) fn take_turn(
        &mut self,
        index: usize,
        token: TaskToken,
        given: &GivenTask,
        last_event: EventNumber,
        recent: Option<Vec<Bytes>>,
    ) -> Checked {
        self.trace.note(Some(token.run), || {
            let kept = recent.is_some();
            let tail: Vec<_> = given.tail.iter().map(|event| event.number).collect();
            let on = format!("on event {last_event} after task {}", given.previous);
            format!("{:>12} worker {index} has a task {on}, {tail:?}, in memory {kept}", self.now)
        });
        let kept = self.replayed_in_memory(index, &token, given, recent);
        let turn = match kept {
            Some(machine) => Ok(machine),
            None => self
                .replayed_from_log(index, token.run, last_event)
                .and_then(|mut machine| machine.feed(given.tail.iter().cloned()).map(|()| machine)),
        };
        let updates: Vec<_> = given
            .updates
            .iter()
            .map(|(update, request)| UpdateAdmitted {
                update: update.clone(),
                request: request.clone(),
            })
            .collect();
        let turn = turn.and_then(|mut machine| {
            let completion = machine.turn(&updates, |running| self.end_local(running))?;
            Ok((machine, completion))
        });
        let request = match turn {
            Ok(_) if self.declines(index, given) => could_not_run(&token),
            Ok((machine, completion)) => {
                let goes_on = machine.runs_locally();
                self.keep_turn(index, &token, machine);
                self.completion(&token, completion, goes_on)
            }
            Err(error) => self.blocked(index, &token, &error)?,
        };
        self.plan_answer(index, token, request);
        Ok(())
    }

    /// The run from the worker's cache, if that is valid for the task.
    fn replayed_in_memory(
        &mut self,
        index: usize,
        token: &TaskToken,
        given: &GivenTask,
        recent: Option<Vec<Bytes>>,
    ) -> Option<Machine> {
        let forgets = self.trouble(self.settings.odds.cache_lost);
        let worker = self.workers.get_mut(index)?;
        if forgets {
            worker.cache.clear();
        }
        let good = |(run, machine): &(RunId, Machine)| {
            *run == token.run && given.tail.first().is_some_and(|own| machine.seen() < own.number)
        };
        let position = worker.cache.iter().position(good);
        let kept = position.map(|position| worker.cache.remove(position).1);
        let mut events = Vec::new();
        for row in recent? {
            events.extend(codec::decode_events(row).ok()?);
        }
        let whole = events.first().is_some_and(|event| event.number == 1);
        let mut machine = match kept {
            Some(machine) => machine,
            None if whole => self.unused_machine(index, token.run).ok()?,
            None => return None,
        };
        machine.feed(events).ok()?;
        machine.feed(given.tail.iter().cloned()).ok()?;
        (machine.acknowledged() == given.previous).then_some(machine)
    }

    /// A machine that has replayed the log up to an event.
    fn replayed_from_log(
        &self,
        index: usize,
        run: RunId,
        last_event: EventNumber,
    ) -> Result<Machine, Trouble> {
        let mut machine = self.unused_machine(index, run)?;
        let events = self.ledger.stories.get(&run).map_or(&[][..], |story| &story.events);
        let seen = |event: &&Fact| event.number <= last_event;
        machine.feed(events.iter().take_while(seen).cloned())?;
        Ok(machine)
    }

    /// A machine at the start of a run.
    fn unused_machine(&self, index: usize, run: RunId) -> Result<Machine, Trouble> {
        let build = self.workers.get(index).map_or(Build::Right, |worker| worker.build);
        let missing = || Error::Gap { expected: 1, found: 0 };
        let story = self.ledger.stories.get(&run).ok_or_else(missing)?;
        let workflow_type = &story.run.spec.workflow_type;
        let machine = self.catalog.machine(build, workflow_type, &story.run.workflow, run);
        Ok(machine.ok_or_else(missing)?)
    }

    /// Wrong code would start a run in a way that right code cannot continue; and code may panic.
    fn declines(&mut self, index: usize, given: &GivenTask) -> bool {
        let wrong = self.workers.get(index).is_some_and(|worker| worker.build == Build::Wrong);
        (wrong && given.previous == 0) || self.trouble(self.settings.odds.worker_fails)
    }

    fn keep_turn(&mut self, index: usize, token: &TaskToken, machine: Machine) {
        if let Some(worker) = self.workers.get_mut(index) {
            worker.turns.insert((token.run, token.start), machine);
        }
    }

    fn completion(&mut self, token: &TaskToken, completion: Completion, goes_on: bool) -> Report {
        let completion = self.saboteur.completion(completion);
        let completion = TaskCompletion {
            commands: completion.commands,
            flags: completion.flags,
            force_next: goes_on || self.rng.chance(20),
            eager_activities: self.rng.index(3),
            ..TaskCompletion::default()
        };
        Report::CompleteTask(token.clone(), Box::new(completion))
    }

    /// Code does not match history. The right code always does.
    fn blocked(
        &mut self,
        index: usize,
        token: &TaskToken,
        error: &Trouble,
    ) -> Result<Report, Violation> {
        let right = self.workers.get(index).is_some_and(|worker| worker.build == Build::Right);
        let Trouble::Replay(Error::Mismatch(mismatch)) = error else {
            return Err(Violation::of(Check::Replays, token.run, error.to_string()));
        };
        if right {
            let what = format!("right code is blocked: {error}");
            return Err(Violation::of(Check::Replays, token.run, what));
        }
        self.counts.faults += 1;
        Ok(Report::FailTask {
            token: token.clone(),
            cause: TaskFailureCause::ReplayBlocked,
            failure: Failure::server(FailureKind::Application, "does not fit"),
            blocked: Some(Blocked::from(&**mismatch)),
        })
    }

    fn plan_answer(&mut self, index: usize, token: TaskToken, request: Report) {
        let odds = &self.settings.odds;
        let (hangs, late, twice) = (odds.worker_hangs, odds.worker_late, odds.worker_twice);
        let Some(session) = self.workers.get(index).map(|worker| worker.session_number) else {
            return;
        };
        let give_up = WorkerEvent::GiveUp(workflow_queue(&token.workflow));
        if self.trouble(hangs) {
            return self.plan_in(8 * SECOND, Event::Worker(index, session, give_up));
        }
        let think = if !self.calm && self.rng.chance(250) { 400 * MILLIS } else { 15 * MILLIS };
        let mut later = delay(&mut self.rng, think, false);
        if self.trouble(late) {
            later += 4 * SECOND;
        }
        let answer = |request: Report| TurnEnd::Task(Box::new(request), token.run, token.start);
        if self.trouble(twice) {
            let again = WorkerEvent::Answer(Box::new(answer(request.clone())));
            let behind = self.rng.below(20 * MILLIS);
            self.plan_in(later + behind, Event::Worker(index, session, again));
        }
        let event = WorkerEvent::Answer(Box::new(answer(request)));
        self.plan_in(later, Event::Worker(index, session, event));
        self.plan_in(later, Event::Worker(index, session, give_up));
    }

    /// A worker sends its reply, if it has a stream.
    pub(super) fn answer(&mut self, index: usize, answer: TurnEnd) -> Checked {
        if self.workers.get(index).is_none_or(|worker| !worker.connected()) {
            return Ok(());
        }
        match answer {
            TurnEnd::Task(request, run, start) => {
                let call = match &*request {
                    Report::CompleteTask(..) => Call::Turn(run, start),
                    _ => Call::Other,
                };
                self.worker_asks(index, *request, call);
            }
            TurnEnd::Query(request) => self.worker_asks(index, *request, Call::Other),
        }
        Ok(())
    }

    /// The server has accepted a turn, or has not: the worker keeps the run in its cache, or drops
    /// it.
    pub(super) fn turn_ended(
        &mut self,
        index: usize,
        run: RunId,
        start: StartId,
        result: &Result<ReportAnswer, CallError>,
    ) -> Checked {
        let Some(worker) = self.workers.get_mut(index) else { return Ok(()) };
        let Some(machine) = worker.turns.remove(&(run, start)) else { return Ok(()) };
        let Ok(ReportAnswer::TaskTaken { completed }) = result else { return Ok(()) };
        worker.cache.retain(|(kept, _)| *kept != run);
        worker.cache.push((run, machine));
        if worker.cache.len() > CACHE_MAX {
            worker.cache.remove(0);
        }
        self.task_is_committed(run, *completed)
    }

    /// A worker learns that its task was accepted only when that is durable.
    fn task_is_committed(&self, run: RunId, completed: EventNumber) -> Checked {
        let story = self.ledger.stories.get(&run);
        if story.is_some_and(|story| story.run.completed >= completed) {
            return Ok(());
        }
        let what = format!("the task completed by event {completed} is not committed");
        Err(Violation::of(Check::AckedIsDurable, run, what))
    }

    /// A query arrives at a worker, which answers from the log.
    pub(super) fn take_query(
        &mut self,
        index: usize,
        token: QueryToken,
        last_event: EventNumber,
    ) -> Checked {
        let run = token.run;
        let replayed = self.replayed_from_log(index, run, last_event).and_then(|mut machine| {
            machine.settle()?;
            Ok(machine)
        });
        if let (Err(error), Some(worker)) = (&replayed, self.workers.get(index))
            && worker.build == Build::Right
        {
            let what = format!("right code cannot answer a query: {error}");
            return Err(Violation::of(Check::Replays, run, what));
        }
        let answer = match replayed {
            Ok(mut machine) => machine.trace(),
            Err(error) => Err(Failure::server(FailureKind::Application, error.to_string())),
        };
        let Some(session) = self.workers.get(index).map(|worker| worker.session_number) else {
            return Ok(());
        };
        let later = delay(&mut self.rng, 10 * MILLIS, false);
        let queue = workflow_queue(&token.workflow);
        let request = Box::new(Report::AnswerQuery(token, answer));
        let event = WorkerEvent::Answer(Box::new(TurnEnd::Query(request)));
        self.plan_in(later, Event::Worker(index, session, event));
        let give_up = WorkerEvent::GiveUp(queue);
        self.plan_in(later, Event::Worker(index, session, give_up));
        Ok(())
    }
}

fn could_not_run(token: &TaskToken) -> Report {
    Report::FailTask {
        token: token.clone(),
        cause: TaskFailureCause::WorkerFailure,
        failure: Failure::server(FailureKind::Application, "panicked"),
        blocked: None,
    }
}
