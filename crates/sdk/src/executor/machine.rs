//! Workflow code as the replay machine drives it.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    rc::Rc,
    sync::Arc,
};

use abide_core::{
    command::{Command, SourcePlace},
    event::{Fact, RunStarted},
    failure::{Failure, FailureKind},
    ids::{RunId, TimerId, WorkflowKey},
    operation::QueryRequest,
    payload::Payloads,
    replay::{Code, Step, Turn},
    time::Timestamp,
    visible::visible,
};
use tracing::{Dispatch, Span, dispatcher, info_span};

use super::{
    board::{Board, LocalWork, Recorded, TurnInfo, refused},
    close::{close, encoded},
    fault, outcome,
    tasks::Tasks,
    waits::{ActivityOutcome, Resolution, Subject},
};
use crate::{
    context::Context,
    definition::Workflow,
    interceptor::{Headers, Interceptor, Interceptors, Message, MessageKind, RunInfo},
    registry::{TaskFault, WorkflowCode},
};

/// One run of workflow `W` in memory.
///
/// Each step is delivered to a handler or ends a wait; then the woken tasks are polled until none
/// can make progress. When the main task returns, the run closes, after the handlers that it waits
/// for. Dropping the machine issues no commands.
pub struct Machine<W: Workflow> {
    workflow: WorkflowKey,
    run: RunId,
    turn: TurnInfo,
    /// What history has for the turn, until code has started.
    recorded: Option<Recorded>,
    running: Option<Running<W>>,
    fault: Option<TaskFault>,
    /// Code has panicked or broken the rules, so it is not polled again.
    stopped: bool,
    interceptors: Interceptors,
    /// The number of the run among the retries of its workflow.
    attempt: u32,
}

/// A run whose code has started.
pub(super) struct Running<W> {
    pub(super) context: Context<W>,
    pub(super) board: Rc<Board>,
    pub(super) tasks: Tasks,
}

impl<W: Workflow> Machine<W> {
    /// The code of a run, before its first step.
    pub const fn new(workflow: WorkflowKey, run: RunId) -> Self {
        let turn = TurnInfo {
            now: Timestamp::EPOCH,
            happened: Timestamp::EPOCH,
            replaying: false,
            in_order: true,
            suggest_continue_as_new: false,
            history: (0, 0),
            messages: 0,
        };
        Self {
            workflow,
            run,
            turn,
            recorded: None,
            running: None,
            fault: None,
            stopped: false,
            interceptors: Interceptors::NONE,
            attempt: 1,
        }
    }

    fn begin_turn(&mut self, turn: Turn<'_>) {
        self.turn = TurnInfo {
            now: turn.now,
            happened: turn.now,
            replaying: turn.replaying,
            in_order: turn.in_order,
            suggest_continue_as_new: turn.started.suggest_continue_as_new,
            history: (turn.number, turn.started.history_bytes),
            messages: turn.inputs.iter().filter(|event| handled::<W>(&event.body.fact)).count(),
        };
        let recorded = Recorded {
            markers: turn.markers.iter().map(|marker| (*marker).clone()).collect(),
            accepted: turn.accepted.iter().map(|update| (*update).clone()).collect(),
        };
        match &self.running {
            Some(running) => running.board.set_turn(self.turn, recorded),
            None => self.recorded = Some(recorded),
        }
    }

    fn take_step(&mut self, step: Step<'_>) -> Result<(), TaskFault> {
        match step {
            Step::Start(started) => {
                let running = Running::new(started, self.turn, &self.interceptors)?;
                running.board.set_turn(self.turn, self.recorded.take().unwrap_or_default());
                self.running = Some(running);
            }
            step => {
                if let Some(running) = &mut self.running {
                    running.take_step(step)?;
                }
            }
        }
        self.running.as_mut().map_or(Ok(()), Running::run)
    }

    /// How code logs now: not at all on replay, else within the run's span.
    fn log_scope(&self) -> LogScope {
        if self.turn.replaying { LogScope::Silent } else { self.log_span() }
    }

    fn log_span(&self) -> LogScope {
        LogScope::Span(info_span!(
            "workflow",
            namespace = %visible(self.workflow.namespace.as_str()),
            workflow_id = %visible(self.workflow.workflow.as_str()),
            run_id = %self.run,
            workflow_type = W::NAME,
            attempt = self.attempt,
        ))
    }

    fn stop(&mut self, fault: TaskFault) {
        self.stopped = true;
        self.fault = Some(fault);
        if let Some(running) = &self.running {
            running.board.silence();
            running.board.take_commands();
        }
    }
}

impl<W: Workflow> Code for Machine<W> {
    fn advance(&mut self, at: Timestamp, step: Step<'_>) -> Vec<Command> {
        if self.stopped {
            return Vec::new();
        }
        if let Step::Turn(turn) = step {
            self.begin_turn(turn);
            return Vec::new();
        }
        if let Step::Start(started) = &step {
            self.attempt = started.attempt;
        }
        self.turn.happened = at;
        if let Some(running) = &self.running {
            running.board.set_happened(at);
        }
        let taken =
            self.log_scope().run(|| catch_unwind(AssertUnwindSafe(|| self.take_step(step))));
        let board = self.running.as_ref().map(|running| running.board.clone());
        let fault = match taken {
            Ok(Ok(())) => {
                return board.map(|board| board.take_commands()).unwrap_or_default();
            }
            Ok(Err(fault)) => fault,
            Err(panic) => {
                let handler = board.as_ref().and_then(|board| board.take_handling());
                let place = board.and_then(|board| board.take_place());
                fault::panicked(&*panic, handler.as_deref(), place)
            }
        };
        self.stop(fault);
        Vec::new()
    }

    fn place(&self) -> SourcePlace {
        SourcePlace(self.running.as_ref().and_then(|running| running.tasks.main_place()))
    }

    fn advice(&self) -> Option<String> {
        self.running.as_ref().and_then(|running| running.board.advice())
    }
}

impl<W: Workflow> WorkflowCode for Machine<W> {
    fn query(
        &mut self,
        request: &QueryRequest,
        moves: Vec<(TimerId, Timestamp)>,
    ) -> Result<Payloads, Failure> {
        let QueryRequest { name, input, header } = request;
        let Some(running) = &self.running else {
            return Err(failure("the run has not begun"));
        };
        let Some(query) = W::QUERIES.iter().find(|query| query.name() == *name) else {
            let names = W::QUERIES.iter().map(|query| query.name());
            return Err(unknown::<W>("query", name, names));
        };
        let message = running.board.intercepted(|| Message {
            kind: MessageKind::Query,
            name: name.clone(),
            id: String::new(),
            headers: Headers(header.clone()),
        });
        let answer = || {
            message.map_or(Ok(()), |message| running.board.arrives(&message)).map_err(refused)?;
            running.context.look(|state| query.answer(state, input))
        };
        let answer = || catch_unwind(AssertUnwindSafe(answer));
        running.board.show_moves(moves);
        let answered = self.log_span().run(|| running.board.outside_replay(answer));
        running.board.show_moves([]);
        answered.unwrap_or_else(|panic| {
            Err(failure(format!("query {name} panicked: {}", crate::panic::message(&*panic))))
        })
    }

    fn take_local_work(&mut self) -> LocalWork {
        let running = self.running.as_ref().filter(|running| !running.board.silent());
        running.map(|running| running.board.take_local_work()).unwrap_or_default()
    }

    fn take_fault(&mut self) -> Option<TaskFault> {
        self.fault.take()
    }

    fn intercept(&mut self, chain: Arc<[Arc<dyn Interceptor>]>) {
        self.interceptors = Interceptors::of(chain);
    }
}

impl<W: Workflow> Drop for Machine<W> {
    fn drop(&mut self) {
        if let Some(running) = &self.running {
            running.board.silence();
        }
    }
}

impl<W: Workflow> Running<W> {
    fn new(
        started: &RunStarted,
        turn: TurnInfo,
        interceptors: &Interceptors,
    ) -> Result<Self, TaskFault> {
        let input = W::ARGUMENTS.decode(&started.spec.input).map_err(|error| {
            fault::unreadable(&error.of(format!("input of workflow {}", W::NAME)))
        })?;
        let board = Rc::new(Board::new(started.clone(), turn, interceptors.clone()));
        let context = Context::new(board.clone(), W::init(&input));
        let mut tasks = Tasks::new();
        let (closing, main) = (context.clone(), W::run(context.clone(), input));
        if interceptors.is_empty() {
            tasks.add(Box::pin(async move {
                let result = main.await;
                close(&closing, result.is_ok(), || encoded::<W>(result)).await;
            }));
        } else {
            let main = Box::pin(async move { encoded::<W>(main.await) });
            let main = interceptors.around_run(&RunInfo::new(board.clone()), main);
            tasks.add(Box::pin(async move {
                let result = main.await;
                close(&closing, result.is_ok(), || result).await;
            }));
        }
        Ok(Self { context, board, tasks })
    }

    /// Polls the woken tasks, and checks that they were woken, and can be woken again, by recorded
    /// events only.
    fn run(&mut self) -> Result<(), TaskFault> {
        self.check_wakes()?;
        {
            let _own_wakes = self.tasks.enter();
            self.tasks.run(&self.board);
            // Conditions are checked when no task can make progress.
            while !self.board.silent() && self.board.satisfy_condition() {
                self.tasks.run(&self.board);
            }
        }
        self.check_wakes()?;
        if !self.board.silent() && !self.board.waits() && !Self::has_handlers() {
            let place = self.tasks.main_place();
            return Err(match self.board.waits_for_conditions() {
                true => fault::condition_for_ever(place),
                false => fault::waits_for_nothing(place),
            });
        }
        Ok(())
    }

    /// Whether handlers can run, and wake other code, although the run waits for nothing.
    fn has_handlers() -> bool {
        !W::UPDATES.is_empty() || W::SIGNALS.iter().any(|signal| !signal.kept())
    }

    fn check_wakes(&self) -> Result<(), TaskFault> {
        match self.tasks.foreign_wake() {
            Some((wake, place)) => Err(fault::foreign_wake(&wake, place)),
            None => Ok(()),
        }
    }

    fn take_step(&mut self, step: Step<'_>) -> Result<(), TaskFault> {
        let _own_wakes = self.tasks.enter();
        let board = &self.board;
        match step {
            Step::Turn(_) | Step::Start(_) => {}
            Step::Signal { number, signal } => {
                self.handle_signal(number, signal)?;
                if has_handler::<W>(&signal.name) {
                    self.board.message_shown();
                }
            }
            Step::Update { update, request } => {
                self.handle_update(update, request);
                self.board.message_shown();
            }
            Step::CancelRequested(request) => board.request_cancel(request),
            Step::TimerFired { timer, .. } => board.fire(timer),
            Step::TimerRescheduled { timer, fire_at } => board.timer_moved(timer, fire_at),
            Step::ActivityResolved { activity, execution, close } => {
                let outcome = || ActivityOutcome {
                    execution: execution.clone(),
                    result: outcome::of_activity(close),
                };
                let resolution = || Resolution::Activity(Box::new(outcome()));
                board.resolve(&Subject::Activity(activity), resolution);
            }
            Step::LocalResolved(marker) => board.local_resolved(marker),
            Step::ChildInitiated { child, initiated, .. } => {
                board.child_initiated(child, initiated);
            }
            Step::ChildStarted { child, .. } => {
                board.resolve(&Subject::ChildStart(child), || Resolution::ChildStarted);
            }
            Step::ChildResolved { child, close } => {
                board.update_child(child, |child| child.outcome = Some(outcome::of_child(close)));
                board.resolve(&Subject::ChildStart(child), || Resolution::ChildClosed);
                board.resolve(&Subject::ChildClose(child), || Resolution::ChildClosed);
            }
            Step::ExternalResolved { external, result } => {
                board.resolve(&Subject::External(external), || Resolution::External(result));
            }
        }
        Ok(())
    }
}

/// Whether the event is a message for a handler.
fn handled<W: Workflow>(fact: &Fact) -> bool {
    match fact {
        Fact::UpdateAdmitted(_) => true,
        Fact::SignalReceived(signal) => has_handler::<W>(&signal.name),
        _ => false,
    }
}

/// Whether a handler takes signals of this name.
fn has_handler<W: Workflow>(name: &str) -> bool {
    W::SIGNALS.iter().any(|signal| signal.name() == name && !signal.kept())
}

enum LogScope {
    Silent,
    Span(Span),
}

impl LogScope {
    fn run<T>(self, action: impl FnOnce() -> T) -> T {
        match self {
            Self::Silent => dispatcher::with_default(&Dispatch::none(), action),
            Self::Span(span) => span.in_scope(action),
        }
    }
}

/// The failure of a call to a name that the workflow does not have.
pub(super) fn unknown<'a, W: Workflow>(
    kind: &str,
    name: &str,
    known: impl Iterator<Item = &'a str>,
) -> Failure {
    let known: Vec<_> = known.collect();
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    failure(format!("workflow {} has no {kind} {name}; it has: {known}", W::NAME))
}

fn failure(message: impl Into<String>) -> Failure {
    Failure::server(FailureKind::Application, message)
}
