//! Programs as workflows of the SDK: one workflow type for each type of a world. Their signals,
//! queries and updates cover every kind of the SDK; some reschedule deadlines, some make conditions
//! hold.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    sync::OnceLock,
    time::Duration,
};

use abide_core::{payload::Payload, time::Timestamp};
use abide_sdk::{
    Condition, Context, Deadline, Error, QueryDef, RawPayload, Registry, RescheduleError,
    ReturnedError, SignalDef, UpdateDef, Workflow,
    approval::{self, Answer, Approvals, Approving, Receipt},
    condition,
    context::{ChildHandle, ExternalWorkflow},
    definition::{
        QueryHandler, SignalCode, SignalHandler, UnfinishedHandlers, UpdateCode, UpdateHandler,
    },
    future::LocalBoxFuture,
    payload::Arguments,
};

use super::{
    handlers::{accept, poke, work},
    scopes,
    steps::{self, Stop},
};
use crate::programs::{Goal, Program};

/// Query that returns the outcomes of the steps so far.
pub(super) const TRACE: &str = "trace";

/// Signals with a handler; all others wait to be received.
pub const HANDLED_SIGNALS: [&str; 5] = ["mark", "poke", "push", "pull", "decision"];

/// People who may decide requests.
pub const APPROVERS: [&str; 3] = ["anna", "ben", "cleo"];

/// A person who may neither vote nor decide.
pub const OUTSIDER: &str = "outsider";

/// Maximum number of votes; later ones are refused.
const VOTES_MAX: u64 = 4;

const TYPES: [&str; 5] = ["type0", "type1", "type2", "type3", "type4"];

thread_local! {
    /// Program of the run that is being advanced: a workflow is a type and cannot carry it.
    static PROGRAM: RefCell<Rc<Program>> = RefCell::default();
    /// Number of non-deterministic values so far.
    static VALUES_MADE: Cell<u64> = const { Cell::new(0) };
}

/// Resets the values, so that every run of the same world makes the same ones.
pub fn begin_world() {
    VALUES_MADE.set(0);
}

/// A value that has not been used before.
pub fn make_value() -> u64 {
    VALUES_MADE.set(VALUES_MADE.get() + 1);
    VALUES_MADE.get()
}

/// Provides the program for a run that starts within `action`.
pub(super) fn with_program<T>(program: &Rc<Program>, action: impl FnOnce() -> T) -> T {
    let before = PROGRAM.replace(program.clone());
    let result = action();
    PROGRAM.set(before);
    result
}

pub(super) fn registry() -> &'static Registry {
    static REGISTRY: OnceLock<Registry> = OnceLock::new();
    REGISTRY.get_or_init(|| {
        let mut registry = Registry::new();
        let added = registry
            .workflow::<Scripted<0>>()
            .and_then(|()| registry.workflow::<Scripted<1>>())
            .and_then(|()| registry.workflow::<Scripted<2>>())
            .and_then(|()| registry.workflow::<Scripted<3>>())
            .and_then(|()| registry.workflow::<Scripted<4>>());
        debug_assert_eq!(added, Ok(()), "the names of types differ");
        registry
    })
}

/// The workflow type with this number: its state while it runs its program.
pub(super) struct Scripted<const N: usize> {
    pub(super) program: Rc<Program>,
    /// Outcomes of the steps so far, in the order in which they ended.
    pub(super) trace: Vec<String>,
    /// Number of numbered parts of the program.
    numbered: usize,
    /// Number of requests for approval.
    pub(super) requests: usize,
    approvals: Approvals,
    /// Number of received signals `mark`.
    marks: u64,
    /// Number of accepted updates `vote`.
    votes: u64,
    /// Number of finished sleeps.
    pub(super) sleeps: u64,
    /// Deadlines of waits, in order of their start. Those of waits that have ended are removed by
    /// the next lookup.
    deadlines: Vec<Deadline>,
}

impl<const N: usize> Scripted<N> {
    pub(super) const GO: SignalDef<Self, (RawPayload,)> = kept("go");
    pub(super) const TELL: SignalDef<Self, (RawPayload,)> = kept("tell");
    pub(super) const STOP: SignalDef<Self, (RawPayload,)> = kept("stop");
    const MARK: SignalDef<Self, (RawPayload,)> =
        SignalDef::new("mark", Arguments::one(), SignalCode::Apply(Self::mark));
    const PUSH: SignalDef<Self, (RawPayload,)> =
        SignalDef::new("push", Arguments::one(), SignalCode::Apply(Self::push));
    const PULL: SignalDef<Self, (RawPayload,)> =
        SignalDef::new("pull", Arguments::one(), SignalCode::Apply(Self::pull));
    const POKE: SignalDef<Self, (RawPayload,)> =
        SignalDef::new("poke", Arguments::one(), SignalCode::Task(poke));
    const DECISION: SignalDef<Self, (Answer,)> = approval::signal();
    const DECIDE: UpdateDef<Self, (Answer,), Receipt> = approval::update();
    const TRACE: QueryDef<Self, (), RawPayload> =
        QueryDef::new(TRACE, Arguments::none(), |state, ()| Ok(state.result()));
    const ACCEPT: UpdateDef<Self, (RawPayload,), RawPayload> =
        UpdateDef::new("accept", Arguments::one(), UpdateCode::Task(accept));
    const WORK: UpdateDef<Self, (RawPayload,), RawPayload> =
        UpdateDef::new("work", Arguments::one(), UpdateCode::Task(work));
    const REJECT: UpdateDef<Self, (RawPayload,), RawPayload> = UpdateDef::new(
        "reject",
        Arguments::one(),
        UpdateCode::Apply(|state: &mut Self, _| Ok(state.result())),
    )
    .validated(|_, _| Err(ReturnedError::new("rejected")));
    const VOTE: UpdateDef<Self, (RawPayload,), RawPayload> =
        UpdateDef::new("vote", Arguments::one(), UpdateCode::Apply(Self::vote))
            .validated(Self::may_vote);
    const POSTPONE: UpdateDef<Self, (RawPayload,), RawPayload> =
        UpdateDef::new("postpone", Arguments::one(), UpdateCode::Apply(Self::postpone));

    /// A number for a part of the program, which identifies it in history.
    pub(super) fn next_number(&mut self) -> usize {
        self.numbered += 1;
        self.numbered
    }

    pub(super) fn note(&mut self, text: impl Into<String>) {
        self.trace.push(text.into());
    }

    /// Keeps the deadline of a wait that has started, so that others can reschedule it.
    pub(super) fn watch(&mut self, deadline: Deadline) {
        self.deadlines.push(deadline);
    }

    /// Deadline of the oldest open wait.
    pub(super) fn oldest_deadline(&mut self) -> Deadline {
        self.deadlines.retain(Deadline::is_open);
        self.deadlines.first().cloned().unwrap_or_default()
    }

    pub(super) fn condition(goal: Goal) -> Condition<Self> {
        match goal {
            Goal::TwoMarks => condition!("marks:2", |state| state.marks >= 2),
            Goal::Slept => condition!(|state| state.sleeps > 0),
            Goal::Marks(count) | Goal::Votes(count) => {
                let key = goal.key().unwrap_or_default();
                let of_marks = matches!(goal, Goal::Marks(_));
                Condition::keyed(key, move |state: &Self| {
                    let reached = if of_marks { state.marks } else { state.votes };
                    reached >= count
                })
            }
        }
    }

    fn mark(&mut self, text: RawPayload) {
        self.marks += 1;
        self.note(format!("mark={}", steps::text(&text)));
    }

    /// Postpones the oldest deadline by a fixed time.
    fn push(&mut self, text: RawPayload) {
        let sum: u64 = text.0.data.iter().copied().map(u64::from).sum();
        let deadline = self.oldest_deadline();
        let pushed = deadline.extend(Duration::from_millis(sum % 8 * 250));
        let timer = deadline.timer_id().map_or("none", |timer| timer.as_str());
        self.note(format!("push={}, {timer} {pushed:?}", steps::text(&text)));
    }

    /// Reschedules the oldest deadline to the time with which the text begins, in milliseconds.
    fn pull(&mut self, text: RawPayload) {
        let text = steps::text(&text);
        let millis = text.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or_default();
        let pulled = self.oldest_deadline().reset(Timestamp::from_unix_millis(millis));
        self.note(format!("pull={text}, {pulled:?}"));
    }

    fn may_vote(&self, voter: &RawPayload) -> Result<(), ReturnedError> {
        match steps::text(voter).as_str() {
            OUTSIDER => Err(ReturnedError::new("not allowed")),
            _ if self.votes >= VOTES_MAX => Err(ReturnedError::new("already decided")),
            _ => Ok(()),
        }
    }

    fn vote(&mut self, voter: RawPayload) -> Result<RawPayload, ReturnedError> {
        self.votes += 1;
        self.note(format!("vote={}", steps::text(&voter)));
        Ok(self.result())
    }

    /// Reschedules the oldest deadline to the requested time, in milliseconds.
    fn postpone(&mut self, at: RawPayload) -> Result<RawPayload, ReturnedError> {
        let millis = steps::text(&at).parse().map_err(|_| ReturnedError::new("that is no time"))?;
        let moved = self.oldest_deadline().reset(Timestamp::from_unix_millis(millis));
        self.note(format!("postpone={moved:?}"));
        moved
            .map(|()| self.result())
            .map_err(|refused: RescheduleError| ReturnedError::new(refused))
    }

    /// Outcomes of the steps so far.
    pub(super) fn result(&self) -> RawPayload {
        RawPayload(Payload::new(self.trace.join(";")))
    }
}

impl<const N: usize> Workflow for Scripted<N> {
    const NAME: &'static str = TYPES[N];
    const ARGUMENTS: Arguments<()> = Arguments::none();
    const SIGNALS: &'static [&'static dyn SignalHandler<Self>] = &[
        &Self::GO,
        &Self::TELL,
        &Self::STOP,
        &Self::MARK,
        &Self::PUSH,
        &Self::PULL,
        &Self::POKE,
        &Self::DECISION,
    ];
    const QUERIES: &'static [&'static dyn QueryHandler<Self>] = &[&Self::TRACE];
    const UPDATES: &'static [&'static dyn UpdateHandler<Self>] =
        &[&Self::ACCEPT, &Self::WORK, &Self::REJECT, &Self::VOTE, &Self::POSTPONE, &Self::DECIDE];

    const UNFINISHED_HANDLERS: UnfinishedHandlers = unfinished(N);

    type Arguments = ();
    type Input = ();
    type Output = RawPayload;
    type Child = ChildHandle<Self>;
    type External = ExternalWorkflow<Self>;

    fn init((): &()) -> Self {
        Self {
            program: PROGRAM.with_borrow(Rc::clone),
            trace: Vec::new(),
            numbered: 0,
            requests: 0,
            approvals: Approvals::default(),
            marks: 0,
            votes: 0,
            sleeps: 0,
            deadlines: Vec::new(),
        }
    }

    fn run(
        ctx: Context<Self>,
        (): (),
    ) -> LocalBoxFuture<'static, Result<RawPayload, ReturnedError>> {
        Box::pin(async move {
            let program = ctx.read(|state| state.program.clone());
            match scopes::whole(&ctx, &program).await {
                Ok(()) => Ok(ctx.read(Self::result)),
                Err(Stop(error)) => Err(ReturnedError::new(error)),
            }
        })
    }
}

/// Runs of some types end without waiting for their handlers.
const fn unfinished(number: usize) -> UnfinishedHandlers {
    if number % 3 == 1 { UnfinishedHandlers::Abandon } else { UnfinishedHandlers::Wait }
}

/// Whether runs of the type complete only after their handlers.
pub fn waits_for_handlers(workflow_type: &str) -> bool {
    let number = TYPES.iter().position(|name| *name == workflow_type);
    number.is_some_and(|number| unfinished(number) == UnfinishedHandlers::Wait)
}

impl<const N: usize> Approving for Scripted<N> {
    fn approvals(&self) -> &Approvals {
        &self.approvals
    }

    fn approvals_mut(&mut self) -> &mut Approvals {
        &mut self.approvals
    }
}

const fn kept<const N: usize>(name: &'static str) -> SignalDef<Scripted<N>, (RawPayload,)> {
    SignalDef::new(name, Arguments::one(), SignalCode::Keep)
}

/// Programs that ignore cancel requests continue when one ends a wait.
pub(super) fn ignored<const N: usize>(
    ctx: &Context<Scripted<N>>,
    error: Error,
) -> Result<(), Error> {
    let ignores = ctx.read(|state| state.program.ignores_cancel);
    match error {
        Error::Cancelled if ignores => {
            ctx.write(|state| state.note("cancel ignored"));
            Ok(())
        }
        error => Err(error),
    }
}
