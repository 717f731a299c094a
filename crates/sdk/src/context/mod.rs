//! What workflow code holds: its state, the durable things it can do, and facts about its run.

mod activity;
mod child;
mod condition;
mod deadline;
mod external;
mod local;
mod operation;
mod outcome;
mod random;
mod receive;
mod sleep;
mod spawn;
mod terms;

use std::{cell::RefCell, fmt, future::Future, panic::Location, rc::Rc, time::Duration};

use abide_core::{
    event::RunStarted,
    ids::{RunId, WorkflowId},
    time::Timestamp,
};
use uuid::Uuid;

pub(crate) use self::terms::Limit;
pub use self::{
    activity::ActivityCall,
    child::{ChildCall, ChildHandle, ChildResult, ChildStart},
    condition::{Condition, WaitUntil, WaitUntilWithin},
    deadline::{Deadline, MoveError},
    external::{ExternalCall, ExternalWorkflow},
    local::LocalActivityCall,
    operation::{Operation, Pending},
    outcome::Outcome,
    random::Random,
    receive::{Any, AnySignal, Expected, Receive, ReceiveWithin},
    sleep::{Sleep, Timer},
    spawn::JoinHandle,
};
use crate::{
    activity::Activity,
    definition::{SignalDef, Workflow},
    error::{Error, NextRun, Result},
    executor::Board,
    payload::{self, Data},
};

/// The context of a run of workflow `W`. Clones are the same context.
///
/// Everything durable is asked for here. What a method returns is a future that begins when it is first
/// polled, or at once by `start()`; dropping it while it is pending gives up what it waits for.
///
/// - A cancel request ends every wait that is pending at that moment with [`Error::Cancelled`]. Later
///   waits work, so that cleaning up is ordinary code.
/// - The run is over when its main future returns, whatever spawned tasks and handlers still do.
/// - Channels and other futures may be used within the run, as long as the run also waits for something
///   of its context, or has handlers of signals or updates that may wake it: a run that nothing recorded
///   can wake is stopped, and so is one that is woken from outside, by another thread or a runtime.
pub struct Context<W> {
    board: Rc<Board>,
    state: Rc<RefCell<W>>,
}

impl<W> Clone for Context<W> {
    fn clone(&self) -> Self {
        Self { board: self.board.clone(), state: self.state.clone() }
    }
}

impl<W> fmt::Debug for Context<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("run", &self.run_id()).finish_non_exhaustive()
    }
}

impl<W> Context<W> {
    pub(crate) fn new(board: Rc<Board>, state: W) -> Self {
        Self { board, state: Rc::new(RefCell::new(state)) }
    }

    /// Reads the state. Must not be called from within [`Context::write`].
    #[track_caller]
    pub fn read<T>(&self, read: impl FnOnce(&W) -> T) -> T {
        read(&self.state.borrow())
    }

    /// Reads the state on behalf of somebody who leaves no trace in history.
    pub(crate) fn look<T>(&self, read: impl FnOnce(&W) -> T) -> T {
        self.board.look(|| read(&self.state.borrow()))
    }

    /// Changes the state. Must not be called from within [`Context::read`] or itself.
    #[track_caller]
    pub fn write<T>(&self, write: impl FnOnce(&mut W) -> T) -> T {
        write(&mut self.state.borrow_mut())
    }

    /// Waits for a time, which survives every restart. A zero time is over at once.
    #[track_caller]
    pub fn sleep(&self, duration: Duration) -> Sleep {
        Sleep::new(self.board(), Limit::After(duration))
    }

    /// Waits until a time, which survives every restart. A time that has passed is over at once.
    #[track_caller]
    pub fn sleep_until(&self, at: Timestamp) -> Sleep {
        Sleep::new(self.board(), Limit::At(at))
    }

    /// Runs an activity: `ctx.activity(greet, name).start_to_close(limit).await?`.
    #[track_caller]
    pub fn activity<A>(&self, activity: A, input: A::Input) -> ActivityCall<A::Output>
    where
        A: Activity<Output: Data>,
    {
        ActivityCall::new(self.board(), &activity.definition(), &input)
    }

    /// Runs an activity in the worker of this workflow, within the workflow task: without a queue, and
    /// with one event, which holds the result. For what is short, and may run again if the worker dies
    /// before the task is completed. The worker must have the activity registered.
    #[track_caller]
    pub fn local_activity<A>(&self, activity: A, input: A::Input) -> LocalActivityCall<A::Output>
    where
        A: Activity<Output: Data>,
    {
        LocalActivityCall::new(self.board(), &activity.definition(), &input)
    }

    /// Waits for the next signal of this kind, read in the order of arrival. For signals that are
    /// declared without a body; the others are handled when they arrive.
    #[track_caller]
    pub fn receive<I: 'static>(&self, signal: SignalDef<W, I>) -> Receive<SignalDef<W, I>> {
        Receive::new(self.board(), signal)
    }

    /// Waits for the next signal of any name that no handler takes, read in the order of arrival:
    /// those that are declared without a body, and those that the workflow does not know.
    #[track_caller]
    pub fn receive_any(&self) -> Receive<Any<W>> {
        Receive::new(self.board(), Any::new())
    }

    /// Runs a child and waits for its result; with `start()` it gives a handle once the child runs.
    #[track_caller]
    pub fn child<C: Workflow>(
        &self,
        workflow: impl Into<WorkflowId>,
        input: C::Input,
    ) -> ChildCall<C> {
        ChildCall::new(self.board(), workflow.into(), &input)
    }

    /// Another workflow of the same namespace, to be signalled or cancelled.
    pub fn external<C: Workflow>(&self, workflow: impl Into<WorkflowId>) -> ExternalWorkflow<C> {
        ExternalWorkflow::new(self.board.clone(), workflow.into())
    }

    /// Runs a future beside this one. It ends with the run at the latest.
    pub fn spawn<T: 'static>(&self, task: impl Future<Output = T> + 'static) -> JoinHandle<T> {
        spawn::spawn(&self.board, task)
    }

    /// The value of code that is not deterministic: it runs once, its value is recorded, and the same
    /// on replay. For what is quick and cannot fail; anything else belongs to an activity.
    #[track_caller]
    pub fn side_effect<T: Data>(&self, make: impl FnOnce() -> T) -> Result<T> {
        let recorded = self.board().side_effect(|| payload::encode(&make()))?;
        Ok(payload::decode(&recorded).map_err(|error| error.of("value of a side effect"))?)
    }

    /// Whether the run follows a change of its code. Runs that come here for the first time do, and
    /// always will; runs that were past this place before the change do not. So code that replays the
    /// history of old runs keeps both ways: `if ctx.patched("ask-twice") { new } else { old }`.
    #[track_caller]
    pub fn patched(&self, change: &'static str) -> bool {
        self.board().follows(change)
    }

    /// The time of the current task: the same on replay.
    pub fn now(&self) -> Timestamp {
        self.board.now()
    }

    /// A random value: the same on replay. Not for secrets.
    pub fn random<T: Random>(&self) -> T {
        T::draw(&mut || self.board.random())
    }

    /// A random UUID (version 4): the same on replay.
    pub fn uuid(&self) -> Uuid {
        uuid::Builder::from_random_bytes(self.random()).into_uuid()
    }

    /// The run's id.
    pub fn run_id(&self) -> RunId {
        self.board.started().run
    }

    /// The workflow's id, which stays the same when the run is followed by another.
    pub fn workflow_id(&self) -> &WorkflowId {
        &self.board.started().workflow
    }

    /// How the run began: its queue, parent, attempt and so on.
    pub fn started(&self) -> &RunStarted {
        self.board.started()
    }

    /// What code does now is in history already. For diagnostics; what a workflow does must not
    /// depend on it.
    pub fn is_replaying(&self) -> bool {
        self.board.replaying()
    }

    /// The run was asked to cancel itself.
    pub fn is_cancel_requested(&self) -> bool {
        self.board.cancel_requested()
    }

    /// The history is long: the run should continue as new at its next good moment.
    pub fn suggests_continue_as_new(&self) -> bool {
        self.board.suggests_continue_as_new()
    }

    /// Notes where user code asks, for what is built from other waits.
    pub(crate) fn mark(&self, place: &'static Location<'static>) {
        self.board.mark(place);
    }

    /// The board, noting where user code asks.
    #[track_caller]
    fn board(&self) -> Rc<Board> {
        self.board.mark(Location::caller());
        self.board.clone()
    }
}

impl<W: 'static> Context<W> {
    /// Waits until a condition on the state holds: `ctx.wait_until(condition!("order.paid", |order|
    /// order.paid)).await?`.
    ///
    /// It is looked at whenever something has happened to the run and nothing else can go on, and holds
    /// when the wait ends: what others do then comes after. A condition that holds at once leaves no
    /// trace in history.
    #[track_caller]
    pub fn wait_until(&self, condition: Condition<W>) -> WaitUntil<W> {
        WaitUntil::new(self.board(), &self.state, condition)
    }
}

impl<W: Workflow> Context<W> {
    /// Ends the run and goes on in a new one with an empty history: `return
    /// Err(ctx.continue_as_new(input))`. Signals that were not read go along, and so do signals and
    /// updates whose handlers have not finished: these begin anew in the next run. The state does not
    /// go along, nor do more than the newest 100 signals of names that the workflow does not have.
    pub fn continue_as_new(&self, input: W::Input) -> Error {
        match W::encode_input(&input) {
            Ok(input) => Error::ContinueAsNew(Box::new(NextRun { input })),
            Err(error) => error.into(),
        }
    }
}
