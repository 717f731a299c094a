//! Runs a program as workflow code: takes steps, wakes the steps that wait for them, and collects
//! commands.

use crate::{
    OnCancel, Program,
    context::{Context, Outcome, payload, text},
    live::Live,
};
use abide_core::{
    command::{Ask, Command},
    event::{self, DeliveryFailure, Origin, UpdateRequest},
    failure::{Failure, FailureKind},
    ids::UpdateId,
    replay::{ActivityClose, ChildClose, Code, Step, Turn},
    time::Timestamp,
};

#[derive(Clone, Debug)]
pub struct Interpreter {
    program: Program,
    live: Live,
    context: Context,
}

impl Interpreter {
    pub(super) fn new(program: Program) -> Self {
        Self { program, live: Live::New, context: Context::new() }
    }

    /// Outcomes of the program's steps so far, in the order in which they ended.
    pub fn trace(&self) -> &[String] {
        &self.context.trace
    }

    /// Whether the program has closed its run.
    pub const fn closed(&self) -> bool {
        self.context.closed
    }

    fn run(&mut self) {
        if self.context.closed {
            return;
        }
        if self.live.poll(&self.program.body, &mut self.context) {
            let result = payload(&self.context.trace.join(";"));
            self.context.ask(Ask::CompleteRun(vec![result]));
        }
        self.complete_updates();
    }

    fn update(&mut self, update: UpdateId, request: &UpdateRequest) {
        if request.name == "reject" {
            let failure = Failure::server(FailureKind::Application, "rejected");
            return self.context.ask(Ask::RejectUpdate { update, failure });
        }
        let request = request.clone();
        self.context.ask(Ask::AcceptUpdate { update: update.clone(), request });
        match self.program.update_delay {
            Some(delay) => {
                let timer = self.context.start_timer(Some(delay), Origin::CreateTimer);
                self.context.updates.push((update, timer));
            }
            None => complete_update(&mut self.context, update),
        }
    }

    fn complete_updates(&mut self) {
        let context = &mut self.context;
        for (update, timer) in std::mem::take(&mut context.updates) {
            if context.fired.remove(&timer) {
                complete_update(context, update);
            } else {
                context.updates.push((update, timer));
            }
        }
    }

    fn turn(&mut self, turn: Turn<'_>) {
        self.context.now = turn.now;
        self.context.replaying = turn.replaying;
        self.context.markers = turn.markers.iter().map(|marker| (*marker).clone()).collect();
    }

    fn start(&mut self, started: &event::RunStarted) {
        self.context.workflow.namespace = started.namespace.clone();
        self.context.workflow.workflow = started.workflow.clone();
        self.context.spec = started.spec.clone();
        self.context.ordinal = started.ordinal;
    }
}

impl Code for Interpreter {
    fn advance(&mut self, _at: Timestamp, step: Step<'_>) -> Vec<Command> {
        match step {
            Step::Turn(turn) => {
                self.turn(turn);
                return Vec::new();
            }
            Step::Start(started) => self.start(started),
            Step::Signal { number, signal } => {
                *self.context.received.entry(signal.name.clone()).or_default() += 1;
                let unread = (number, signal.name.clone(), text(&signal.input));
                self.context.signals.push_back(unread);
            }
            Step::CancelRequested(_) => match self.program.on_cancel {
                OnCancel::Close => self.context.ask(Ask::CancelRun(Vec::new())),
                OnCancel::Ignore => self.context.note("cancel ignored"),
            },
            Step::ActivityResolved { activity, execution, close } => {
                self.context.activities.insert(activity, (execution, activity_outcome(close)));
            }
            Step::TimerFired { timer, .. } => {
                self.context.fired.insert(timer);
            }
            Step::TimerRescheduled { timer, fire_at } => {
                self.context.note(format!("{timer} moved to {fire_at}"));
            }
            Step::ChildInitiated { .. } | Step::ChildStarted { .. } | Step::LocalResolved(_) => {}
            Step::ChildResolved { child, close } => {
                self.context.children.insert(child, child_outcome(close));
            }
            Step::ExternalResolved { external, result } => {
                let outcome = result.map(|()| "delivered".into()).map_err(undelivered);
                self.context.externals.insert(external, outcome);
            }
            Step::Update { update, request } => self.update(update, request),
        }
        self.run();
        std::mem::take(&mut self.context.commands)
    }
}

fn complete_update(context: &mut Context, update: UpdateId) {
    let outcome = event::UpdateOutcome::Completed(vec![payload(&context.trace.join(";"))]);
    context.ask(Ask::CompleteUpdate { update, outcome });
}

fn activity_outcome(close: ActivityClose<'_>) -> Outcome {
    match close {
        ActivityClose::Completed(completed) => Ok(text(&completed.result)),
        ActivityClose::Failed(failed) => Err(Box::new(failed.failure.clone())),
        ActivityClose::TimedOut(timed_out) => Err(Box::new(timed_out.failure.clone())),
        ActivityClose::Cancelled(_) => Err(failure(FailureKind::Cancelled, "cancelled")),
    }
}

fn child_outcome(close: ChildClose<'_>) -> Outcome {
    match close {
        ChildClose::StartFailed(cause) => Err(undelivered(cause)),
        ChildClose::Completed(completed) => Ok(text(&completed.result)),
        ChildClose::Failed(failed) => Err(Box::new(failed.failure.clone())),
        ChildClose::TimedOut(_) => Err(failure(FailureKind::Child, "timed out")),
        ChildClose::Cancelled(_) => Err(failure(FailureKind::Cancelled, "cancelled")),
        ChildClose::Terminated(_) => Err(failure(FailureKind::Terminated, "terminated")),
    }
}

fn undelivered(cause: DeliveryFailure) -> Box<Failure> {
    let failure = Failure::server(FailureKind::Server, format!("{cause:?}"));
    Box::new(Failure { non_retryable: true, ..failure })
}

fn failure(kind: FailureKind, message: &str) -> Box<Failure> {
    Box::new(Failure::server(kind, message))
}
