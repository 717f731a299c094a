//! Faults that a test injects: attempts that fail, are delayed, or lose their worker, and tasks
//! whose worker is lost before the engine learns of the result.

use std::{
    collections::BTreeMap,
    future::{pending, ready},
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use abide_core::payload::Payloads;
use abide_sdk::{
    ActivityContext, ActivityError,
    future::BoxFuture,
    registry::{ActivityCode, ActivityEnd, Registry},
};

use crate::{held::WorkLedger, lock::lock, time::Time, worker::Lifeline};

#[derive(Clone, Debug)]
pub(crate) enum InjectedFault {
    /// The attempt fails with this message, and its code does not run.
    Fail(String),
    /// Its code runs after this delay.
    Delay(Duration),
    /// Its code runs, then the worker is lost. Once.
    Lose,
}

/// All faults of an environment. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Faults(Arc<Mutex<FaultState>>);

#[derive(Default)]
struct FaultState {
    /// By the activity's type and the number of the attempt.
    attempts: BTreeMap<(String, u32), InjectedFault>,
    /// Number of tasks that complete before one is lost.
    tasks: Option<u32>,
}

impl Faults {
    pub(crate) fn plan(&self, activity_type: &str, attempt: u32, fault: InjectedFault) {
        self.lock().attempts.insert((activity_type.to_owned(), attempt), fault);
    }

    /// Loses the worker of the task with this number, counted from 1 and from now.
    pub(crate) fn lose_task(&self, number: u32) {
        self.lock().tasks = Some(number.saturating_sub(1));
    }

    /// Whether the task that is about to be completed is lost.
    pub(crate) fn loses_task(&self) -> bool {
        let mut state = self.lock();
        let left = state.tasks;
        state.tasks = left.and_then(|left| left.checked_sub(1));
        left == Some(0)
    }

    fn of(&self, activity_type: &str, attempt: u32) -> Option<InjectedFault> {
        let mut state = self.lock();
        let key = (activity_type.to_owned(), attempt);
        match state.attempts.get(&key)? {
            InjectedFault::Lose => state.attempts.remove(&key),
            fault => Some(fault.clone()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, FaultState> {
        lock(&self.0)
    }
}

/// What faults need to take effect in one worker.
#[derive(Clone)]
pub(crate) struct Saboteur {
    pub(crate) faults: Faults,
    pub(crate) time: Arc<Time>,
    pub(crate) held: WorkLedger,
    pub(crate) lifeline: Lifeline,
}

impl Saboteur {
    /// Wraps every activity.
    pub(crate) fn enter(&self, registry: &mut Registry) {
        let types: Vec<_> = registry.activity_types().map(str::to_owned).collect();
        for activity_type in types {
            registry.wrap_activity(&activity_type, |code| {
                Arc::new(Sabotaged { code, saboteur: self.clone() })
            });
        }
    }
}

/// An activity with injected faults.
struct Sabotaged {
    code: Arc<dyn ActivityCode>,
    saboteur: Saboteur,
}

impl ActivityCode for Sabotaged {
    fn run(&self, ctx: ActivityContext, input: Payloads) -> BoxFuture<'static, ActivityEnd> {
        let Self { code, saboteur } = self;
        let activity_type = &ctx.info().given.spec.activity_type;
        let Some(fault) = saboteur.faults.of(activity_type, ctx.attempt()) else {
            return code.run(ctx, input);
        };
        let (code, saboteur) = (Arc::clone(code), saboteur.clone());
        match fault {
            InjectedFault::Fail(message) => {
                Box::pin(ready(ActivityEnd::Failed(ActivityError::new(message).into())))
            }
            InjectedFault::Delay(delay) => Box::pin(async move {
                let over = saboteur.time.after(delay);
                saboteur.held.release(ctx.info());
                if let Some(work) = over.await {
                    saboteur.held.resume(ctx.info(), work);
                }
                code.run(ctx, input).await
            }),
            InjectedFault::Lose => Box::pin(async move {
                code.run(ctx, input).await;
                saboteur.lifeline.cut();
                pending().await
            }),
        }
    }
}
