//! Optional timers that history lacks. Code that records waits for a signal without deadline may
//! meet a history of code that did not: such a timer floats until history has it, the wait ends, or
//! a task is reached that records such waits.

use std::collections::VecDeque;

use crate::{
    command::{Ask, Command},
    event::{Origin, TimerSpec},
    ids::TimerId,
};

/// Floating timers, oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Floats {
    timers: Vec<Float>,
}

#[derive(Clone, Debug)]
struct Float {
    timer: TimerId,
    name: String,
    command: Command,
}

impl Floats {
    /// Takes the next command if history may lack it: the start of an optional timer floats, and
    /// the cancel of a floating timer undoes it.
    pub(super) fn set_aside(&mut self, commands: &mut VecDeque<Command>) -> bool {
        let Some(next) = commands.front() else { return false };
        if matches!(&next.ask, Ask::CancelTimer(timer) if self.cancel(timer)) {
            commands.pop_front();
            return true;
        }
        let Some((timer, name)) = optional(&next.ask) else { return false };
        let (timer, name) = (timer.clone(), name.to_owned());
        self.timers.extend(commands.pop_front().map(|command| Float { timer, name, command }));
        true
    }

    /// Removes a timer that code no longer needs; `false` if it does not float.
    pub(super) fn cancel(&mut self, timer: &TimerId) -> bool {
        match self.timers.iter().position(|float| float.timer == *timer) {
            Some(index) => {
                self.timers.remove(index);
                true
            }
            None => false,
        }
    }

    /// The floating timer with exactly this id.
    pub(super) fn take_same(&mut self, recorded: &TimerSpec) -> Option<Command> {
        let name = optional_name(recorded)?;
        self.take(|float| float.timer == recorded.timer && float.name == name)
    }

    /// The first floating timer that waits for the signal of `recorded`, under any id.
    pub(super) fn take_named(&mut self, recorded: &TimerSpec) -> Option<Command> {
        let name = optional_name(recorded)?;
        self.take(|float| float.name == name)
    }

    /// Puts the timers that still wait in front of `commands`, to start them now. A timer that
    /// `commands` cancel is dropped together with its cancel, because history never had it. When
    /// the run closes, no wait is left.
    pub(super) fn land(&mut self, commands: Vec<Command>) -> Vec<Command> {
        let mut own = Vec::with_capacity(commands.len());
        for command in commands {
            if !matches!(&command.ask, Ask::CancelTimer(timer) if self.cancel(timer)) {
                own.push(command);
            }
        }
        if own.iter().any(|command| command.ask.closes()) {
            self.timers.clear();
        }
        let mut landed: Vec<_> = self.timers.drain(..).map(|float| float.command).collect();
        landed.append(&mut own);
        landed
    }

    fn take(&mut self, wanted: impl FnMut(&Float) -> bool) -> Option<Command> {
        let index = self.timers.iter().position(wanted)?;
        Some(self.timers.remove(index).command)
    }
}

/// Timer and signal name of a command that starts an optional timer.
fn optional(ask: &Ask) -> Option<(&TimerId, &str)> {
    if let Ask::StartTimer(spec) = ask {
        return Some((&spec.timer, optional_name(spec)?));
    }
    None
}

/// Signal that an optional timer waits for; `None` if the timer is not optional.
fn optional_name(spec: &TimerSpec) -> Option<&str> {
    match &spec.origin {
        Some(Origin::ExternalEvent { name }) if spec.optional() => Some(name),
        _ => None,
    }
}
