//! Workflow tasks on their thread: run from the machine in memory if it is up to date, else from
//! the whole log.

use std::fmt;

use abide_core::{
    command::{Ask, Command},
    event::{Blocked, Event, Fact, TaskFailureCause},
    failure::{Failure, FailureKind},
    ids::RunId,
    operation::RunTarget,
    replay::Completion,
    report::{Report, TaskCompletion, TaskToken},
};
use bytes::Bytes;

use super::{
    cached_run::{CachedRun, Trouble},
    encoded,
    history::{self, Log, UnreadLog},
    metrics::{TaskResult, count},
    notice,
    pause::{NextTask, Paused},
    shared::WorkerCore,
    thread::WorkflowThread,
    thread_message::{TaskLog, TaskMessage, ThreadMessage},
    unserved,
};

impl WorkflowThread {
    /// Runs a task and completes it, or first reads the log that it needs.
    pub(super) fn task(&mut self, mut task: TaskMessage) {
        // Decoding may take longer for an older task than for a newer one, which then waits here.
        let newer = |paused: &Paused| paused.start() > task.token.start;
        if self.paused.get(&task.token.run).is_some_and(newer) {
            return;
        }
        // A paused task of the run is stale once the engine has dispatched another.
        drop(self.paused.remove(&task.token.run));
        let prepared = match std::mem::replace(&mut task.log, TaskLog::Recent(Vec::new())) {
            TaskLog::Recent(rows) => self.prepare_from_rows(&mut task, rows),
            TaskLog::Decoded(Ok(events)) => self.prepare_from_memory(task.token.run, events),
            TaskLog::Decoded(Err(unread)) => return self.log_unread(task, &unread),
            TaskLog::Whole(Ok(log)) => self.prepare_from_log(log).map(Prepared::Replayed),
            TaskLog::Whole(Err(unread)) => return self.log_unread(task, &unread),
        };
        let (mut machine, kept) = match prepared {
            Ok(Prepared::Kept(machine)) => (machine, true),
            Ok(Prepared::Replayed(machine)) => (machine, false),
            Ok(Prepared::LogNeeded) => {
                count(&self.shared.metrics.cache().misses);
                return self.read_log(task);
            }
            Err(trouble) => return self.fail(task, trouble),
        };
        self.watched.runs(machine.workflow_type());
        match machine.turn(&task.token, &task.given) {
            Ok(completion) => {
                if kept {
                    count(&self.shared.metrics.cache().hits);
                }
                if let Some(waited) = machine.waited() {
                    let workflow = self.shared.metrics.workflow(Some(machine.workflow_type()));
                    workflow.schedule_to_start.record(waited);
                }
                self.rest(task, machine, completion);
            }
            // A stale or mismatching machine is replaced by a replay of the log.
            Err(Trouble::Stale | Trouble::Mismatch(_)) if kept => {
                count(&self.shared.metrics.cache().misses);
                self.read_log(task);
            }
            Err(trouble) => self.fail(task, trouble),
        }
    }

    /// Without codecs, rows come as they are; encoded ones are not shown to code.
    fn prepare_from_rows(
        &mut self,
        task: &mut TaskMessage,
        rows: Vec<Bytes>,
    ) -> Result<Prepared, Trouble> {
        let unreadable = |error: &dyn fmt::Display| Trouble::Unreadable(error.to_string());
        let mut events = encoded::events(rows).map_err(|error| unreadable(&error))?;
        for part in [&mut events, &mut task.given.tail] {
            self.shared.codecs.check_events(part).map_err(|error| unreadable(&error))?;
        }
        for (update, mut request) in std::mem::take(&mut task.given.updates) {
            match self.shared.codecs.check_plain(&mut request) {
                Ok(()) => task.given.updates.push((update, request)),
                Err(error) => task.unasked.push((update, encoded::unreadable(&error))),
            }
        }
        self.prepare_from_memory(task.token.run, events)
    }

    fn prepare_from_memory(&mut self, run: RunId, events: Vec<Event>) -> Result<Prepared, Trouble> {
        if let Some(mut machine) = self.cache.take(run) {
            return match machine.feed(events) {
                Ok(()) => Ok(Prepared::Kept(machine)),
                Err(Trouble::Fault(fault)) => Err(Trouble::Fault(fault)),
                Err(_) => Ok(Prepared::LogNeeded),
            };
        }
        if events.first().is_none_or(|event: &Event| event.number != 1) {
            return Ok(Prepared::LogNeeded);
        }
        self.replayed(events).map(Prepared::Replayed)
    }

    fn prepare_from_log(&mut self, log: Log) -> Result<CachedRun, Trouble> {
        let mut machine = self.replayed(log.events)?;
        machine.read_to(log.end);
        Ok(machine)
    }

    /// A machine that has replayed these events, the first ones of a run.
    pub(super) fn replayed(&mut self, events: Vec<Event>) -> Result<CachedRun, Trouble> {
        let mut machine = CachedRun::new(&self.shared.registry, &events)?;
        self.watched.runs(machine.workflow_type());
        // The first task of a run rebuilds nothing.
        if events.iter().any(|event| matches!(event.body.fact, Fact::TaskCompleted(_))) {
            count(&self.shared.metrics.workflow(Some(machine.workflow_type())).replays);
        }
        machine.feed(events)?;
        Ok(machine)
    }

    fn read_log(&self, task: TaskMessage) {
        let shared = std::sync::Arc::clone(&self.shared);
        self.read_beside(async move {
            let target =
                RunTarget { workflow: task.token.workflow.clone(), run: Some(task.token.run) };
            let log = history::read(&shared, &task.sender, target, 0, task.last_event).await;
            ThreadMessage::Task(Box::new(TaskMessage { log: TaskLog::Whole(log), ..task }))
        });
    }

    pub(super) fn complete(
        &mut self,
        task: TaskMessage,
        machine: CachedRun,
        completion: Completion,
        next: NextTask,
    ) {
        let TaskMessage { sender, token, slot, unasked, arrived, .. } = task;
        let workflow = self.shared.metrics.workflow(Some(machine.workflow_type()));
        workflow.task(TaskResult::Completed, arrived.elapsed());
        let Completion { commands, flags } = completion;
        let rejected = unasked
            .into_iter()
            .map(|(update, failure)| Ask::RejectUpdate { update, failure }.into());
        let commands: Vec<Command> = rejected.chain(commands).collect();
        unserved::warn_of(&self.shared, &token.workflow, &commands);
        let closes = commands.last().is_some_and(|command| command.ask.closes());
        let wanted = if closes { 0 } else { eager_wanted(&self.shared, &commands) };
        let eager_activities = self.shared.eager.promise(token.run, wanted);
        // The machine is cached before the engine can reject the turn. An evicted machine is
        // dropped last.
        let gone = if closes { Some(machine) } else { self.cache.keep(token.run, machine) };
        if !closes && gone.is_some() {
            count(&self.shared.metrics.cache().evictions);
        }
        let completion = TaskCompletion {
            commands,
            flags,
            force_next: next == NextTask::AtOnce,
            eager_activities,
            ..TaskCompletion::default()
        };
        self.send(sender, Report::CompleteTask(token, Box::new(completion)));
        drop(slot);
        drop(gone);
    }

    pub(super) fn fail(&mut self, task: TaskMessage, trouble: Trouble) {
        let TaskMessage { sender, token, slot, arrived, .. } = task;
        let result = match &trouble {
            Trouble::Mismatch(_) => TaskResult::Blocked,
            _ => TaskResult::Failed,
        };
        let workflow_type = self.watched.workflow_type();
        self.shared.metrics.workflow(workflow_type.as_deref()).task(result, arrived.elapsed());
        let call = failed(&self.shared, token, trouble);
        self.send(sender, call);
        drop(slot);
    }

    /// The log could not be read. If the stream has ended, the worker no longer owns the task.
    fn log_unread(&mut self, task: TaskMessage, unread: &UnreadLog) {
        let workflow = &task.token.workflow;
        if let UnreadLog::StreamEnded(error) = unread {
            notice::debug(workflow, format_args!("a task was abandoned with its stream: {error}"));
            return;
        }
        let trouble = Trouble::Unreadable(unread.to_string());
        self.fail(task, trouble);
    }
}

enum Prepared {
    /// The machine in memory was up to date.
    Kept(CachedRun),
    /// Replayed from the beginning of the run.
    Replayed(CachedRun),
    /// The machine in memory is missing or stale.
    LogNeeded,
}

/// How many activities of the task this worker would take eagerly: all on its own queue, if all of
/// them are registered. The engine picks them in order, so an unknown one excludes the others.
fn eager_wanted(shared: &WorkerCore, commands: &[Command]) -> usize {
    let mut wanted = 0;
    for command in commands {
        if let Ask::ScheduleActivity(spec) = &command.ask
            && spec.queue == shared.queue
        {
            if !shared.registry.has_activity(&spec.activity_type) {
                return 0;
            }
            wanted += 1;
        }
    }
    wanted
}

fn failed(shared: &WorkerCore, token: TaskToken, trouble: Trouble) -> Report {
    let workflow = &token.workflow;
    let message = trouble.message(shared);
    notice::warn(workflow, format_args!("a task failed and will be retried: {message}"));
    let (cause, failure, blocked) = match trouble {
        Trouble::Mismatch(mismatch) => {
            let failure = Failure::server(FailureKind::Application, mismatch.recorded_text());
            let blocked = Some(Blocked::from(&*mismatch));
            (TaskFailureCause::ReplayBlocked, failure, blocked)
        }
        Trouble::Fault(fault) => (fault.cause, fault.failure, None),
        _ => {
            let failure = Failure::server(FailureKind::Application, message);
            (TaskFailureCause::WorkerFailure, failure, None)
        }
    };
    Report::FailTask { token, cause, failure, blocked }
}
