//! The server's machine: what may happen to a run, and what follows.
//!
//! [`decide`] takes an input and returns records. Each record is applied to the run as soon as it
//! is made, so that later parts of the same decision see it. Recovery is [`Run::fold`], which only
//! applies. A refusal changes nothing: all checks come before the first record.
//!
//! One file per concept, each with its transition table as a plain `match`. Nothing here knows
//! stores, queues or connections: the shard projects a [`Run`] to rows.

mod activity;
mod apply;
mod buffer;
mod cancel;
mod child;
mod close;
mod commands;
mod describe;
mod draft;
mod due;
mod input;
mod keys;
mod liveness;
mod memory;
mod pause;
mod reset;
mod reset_point;
mod schedule;
mod signal;
mod snapshot;
mod start;
mod state;
mod task;
mod timer;
mod touch;
mod update;
mod volatile;
mod wait;
mod waiting;

pub use activity::ActivityGiven;
pub use apply::FoldError;
pub use describe::{Description, ShownActivity, ShownChild, ShownPhase, TaskTrouble};
pub use due::TimerKey;
pub use input::*;
pub use keys::{Keys, TakenMove};
pub use liveness::{Liveness, ResumeSource};
pub use reset::{Reapply, ResetDone, ResetRun, reset};
pub use reset_point::ResetPoint;
pub use schedule::begin_schedule;
pub use snapshot::SNAPSHOT_VERSION;
pub use start::{StartRun, start};
pub use state::*;
pub use task::GivenTask;
pub use touch::Touch;
pub use update::Stage;
pub use volatile::*;
pub use waiting::{ShownWait, WaitKey};

use draft::Draft;

/// Decides about an input. On `Ok` the run has changed as the records say; on `Err` it has not
/// changed.
pub fn decide(run: &mut Run, context: &Context<'_>, input: Input) -> Result<Decision, Refusal> {
    if run.is_repeat(&input)? {
        return Ok(Draft::new(run, context).finish(Reply::Repeat));
    }
    if !run.open() {
        return child::decide_closed(run, context, input);
    }
    let draft = Draft::new(run, context);
    if draft.run.schedule.is_some() {
        return schedule::decide(draft, input);
    }
    match input {
        Input::StartTask(start) => task::start(draft, start),
        Input::CompleteTask(completion) => task::complete(draft, *completion),
        Input::FailTask(failure) => task::fail(draft, *failure),
        Input::TimeOutTask { start } => task::time_out(draft, start),
        Input::LoseTask { start } => task::lose(draft, start),
        Input::Recover => Ok(task::recover(draft)),
        Input::Repair { identity } => Ok(task::repair(draft, identity)),
        Input::Signal(signal) => signal::receive(draft, *signal),
        Input::RequestCancel(request) => cancel::request(draft, request),
        Input::Terminate(terminated) => Ok(cancel::terminate(draft, terminated)),
        Input::Pause(paused) => pause::pause(draft, paused),
        Input::Unpause(unpaused) => pause::unpause(draft, unpaused),
        Input::AdmitUpdate { update, request, wait_while_blocked } => {
            update::admit(draft, update, request, wait_while_blocked)
        }
        Input::StartActivity(start) => activity::start(draft, start),
        Input::ResolveActivity(resolution) => activity::resolve(draft, resolution),
        Input::Heartbeat(beat) => activity::heartbeat(draft, beat),
        Input::DetachAttempt { scheduled, start } => activity::detach(draft, scheduled, start),
        Input::LoseAttempt { scheduled, start } => activity::lose(draft, scheduled, start),
        Input::AwaitAttempt { scheduled, start } => {
            activity::wait_for_worker(draft, scheduled, start)
        }
        Input::PresentAttempt { scheduled, start } => activity::present(draft, scheduled, start),
        Input::Due { timer } => due::handle(draft, timer),
        Input::RescheduleTimer(reschedule) => timer::reschedule(draft, reschedule),
        Input::Deliver { source, action } => child::deliver(draft, source, action),
        Input::EffectAnswered { number, answer } => child::answered(draft, number, answer),
        Input::ChangeSchedule(_) => Err(Refusal::RunClosed),
    }
}
