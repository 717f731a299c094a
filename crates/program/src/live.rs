//! Running steps of a program: each knows what it waits for, continues when it is polled, and can
//! be cancelled.

use std::time::Duration;

use crate::{
    Node,
    call::{Attempt, AttemptState, ends},
    context::{Context, payload},
};
use abide_core::{
    command::{Ask, ContinueAsNew},
    event::{CancelMode, Condition, Origin, WaitSpec},
    failure::{Failure, FailureKind},
    ids::{ActivityId, ExecutionId, TimerId, WaitId, WorkflowId},
    payload::PayloadMap,
};

/// State of a step: not begun, running or done.
#[derive(Clone, Debug)]
pub(super) enum Live {
    New,
    Done,
    Sequence { index: usize, current: Box<Live> },
    Branches(Vec<Live>),
    Sleep(TimerId),
    Signal(TimerId),
    Until { wait: WaitId, timer: Option<TimerId> },
    Activity(Attempt<ActivityId, Option<ExecutionId>>),
    Child(Attempt<u64, WorkflowId>),
    External(u64),
}

impl Live {
    /// Continues as far as possible; `true` when the step is done.
    pub(super) fn poll(&mut self, node: &Node, context: &mut Context) -> bool {
        if context.closed {
            return false;
        }
        if matches!(self, Self::New) {
            *self = begin(node, context);
        }
        let over = self.goes_on(node, context);
        if over {
            *self = Self::Done;
        }
        over
    }

    fn goes_on(&mut self, node: &Node, context: &mut Context) -> bool {
        match (self, node) {
            (Self::Done, _) => !context.closed,
            (Self::Sequence { index, current }, Node::Sequence(steps)) => {
                while let Some(step) = steps.get(*index) {
                    if !current.poll(step, context) {
                        return false;
                    }
                    *index += 1;
                    **current = Self::New;
                }
                true
            }
            (Self::Branches(branches), Node::Join(steps)) => {
                let mut over = true;
                for (branch, step) in branches.iter_mut().zip(steps) {
                    over &= branch.poll(step, context);
                }
                over
            }
            (Self::Branches(branches), Node::Select(steps)) => select(branches, steps, context),
            (Self::Sleep(timer), _) => {
                let fired = context.fired.remove(timer);
                if fired {
                    context.sleeping.retain(|sleeping| sleeping != timer);
                    context.note("slept");
                }
                fired
            }
            (Self::Signal(timer), Node::WaitSignal { name, .. }) => {
                if let Some(argument) = context.take_signal(name) {
                    context.cancel_timer(timer);
                    context.note(format!("{name}={argument}"));
                    return true;
                }
                let fired = context.fired.remove(timer);
                if fired {
                    context.note(format!("{name} timed out"));
                }
                fired
            }
            (Self::Until { wait, timer }, Node::WaitUntil { signal, at_least, .. }) => {
                until(wait, timer.as_ref(), holds(signal, *at_least, context), context)
            }
            (Self::Activity(attempt), Node::Activity(activity)) => attempt.poll(activity, context),
            (Self::Child(attempt), Node::Child(child)) => attempt.poll(child, context),
            (Self::External(external), _) => {
                let outcome = context.externals.remove(external);
                outcome.is_some_and(|outcome| ends(context, "external", outcome))
            }
            _ => false,
        }
    }

    fn cancel(self, context: &mut Context) {
        match self {
            Self::New | Self::Done | Self::Child(_) | Self::External(_) => {}
            Self::Sequence { current, .. } => current.cancel(context),
            Self::Branches(branches) => {
                branches.into_iter().for_each(|branch| branch.cancel(context));
            }
            Self::Sleep(timer) => {
                context.sleeping.retain(|sleeping| *sleeping != timer);
                context.cancel_timer(&timer);
            }
            Self::Signal(timer) => context.cancel_timer(&timer),
            Self::Until { wait, timer } => {
                timer.iter().for_each(|timer| context.cancel_timer(timer));
                context.ask(Ask::CancelWait(wait));
            }
            Self::Activity(Attempt { state, .. }) => match state {
                AttemptState::Running(activity) => context.ask(Ask::CancelActivity(activity)),
                AttemptState::Waiting(timer) => context.cancel_timer(&timer),
            },
        }
    }
}

fn begin(node: &Node, context: &mut Context) -> Live {
    match node {
        Node::Sequence(_) => Live::Sequence { index: 0, current: Box::new(Live::New) },
        Node::Join(steps) | Node::Select(steps) => {
            Live::Branches(steps.iter().map(|_| Live::New).collect())
        }
        Node::Sleep(delay) => {
            let timer = context.start_timer(Some(*delay), Origin::CreateTimer);
            context.sleeping.push(timer.clone());
            Live::Sleep(timer)
        }
        Node::WaitSignal { name, timeout } => {
            if let Some(argument) = context.take_signal(name) {
                context.note(format!("{name}={argument}"));
                return Live::Done;
            }
            if timeout.is_some_and(|timeout| timeout.is_zero()) {
                context.note(format!("{name} timed out"));
                return Live::Done;
            }
            Live::Signal(
                context.start_timer(*timeout, Origin::ExternalEvent { name: name.clone() }),
            )
        }
        Node::WaitUntil { condition, signal, at_least, timeout } => {
            let holds = holds(signal, *at_least, context);
            let deadline = *timeout;
            if holds || deadline.is_some_and(|deadline| deadline.is_zero()) {
                context.note(if holds { "held" } else { "did not hold" });
                return Live::Done;
            }
            open_wait(condition, deadline, context)
        }
        Node::Activity(activity) => {
            let state = AttemptState::Running(activity.schedule(None, 0, context));
            Live::Activity(Attempt { number: 1, first: None, state })
        }
        Node::Child(child) => {
            let number = context.count("child");
            let derived = || format!("{}/child-{number}", context.workflow.workflow);
            let first = WorkflowId::from(child.workflow.clone().unwrap_or_else(derived));
            child.start(first.clone(), None, context);
            Live::Child(Attempt { number: 1, first, state: AttemptState::Running(number) })
        }
        Node::SignalExternal { .. }
        | Node::CancelExternal { .. }
        | Node::SideEffect
        | Node::Version { .. }
        | Node::Reschedule(_)
        | Node::Complete
        | Node::Fail(_)
        | Node::ContinueAsNew { .. } => begin_single(node, context),
    }
}

/// Begins a step that completes immediately, closes the run, or waits for another workflow's
/// answer.
#[expect(clippy::wildcard_enum_match_arm, reason = "all others begin elsewhere")]
fn begin_single(node: &Node, context: &mut Context) -> Live {
    match node {
        Node::SignalExternal { workflow, name } => {
            let (target, name) = (context.target(workflow), name.clone());
            let (input, header) = (Vec::new(), PayloadMap::new());
            context.ask(Ask::SignalExternal { target, name, input, header });
            return Live::External(context.count("external"));
        }
        Node::CancelExternal { workflow } => {
            let target = context.target(workflow);
            let reason = String::from("asked by program");
            context.ask(Ask::CancelExternal { target, mode: CancelMode::Request, reason });
            return Live::External(context.count("external"));
        }
        Node::SideEffect => {
            let value = context.side_effect();
            context.note(format!("side effect {value}"));
        }
        Node::Version { change } => {
            let follows = context.version(change);
            context.note(format!("{change} {}", if follows { "new" } else { "old" }));
        }
        Node::Reschedule(delay) => {
            if let Some(timer) = context.sleeping.first().cloned() {
                let fire_at = context.now.saturating_add(*delay);
                context.ask(Ask::RescheduleTimer { timer, fire_at });
            }
        }
        Node::Complete => {
            let result = payload(&context.trace.join(";"));
            context.ask(Ask::CompleteRun(vec![result]));
        }
        Node::Fail(message) => {
            let failure = Failure::server(FailureKind::Application, message.clone());
            context.ask(Ask::FailRun(failure));
        }
        Node::ContinueAsNew { runs } if context.ordinal < *runs => {
            let signals = context.signals.iter().map(|(number, ..)| *number).collect();
            let updates = context.updates.iter().map(|(update, _)| update.clone()).collect();
            let next = ContinueAsNew { spec: context.spec.clone(), signals, updates };
            context.ask(Ask::ContinueAsNew(Box::new(next)));
        }
        _ => {}
    }
    Live::Done
}

fn open_wait(condition: &Condition, timeout: Option<Duration>, context: &mut Context) -> Live {
    let wait = WaitId::from(context.next_id("wait"));
    let timer = timeout.map(|_| TimerId::from(context.next_id("timer")));
    context.ask(Ask::OpenWait(WaitSpec {
        wait: wait.clone(),
        condition: condition.clone(),
        timer: timer.clone(),
        details: None,
    }));
    if let Some(timer) = &timer {
        let Condition { key, fingerprint } = condition.clone();
        context.start_named_timer(timer.clone(), timeout, Origin::Condition { key, fingerprint });
    }
    Live::Until { wait, timer }
}

fn holds(signal: &str, at_least: u64, context: &Context) -> bool {
    context.received.get(signal).copied().unwrap_or_default() >= at_least
}

fn until(wait: &WaitId, timer: Option<&TimerId>, holds: bool, context: &mut Context) -> bool {
    if holds {
        timer.into_iter().for_each(|timer| context.cancel_timer(timer));
        context.ask(Ask::SatisfyWait(wait.clone()));
        context.note("held");
        return true;
    }
    let fired = timer.is_some_and(|timer| context.fired.remove(timer));
    if fired {
        context.ask(Ask::TimeOutWait(wait.clone()));
        context.note("did not hold");
    }
    fired
}

/// Polls in order until one step is done, then cancels the others.
fn select(branches: &mut Vec<Live>, steps: &[Node], context: &mut Context) -> bool {
    let mut polled = branches.iter_mut().zip(steps);
    let over = polled.any(|(branch, step)| branch.poll(step, context)) || steps.is_empty();
    if over {
        branches.drain(..).for_each(|branch| branch.cancel(context));
    }
    over
}
