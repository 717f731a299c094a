//! What a worker can run: workflows and activities by their registered names.

use std::{collections::BTreeMap, future::Future, sync::Arc};

use abide_core::{
    command::{Command, SourcePlace},
    event::TaskFailureCause,
    failure::Failure,
    ids::{RunId, TimerId, WorkflowKey},
    operation::QueryRequest,
    payload::Payloads,
    replay::{Code, Step},
    time::Timestamp,
};

pub use crate::activity::{ActivityCode, ActivityEnd};
use crate::{
    activity::{Activities, Activity, ActivityContext, ActivityDef, ActivityHandler},
    arguments::ArgumentList,
    definition::Workflow,
    executor::{LocalWork, Machine},
    future::BoxFuture,
    interceptor::{Interceptor, Interceptors},
    payload::PayloadValue,
    returned::{BoxError, ReturnedError},
};

/// One run's code in memory. Not `Send`: it lives on one workflow thread of the worker.
pub trait WorkflowCode: Code {
    /// Answers a query from the current state. `moves` are those of
    /// [`Replay::unseen_moves`](abide_core::replay::Replay::unseen_moves): the answer shows these
    /// deadlines as moved, although code has not seen the moves.
    fn query(
        &mut self,
        request: &QueryRequest,
        moves: Vec<(TimerId, Timestamp)>,
    ) -> Result<Payloads, Failure>;

    /// The new work about local activities; each item is returned once. Call it when a task is open
    /// and its turn was taken, and again whenever the end of one was delivered by
    /// [`Replay::local_resolved`](abide_core::replay::Replay::local_resolved).
    fn take_local_work(&mut self) -> LocalWork;

    /// Why the task must fail although code answered: a panic, a foreign wake, an argument that
    /// cannot be decoded. Returned once. Call it after every feed and turn, before checking for a
    /// mismatch: stopped code issues no commands, which matches no history. The machine cannot be
    /// used afterwards.
    fn take_fault(&mut self) -> Option<TaskFault>;

    /// Runs within these interceptors, the outermost first. Called before the first step, and not at
    /// all without interceptors. Code that is not a workflow's may ignore them.
    fn intercept(&mut self, interceptors: Arc<[Arc<dyn Interceptor>]>) {
        drop(interceptors);
    }
}

impl Code for Box<dyn WorkflowCode> {
    fn advance(&mut self, at: Timestamp, step: Step<'_>) -> Vec<Command> {
        (**self).advance(at, step)
    }

    fn place(&self) -> SourcePlace {
        (**self).place()
    }

    fn advice(&self) -> Option<String> {
        (**self).advice()
    }
}

/// Why a workflow task must fail.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskFault {
    /// The cause that history records.
    pub cause: TaskFailureCause,
    /// The message and type of the error.
    pub failure: Failure,
}

type Create = Arc<dyn Fn(&WorkflowKey, RunId) -> Box<dyn WorkflowCode> + Send + Sync>;

/// Workflows and activities by name.
#[derive(Clone, Default)]
pub struct Registry {
    workflows: BTreeMap<&'static str, Create>,
    activities: BTreeMap<&'static str, Arc<dyn ActivityCode>>,
    interceptors: Interceptors,
}

/// A name is registered already.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegistryError {
    /// Two workflows have this name.
    #[error("a workflow named {0} is already registered; rename one of them")]
    DuplicateWorkflow(&'static str),
    /// Two activities have this name.
    #[error("an activity named {0} is already registered; rename one of them")]
    DuplicateActivity(&'static str),
}

impl Registry {
    /// A registry without workflows and activities.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a workflow. Fails if its name is registered.
    pub fn workflow<W: Workflow>(&mut self) -> Result<(), RegistryError> {
        if self.workflows.contains_key(W::NAME) {
            return Err(RegistryError::DuplicateWorkflow(W::NAME));
        }
        let create: Create =
            Arc::new(|workflow, run| Box::new(Machine::<W>::new(workflow.clone(), run)));
        self.workflows.insert(W::NAME, create);
        Ok(())
    }

    /// Adds an activity that needs no state. Fails if its name is registered.
    pub fn activity<A, M>(&mut self, activity: A) -> Result<(), RegistryError>
    where
        A: Activity<M, State = (), Input: Send, Output: PayloadValue>,
    {
        self.add(&activity.definition(), &Arc::new(()))
    }

    /// Adds all activities of an impl block, with the state that they share.
    pub fn activities<A: Activities>(&mut self, shared: A) -> Result<(), RegistryError> {
        let shared = Arc::new(shared);
        A::ACTIVITIES.iter().try_for_each(|activity| self.add(*activity, &shared))
    }

    /// Replaces the code of an activity, registered or not: for tests.
    pub fn replace_activity<A, M, F, R, E>(&mut self, activity: A, code: F)
    where
        A: Activity<M, State: Send + Sync, Input: Send, Output: PayloadValue>,
        F: Fn(ActivityContext, A::Input) -> R + Send + Sync + 'static,
        R: Future<Output = Result<A::Output, E>> + Send + 'static,
        E: Into<BoxError> + 'static,
    {
        let definition = activity.definition();
        let replaced = Replaced { definition, code };
        self.activities.insert(definition.name(), Arc::new(replaced));
    }

    /// Replaces the code of a workflow, registered or not: for tests.
    pub fn replace_workflow<W: Workflow>(
        &mut self,
        create: impl Fn(&WorkflowKey, RunId) -> Box<dyn WorkflowCode> + Send + Sync + 'static,
    ) {
        self.workflows.insert(W::NAME, Arc::new(create));
    }

    /// Wraps the code of an activity, if it is registered: for tests.
    pub fn wrap_activity(
        &mut self,
        activity_type: &str,
        wrap: impl FnOnce(Arc<dyn ActivityCode>) -> Arc<dyn ActivityCode>,
    ) {
        if let Some(code) = self.activities.get_mut(activity_type) {
            *code = wrap(Arc::clone(code));
        }
    }

    /// The names of all workflows, in order.
    pub fn workflow_types(&self) -> impl Iterator<Item = &str> {
        self.workflows.keys().copied()
    }

    /// The names of all activities, in order.
    pub fn activity_types(&self) -> impl Iterator<Item = &str> {
        self.activities.keys().copied()
    }

    /// New code for a run, before its first step; none if the type is unknown.
    pub fn create(
        &self,
        workflow_type: &str,
        workflow: &WorkflowKey,
        run: RunId,
    ) -> Option<Box<dyn WorkflowCode>> {
        let mut code = self.workflows.get(workflow_type)?(workflow, run);
        if let Some(chain) = self.interceptors.chain() {
            code.intercept(chain);
        }
        Some(code)
    }

    /// The code of an activity, within the interceptors; none if the type is unknown.
    pub fn activity_code(&self, activity_type: &str) -> Option<Arc<dyn ActivityCode>> {
        let code = self.activities.get(activity_type).cloned();
        code.map(|code| self.interceptors.around_activity(code))
    }

    /// Whether the activity is registered.
    pub fn has_activity(&self, activity_type: &str) -> bool {
        self.activities.contains_key(activity_type)
    }

    /// Adds an interceptor inside those that were added before.
    pub fn interceptor(&mut self, interceptor: impl Interceptor) {
        self.interceptors = self.interceptors.with(Arc::new(interceptor));
    }

    /// Puts these interceptors around the registry's own.
    #[cfg(feature = "worker")]
    pub(crate) fn intercept(&mut self, outer: &Interceptors) {
        self.interceptors = outer.around(&self.interceptors);
    }

    fn add<S>(
        &mut self,
        activity: &dyn ActivityHandler<S>,
        shared: &Arc<S>,
    ) -> Result<(), RegistryError> {
        let name = activity.name();
        if self.activities.contains_key(name) {
            return Err(RegistryError::DuplicateActivity(name));
        }
        self.activities.insert(name, activity.bind(shared.clone()));
        Ok(())
    }
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registry")
            .field("workflows", &self.workflows.keys())
            .field("activities", &self.activities.keys())
            .finish()
    }
}

/// Another function under the name of an activity.
struct Replaced<S: 'static, I: ArgumentList, O: 'static, F> {
    definition: ActivityDef<S, I, O>,
    code: F,
}

impl<S, I, O, F, R, E> ActivityCode for Replaced<S, I, O, F>
where
    S: Send + Sync + 'static,
    I: ArgumentList<Value: Send>,
    O: PayloadValue,
    F: Fn(ActivityContext, I::Value) -> R + Send + Sync,
    R: Future<Output = Result<O, E>> + Send + 'static,
    E: Into<BoxError> + 'static,
{
    fn run(&self, ctx: ActivityContext, input: Payloads) -> BoxFuture<'static, ActivityEnd> {
        match self.definition.decode_input(&input) {
            Ok(input) => {
                let attempt = (self.code)(ctx, input);
                Box::pin(async move { ActivityEnd::of(attempt.await.map_err(ReturnedError::new)) })
            }
            Err(error) => Box::pin(std::future::ready(ActivityEnd::unreadable(error))),
        }
    }
}
