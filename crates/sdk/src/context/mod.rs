//! The context of workflow code: its state, its durable operations, and facts about its run.

mod activity;
mod child;
mod condition;
mod deadline;
mod external;
mod local;
mod next_run;
mod on_cancel;
mod operation;
mod outcome;
mod random;
mod receive;
mod scope;
mod site;
mod sleep;
mod spawn;
mod terms;
mod timeout;

use std::{cell::RefCell, fmt, future::IntoFuture, panic::Location, rc::Rc, time::Duration};

use abide_core::{
    event::RunStarted,
    ids::{RunId, WorkflowId},
    payload::{Payload, PayloadMap},
    time::Timestamp,
};
use uuid::Uuid;

use self::site::Site;
pub(crate) use self::terms::Limit;
pub use self::{
    activity::ActivityCall,
    child::{ChildCall, ChildHandle, ChildResult, ChildStart},
    condition::{Condition, WaitUntil},
    deadline::{Deadline, RescheduleError},
    external::{ExternalCall, ExternalWorkflow},
    local::LocalActivityCall,
    next_run::NextRun,
    on_cancel::OnCancel,
    operation::{Operation, Pending},
    outcome::Outcome,
    random::Random,
    receive::{Any, AnySignal, Expected, Receive},
    scope::{CancelRequest, Canceller, Scoped, Shielded},
    sleep::{Sleep, Timer},
    spawn::JoinHandle,
    timeout::Timeout,
};
use crate::{
    activity::Activity,
    arguments::{ArgumentList, IntoArguments},
    definition::{SignalDef, Workflow},
    error::{Error, Result},
    executor::{self, Board, Cancellation, ScopeKind},
    failure::Failure,
    interceptor,
    payload::{self, PayloadValue},
    search::{AttributeChange, SearchAttribute},
};

/// The key of the condition that no handler runs.
const HANDLERS_FINISHED: &str = "handlers-finished";

/// The context of a run of workflow `W`. Clones are the same context.
///
/// It gives access to all durable operations. A method returns a future that starts when it is
/// first polled, or at once by `start()`; dropping it while it is pending gives up what it waits
/// for.
///
/// - A cancel request ends every wait that is pending at that moment with [`Error::Cancelled`].
///   Later waits work, so that cleaning up is ordinary code. In a [scope](Context::scope) they do
///   not, and in a [shield](Context::shield) no wait ends.
/// - The run closes when its main future has returned. If it returned a value, the run first waits
///   for handlers of signals and updates that still run, unless it has
///   `#[workflow(unfinished_handlers = "abandon")]`; if it failed or was cancelled, they end with the run.
///   Spawned tasks always do.
/// - Channels and other futures may be used within the run, as long as the run also waits for
///   something of its context, or has handlers of signals or updates that may wake it: a run that
///   no recorded event can wake is stopped, and so is one that is woken from outside, by another
///   thread or a runtime.
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

    /// The context of a function workflow that is called within this run, whose state is `state`.
    #[doc(hidden)]
    pub fn with_state<S>(&self, state: S) -> Context<S> {
        Context::new(self.board.clone(), state)
    }

    /// Reads the state. Must not be called from within [`Context::write`].
    #[track_caller]
    pub fn read<T>(&self, read: impl FnOnce(&W) -> T) -> T {
        read(&self.state.borrow())
    }

    /// Reads the state for code that leaves no trace in history.
    pub(crate) fn look<T>(&self, read: impl FnOnce(&W) -> T) -> T {
        self.board.look(|| read(&self.state.borrow()))
    }

    /// Changes the state. Must not be called from within [`Context::read`] or itself.
    #[track_caller]
    pub fn write<T>(&self, write: impl FnOnce(&mut W) -> T) -> T {
        write(&mut self.state.borrow_mut())
    }

    /// Sleeps for this long, across restarts. A zero time ends at once.
    #[track_caller]
    pub fn sleep(&self, duration: Duration) -> Sleep {
        Sleep::new(self.call_site(), Limit::After(duration))
    }

    /// Sleeps until this time, across restarts. A time in the past ends at once.
    #[track_caller]
    pub fn sleep_until(&self, at: Timestamp) -> Sleep {
        Sleep::new(self.call_site(), Limit::At(at))
    }

    /// Runs an activity: `ctx.activity(greet, name).start_to_close(limit).await?`.
    #[track_caller]
    pub fn activity<A, M>(
        &self,
        activity: A,
        input: impl IntoArguments<A::Arguments>,
    ) -> ActivityCall<A::Output>
    where
        A: Activity<M, Output: PayloadValue>,
    {
        ActivityCall::new(self.call_site(), &activity.definition(), &input.into_arguments())
    }

    /// Runs an activity without arguments: `ctx.call(sign_in).await?`.
    #[track_caller]
    pub fn call<A, M>(&self, activity: A) -> ActivityCall<A::Output>
    where
        A: Activity<M, Arguments = (), Output: PayloadValue>,
    {
        self.activity(activity, ())
    }

    /// Runs an activity without arguments as [`Context::local_activity`] does.
    #[track_caller]
    pub fn call_local<A, M>(&self, activity: A) -> LocalActivityCall<A::Output>
    where
        A: Activity<M, Arguments = (), Output: PayloadValue>,
    {
        self.local_activity(activity, ())
    }

    /// Runs an activity in the worker of this workflow, within the workflow task: without a queue,
    /// and with one event, which holds the result. For short work that may run again if the worker
    /// dies before the task is completed. The worker must have the activity registered.
    #[track_caller]
    pub fn local_activity<A, M>(
        &self,
        activity: A,
        input: impl IntoArguments<A::Arguments>,
    ) -> LocalActivityCall<A::Output>
    where
        A: Activity<M, Output: PayloadValue>,
    {
        LocalActivityCall::new(self.call_site(), &activity.definition(), &input.into_arguments())
    }

    /// Waits for the next signal of this kind, in order of arrival. For signals that are declared
    /// without a body; the others are handled when they arrive.
    #[track_caller]
    pub fn receive<I: ArgumentList>(&self, signal: SignalDef<W, I>) -> Receive<SignalDef<W, I>> {
        Receive::new(self.call_site(), signal)
    }

    /// Waits for the next signal that no handler takes, in order of arrival: those that are
    /// declared without a body, and those that the workflow does not declare.
    #[track_caller]
    pub fn receive_any(&self) -> Receive<Any<W>> {
        Receive::new(self.call_site(), Any::new())
    }

    /// Runs a child and waits for its result; with `start()` it returns a handle once the child
    /// runs.
    #[track_caller]
    pub fn child<C: Workflow>(
        &self,
        workflow: impl Into<WorkflowId>,
        input: impl IntoArguments<C::Arguments>,
    ) -> ChildCall<C> {
        ChildCall::new(self.call_site(), workflow.into(), &input.into_arguments())
    }

    /// Another workflow of the same namespace, to be signalled or cancelled. Its signals are methods of
    /// the handle, which is an [`ExternalWorkflow`] else.
    pub fn external<C: Workflow>(&self, workflow: impl Into<WorkflowId>) -> C::External {
        ExternalWorkflow::new(self.board.clone(), workflow.into()).into()
    }

    /// Runs a future as a scope, whose waits can be cancelled together.
    ///
    /// Waits that the future starts while it is polled belong to the scope, and so do tasks that it
    /// spawns and scopes inside it. A cancel request to the run reaches the scope too. A cancelled
    /// scope stays cancelled: every later wait in it ends at once with [`Error::Cancelled`].
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use abide_sdk::{Context, Result, SignalDef, join};
    /// # async fn example<W>(ctx: &Context<W>, stop: SignalDef<W, ()>) -> Result<()> {
    /// let work = ctx.scope(async { ctx.sleep(Duration::from_secs(60)).await });
    /// let canceller = work.canceller();
    /// let stopper = ctx.scope(async {
    ///     ctx.receive(stop).await?;
    ///     canceller.cancel("somebody said stop");
    ///     Result::<()>::Ok(())
    /// });
    /// let stopped = join!(work, stopper);
    /// # Ok(())
    /// # }
    /// ```
    pub fn scope<F: IntoFuture>(&self, future: F) -> Scoped<F::IntoFuture> {
        Scoped::new(self.board.clone(), ScopeKind::Scope, future.into_future())
    }

    /// Runs a future that no cancel request from outside reaches: for cleaning up. With `timeout`
    /// it has a deadline.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use abide_sdk::{ActivityDef, Context, Outcome};
    /// # async fn example<W>(ctx: &Context<W>, release: ActivityDef<(), (u32,), ()>) -> bool {
    /// let released = ctx.shield(ctx.activity(release, 7)).timeout(Duration::from_secs(30)).await;
    /// matches!(released, Outcome::InTime(Ok(())))
    /// # }
    /// ```
    pub fn shield<F: IntoFuture>(&self, future: F) -> Shielded<F::IntoFuture> {
        Shielded::new(self.board.clone(), future.into_future())
    }

    /// Waits for a cancel request to the scope in which it is awaited, or to the run; resolves at
    /// once if there was one. Within a shield, requests from outside are not seen.
    #[track_caller]
    pub fn cancelled(&self) -> CancelRequest {
        CancelRequest::new(Rc::clone(&self.call_site()))
    }

    /// Runs a future beside this one, in the scope that spawns it. It ends with the run at the
    /// latest; the run does not wait for it.
    pub fn spawn<T: 'static>(
        &self,
        task: impl IntoFuture<Output = T, IntoFuture: 'static>,
    ) -> JoinHandle<T> {
        spawn::spawn(&self.board, task.into_future())
    }

    /// The value of code that is not deterministic: it runs once, and replay uses the recorded
    /// value. For quick code that cannot fail; other code belongs in an activity.
    #[track_caller]
    pub fn side_effect<T: PayloadValue>(&self, make: impl FnOnce() -> T) -> Result<T> {
        let recorded =
            self.call_site().side_effect(|| executor::outside(|| payload::encode(&make())))?;
        Ok(payload::decode(&recorded).map_err(|error| error.of("value of a side effect"))?)
    }

    /// Whether the run follows a change of its code. Runs that reach this line for the first time
    /// do, and always will; runs that were past it before the change do not. So code that replays
    /// the history of old runs keeps both branches:
    /// `if ctx.patched("ask-twice") { new } else { old }`.
    #[track_caller]
    pub fn patched(&self, change: &'static str) -> bool {
        self.call_site().follows(change)
    }

    /// Follows a change whose old branch was removed: replace `patched` by it when the last run of
    /// the old code has closed. Runs that recorded the change still match, and the markers of new
    /// runs are not required on replay: remove the line when the last run that used `patched` has
    /// closed.
    #[track_caller]
    pub fn deprecate_patch(&self, change: &'static str) {
        self.call_site().follows_alone(change);
    }

    /// Sets or removes search attributes of the run, by which lists find it as soon as the task is
    /// completed. They must be registered in the namespace with their types, or the task fails and is
    /// tried again later.
    #[track_caller]
    pub fn upsert_search_attributes(
        &self,
        changes: impl IntoIterator<Item = AttributeChange>,
    ) -> Result<()> {
        let mut all = PayloadMap::new();
        changes.into_iter().try_for_each(|change| change.add_to(&mut all))?;
        self.call_site().upsert_search_attributes(all);
        Ok(())
    }

    /// The value of a search attribute of the run, as its start or its code has set it.
    pub fn search_attribute<T: PayloadValue>(
        &self,
        attribute: SearchAttribute<T>,
    ) -> Result<Option<T>> {
        Ok(self.board.search_attributes(|all| attribute.of(all)).transpose()?)
    }

    /// Sets a named value that is shown with the run.
    #[track_caller]
    pub fn upsert_memo<T: PayloadValue>(&self, name: impl Into<String>, value: &T) -> Result<()> {
        let name = name.into();
        let payload = value.to_payload().map_err(|error| error.of(format!("memo {name}")))?;
        self.call_site().upsert_memo([(name, payload.unwrap_or_default())].into());
        Ok(())
    }

    /// Removes a named value that is shown with the run.
    #[track_caller]
    pub fn remove_memo(&self, name: impl Into<String>) {
        self.call_site().upsert_memo([(name.into(), Payload::default())].into());
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

    /// The id of this run. A run that a reset makes shows its code the id that the code has seen
    /// before, so that replay gives the same.
    pub fn run_id(&self) -> RunId {
        self.board.started().original_run
    }

    /// The workflow's id, which stays the same when another run follows this one.
    pub fn workflow_id(&self) -> &WorkflowId {
        &self.board.started().workflow
    }

    /// Which attempt this run is, from 1: a retry of a failed run is the next one.
    pub fn attempt(&self) -> u32 {
        self.board.started().attempt
    }

    /// The start of the run as its history has it, for tests of this workspace.
    #[doc(hidden)]
    pub fn started(&self) -> &RunStarted {
        self.board.started()
    }

    /// A header of the run, as a client or a parent has set it: see
    /// [`interceptor`](crate::interceptor).
    pub fn header<T: PayloadValue>(&self, name: &str) -> Result<Option<T>> {
        Ok(interceptor::header(&self.board.started().spec.header, name)?)
    }

    /// Whether the current step is in history already. For diagnostics; what a workflow does must
    /// not depend on it.
    pub fn is_replaying(&self) -> bool {
        self.board.replaying()
    }

    /// Whether the scope of this code was cancelled, or one around it, such as the run; in a
    /// shield, only requests within the shield count.
    pub fn is_cancel_requested(&self) -> bool {
        self.cancellation().is_some()
    }

    /// The cancel request behind [`Context::is_cancel_requested`]: its reason, and who sent it.
    pub fn cancellation(&self) -> Option<Cancellation> {
        self.board.cancellation()
    }

    /// Whether the history is long, by its events or its bytes, so that the run should continue as
    /// new at its next good moment.
    pub fn suggests_continue_as_new(&self) -> bool {
        self.board.suggests_continue_as_new()
    }

    /// State that the futures of the run share with its machine.
    pub(crate) const fn board(&self) -> &Rc<Board> {
        &self.board
    }

    /// How many events the history had when the current task started: the same on replay.
    pub fn history_events(&self) -> u64 {
        self.board.history_events()
    }

    /// How many bytes the history had when the current task started: the same on replay.
    pub fn history_bytes(&self) -> u64 {
        self.board.history_bytes()
    }

    /// Why the previous run failed or timed out, if this run is a retry of it or follows it by a
    /// cron schedule.
    pub fn last_failure(&self) -> Option<Failure> {
        self.board.started().previous.as_ref()?.failure.clone().map(Failure::from)
    }

    /// Records where user code is, for operations that are built from other waits.
    pub(crate) fn mark(&self, place: &'static Location<'static>) {
        self.board.mark(Some(place));
    }

    /// Where user code makes an operation. Records the place.
    #[track_caller]
    fn call_site(&self) -> Site {
        self.board.mark(Some(Location::caller()));
        Site::here(&self.board)
    }
}

impl<W: 'static> Context<W> {
    /// Waits until a condition on the state holds: `ctx.wait_until(condition!("order.paid", |order|
    /// order.paid)).await?`.
    ///
    /// The condition is checked after every event of the run when no other code can make progress,
    /// and still holds when the wait ends: other code runs after that. A condition that holds at
    /// once leaves no trace in history.
    #[track_caller]
    pub fn wait_until(&self, condition: Condition<W>) -> WaitUntil<W> {
        WaitUntil::new(self.call_site(), &self.state, condition)
    }

    /// Waits until no handler of a signal or update runs. For code that decides itself what to do
    /// about them before the run ends or continues as new. Not for handlers: a handler would wait
    /// for itself.
    #[track_caller]
    pub fn handlers_finished(&self) -> WaitUntil<W> {
        self.until_handled(self.call_site())
    }

    /// The wait for the handlers that run now.
    pub(crate) fn running_handlers(&self) -> WaitUntil<W> {
        self.until_handled(Site::nowhere(&self.board))
    }

    fn until_handled(&self, site: Site) -> WaitUntil<W> {
        // Weak: the board keeps the predicate.
        let board = Rc::downgrade(&self.board);
        let finished = move |_: &W| board.upgrade().is_none_or(|board| !board.handlers_run());
        let condition = Condition::keyed(HANDLERS_FINISHED, finished);
        WaitUntil::new(site, &self.state, condition).about(self.board.shown_handlers())
    }
}

impl<W: Workflow> Context<W> {
    /// Ends the run and continues in a new one with an empty history:
    /// `return Err(ctx.continue_as_new(input))`. Unread signals are carried over, and so are
    /// signals and updates whose handlers have not finished: these handlers start again in the next
    /// run. The state is not carried over, nor are more than the newest 100 signals of names that
    /// the workflow does not declare.
    pub fn continue_as_new(&self, input: impl IntoArguments<W::Arguments>) -> Error {
        self.next_run(input).into()
    }

    /// As [`Context::continue_as_new`], with other options than this run has:
    /// `return Err(ctx.next_run(input).queue("large").into())`.
    pub fn next_run(&self, input: impl IntoArguments<W::Arguments>) -> NextRun {
        NextRun::new(&self.board, W::NAME, W::encode_input(&input.into_arguments()))
    }

    /// As [`Context::next_run`], with a workflow of another type, which takes over the id. A client
    /// that waits for the result gets that of the other type.
    pub fn next_run_as<N: Workflow>(&self, input: impl IntoArguments<N::Arguments>) -> NextRun {
        NextRun::new(&self.board, N::NAME, N::encode_input(&input.into_arguments()))
    }

    /// The last result of an earlier run, for runs of a cron schedule; runs that failed since do
    /// not change it.
    pub fn last_result(&self) -> Result<Option<W::Output>> {
        let previous = self.board.started().previous.as_ref();
        let result = previous.and_then(|previous| previous.last_result.as_ref());
        Ok(result.map(|result| W::decode_output(result)).transpose()?)
    }
}
