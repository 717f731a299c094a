//! The reasons to stop code, with texts that say where and what to do.

use std::{
    any::Any,
    panic::{Location, resume_unwind},
};

use abide_core::{event::TaskFailureCause, failure::Failure, ids::EventNumber, visible::visible};

use super::waker::ForeignWake;
use crate::{panic, payload::PayloadError, registry::TaskFault, unread::Unread};

type CodeLocation = Option<&'static Location<'static>>;

/// Unwinds workflow code that awaits an activity's function. The function would run again on every
/// replay, so its first poll stops the run.
pub(crate) fn stop_awaited_activity(name: &'static str, at: &'static Location<'static>) -> ! {
    resume_unwind(Box::new(AwaitedActivity { name, at }))
}

/// Workflow code awaits the function of the activity.
struct AwaitedActivity {
    name: &'static str,
    /// Where it calls the function.
    at: &'static Location<'static>,
}

/// Code panicked, perhaps in a handler, or was stopped by [`stop_awaited_activity`].
pub(super) fn panicked(
    panic: &(dyn Any + Send),
    handler: Option<&str>,
    place: CodeLocation,
) -> TaskFault {
    if let Some(AwaitedActivity { name, at }) = panic.downcast_ref() {
        let message = format!(
            "not deterministic: the workflow calls the activity {name} as a function, at {at}, so \
             it would run again on every replay. Call it by `ctx.activity({name}, …)`"
        );
        return fault("NotDeterministic", message);
    }
    let code = handler.map_or_else(String::new, |handler| format!(" of {handler}"));
    let (said, place) = (panic::message(panic), shown(place));
    fault("Panic", format!("workflow code{code} panicked: {said}; {place}"))
}

/// A task was woken by something that history does not record.
pub(super) fn foreign_wake(wake: &ForeignWake, place: CodeLocation) -> TaskFault {
    let message = format!(
        "not deterministic: a task of the run was woken from outside, by the thread {}; {}. \
         Workflow code may await only futures of its context: move the rest to an activity",
        wake.thread,
        shown(place)
    );
    fault("NotDeterministic", message)
}

/// No recorded event can wake the run.
pub(super) fn waits_for_nothing(place: CodeLocation) -> TaskFault {
    let message = format!(
        "not deterministic: the run waits for something that is not durable; {}. \
         Workflow code may await only futures of its context: move the rest to an activity",
        shown(place)
    );
    fault("NotDeterministic", message)
}

/// The run waits for conditions, and nothing can make one of them true.
pub(super) fn condition_for_ever(place: CodeLocation) -> TaskFault {
    let message = format!(
        "the run waits for a condition that can never become true: no other wait and no signal or \
         update handler can change the state; {}. Give the wait a deadline, or the workflow a \
         handler",
        shown(place)
    );
    fault("NothingToWaitFor", message)
}

/// A signal cannot be decoded here and now, and it is not known that it never can be; or it was read
/// when it arrived.
pub(super) fn unread_signal(number: EventNumber, name: &str, unread: &Unread) -> TaskFault {
    let (name, why) = (visible(name), &unread.why);
    fault("Payload", format!("the signal {name} of event {number} cannot be decoded: {why}"))
}

/// Arguments that cannot be decoded.
pub(super) fn unreadable(error: &PayloadError) -> TaskFault {
    fault("Payload", error.to_string())
}

fn shown(place: CodeLocation) -> String {
    match place {
        Some(place) => format!("its last durable call is at {place}"),
        None => "it has made no durable call".into(),
    }
}

fn fault(error_type: &str, message: String) -> TaskFault {
    let failure = Failure { message, error_type: error_type.into(), ..Failure::default() };
    TaskFault { cause: TaskFailureCause::WorkerFailure, failure }
}
