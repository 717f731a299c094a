//! Programs as workflows of the SDK: one workflow type for each type of a world. Signals, queries and
//! updates are of every kind that the SDK has.

use std::{cell::RefCell, rc::Rc, sync::OnceLock, time::Duration};

use abide_core::{
    payload::Payload,
    program::{OnCancel, Program},
};
use abide_sdk::{
    Context, Error, QueryDef, Raised, RawPayload, Registry, SignalDef, UpdateDef, Workflow,
    definition::{QueryHandler, SignalCode, SignalHandler, UpdateCode, UpdateHandler},
    future::LocalBoxFuture,
    payload::Arguments,
};

use super::steps::{self, Stop};

/// The query that tells what the steps came to so far.
pub(super) const TRACE: &str = "trace";

/// Signals that are handled when they arrive; all others wait to be received.
pub const HANDLED_SIGNALS: [&str; 2] = ["mark", "poke"];

/// How long the handler of `poke` takes.
const POKE: Duration = Duration::from_millis(700);

/// The names of the types.
const TYPES: [&str; 5] = ["type0", "type1", "type2", "type3", "type4"];

thread_local! {
    /// The program of the run that is being advanced: a workflow is a type and cannot carry it.
    static PROGRAM: RefCell<Rc<Program>> = RefCell::default();
}

/// Lets a run that begins within `action` find its program.
pub(super) fn with_program<T>(program: &Rc<Program>, action: impl FnOnce() -> T) -> T {
    let before = PROGRAM.replace(program.clone());
    let result = action();
    PROGRAM.set(before);
    result
}

/// All types as workflows.
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

/// The workflow of the type with this number: its state while it follows its program.
pub(super) struct Scripted<const N: usize> {
    pub(super) program: Rc<Program>,
    /// What the steps came to so far, in the order in which they ended.
    pub(super) trace: Vec<String>,
    /// How many children were asked for.
    pub(super) children: usize,
}

impl<const N: usize> Scripted<N> {
    pub(super) const GO: SignalDef<Self, RawPayload> = kept("go");
    pub(super) const TELL: SignalDef<Self, RawPayload> = kept("tell");
    pub(super) const STOP: SignalDef<Self, RawPayload> = kept("stop");
    const MARK: SignalDef<Self, RawPayload> =
        SignalDef::new("mark", Arguments::one(), SignalCode::Apply(Self::mark));
    const POKE: SignalDef<Self, RawPayload> =
        SignalDef::new("poke", Arguments::one(), SignalCode::Task(poke));
    const TRACE: QueryDef<Self, (), RawPayload> =
        QueryDef::new(TRACE, Arguments::none(), |state, ()| Ok(state.result()));
    const ACCEPT: UpdateDef<Self, (), RawPayload> =
        UpdateDef::new("accept", Arguments::none(), UpdateCode::Task(accept));
    const REJECT: UpdateDef<Self, (), RawPayload> = UpdateDef::new(
        "reject",
        Arguments::none(),
        UpdateCode::Apply(|state: &mut Self, ()| Ok(state.result())),
    )
    .validated(|_, ()| Err(Raised::new("rejected")));

    pub(super) fn note(&mut self, text: impl Into<String>) {
        self.trace.push(text.into());
    }

    fn mark(&mut self, text: RawPayload) {
        self.note(format!("mark={}", steps::text(&text)));
    }

    fn result(&self) -> RawPayload {
        RawPayload(Payload::new(self.trace.join(";")))
    }
}

impl<const N: usize> Workflow for Scripted<N> {
    const NAME: &'static str = TYPES[N];
    const ARGUMENTS: Arguments<()> = Arguments::none();
    const SIGNALS: &'static [&'static dyn SignalHandler<Self>] =
        &[&Self::GO, &Self::TELL, &Self::STOP, &Self::MARK, &Self::POKE];
    const QUERIES: &'static [&'static dyn QueryHandler<Self>] = &[&Self::TRACE];
    const UPDATES: &'static [&'static dyn UpdateHandler<Self>] = &[&Self::ACCEPT, &Self::REJECT];

    type Input = ();
    type Output = RawPayload;

    fn init((): &()) -> Self {
        Self { program: PROGRAM.with_borrow(Rc::clone), trace: Vec::new(), children: 0 }
    }

    fn run(ctx: Context<Self>, (): ()) -> LocalBoxFuture<'static, Result<RawPayload, Raised>> {
        Box::pin(async move {
            let program = ctx.read(|state| state.program.clone());
            match steps::follow(&ctx, &program.body).await {
                Ok(()) | Err(Stop::Completed) => Ok(ctx.read(Self::result)),
                Err(Stop::Error(error)) => Err(Raised::new(error)),
            }
        })
    }
}

const fn kept<const N: usize>(name: &'static str) -> SignalDef<Scripted<N>, RawPayload> {
    SignalDef::new(name, Arguments::one(), SignalCode::Keep)
}

/// A signal whose handler takes its time.
fn poke<const N: usize>(
    ctx: Context<Scripted<N>>,
    text: RawPayload,
) -> LocalBoxFuture<'static, ()> {
    Box::pin(async move {
        let slept = ctx.sleep(POKE).await;
        ctx.write(|state| state.note(format!("poke={}, {slept:?}", steps::text(&text))));
    })
}

/// An update that takes as long as the program says.
fn accept<const N: usize>(
    ctx: Context<Scripted<N>>,
    (): (),
) -> LocalBoxFuture<'static, Result<RawPayload, Raised>> {
    Box::pin(async move {
        if let Some(delay) = ctx.read(|state| state.program.update_delay) {
            let slept = ctx.sleep(delay).await;
            slept.or_else(|error| ignored(&ctx, error)).map_err(Raised::new)?;
        }
        Ok(ctx.read(Scripted::result))
    })
}

/// Programs that ignore a request to cancel go on when it ends one of their waits.
pub(super) fn ignored<const N: usize>(
    ctx: &Context<Scripted<N>>,
    error: Error,
) -> Result<(), Error> {
    let ignores = ctx.read(|state| state.program.on_cancel == OnCancel::Ignore);
    match error {
        Error::Cancelled if ignores => {
            ctx.write(|state| state.note("cancel ignored"));
            Ok(())
        }
        error => Err(error),
    }
}
