//! What a workflow is made of, as values: its run, signals, queries and updates. The macro
//! `#[workflow]` writes them; clients and other workflows refer to them by path.

mod query;
mod signal;
mod update;

use abide_core::payload::{Payload, Payloads};

pub use self::{
    query::{QueryDef, QueryHandler},
    signal::{Arrival, SignalCode, SignalDef, SignalHandler},
    update::{UpdateCode, UpdateDef, UpdateHandler, UpdateProgress, UpdateTask, Validator},
};
use crate::{
    arguments::ArgumentList,
    context::{ChildHandle, Context, ExternalWorkflow},
    future::LocalBoxFuture,
    payload::{self, PayloadError, PayloadValue},
    returned::ReturnedError,
};

/// A workflow: state with a run, signals, queries and updates. Implemented by `#[workflow]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a workflow",
    note = "put `#[workflow]` on the async function; or on the impl block, and `#[run]` on one of its methods"
)]
pub trait Workflow: Sized + 'static {
    /// The workflow's type name, as registered and recorded in history.
    const NAME: &'static str;
    /// How the arguments are encoded.
    #[doc(hidden)]
    const ARGUMENTS: payload::Arguments<Self::Arguments>;
    /// Every signal that the workflow declares.
    #[doc(hidden)]
    const SIGNALS: &'static [&'static dyn SignalHandler<Self>];
    /// Every query that the workflow declares.
    #[doc(hidden)]
    const QUERIES: &'static [&'static dyn QueryHandler<Self>];
    /// Every update that the workflow declares.
    #[doc(hidden)]
    const UPDATES: &'static [&'static dyn UpdateHandler<Self>];
    /// What happens to handlers that still run when the run has its result.
    #[doc(hidden)]
    const UNFINISHED_HANDLERS: UnfinishedHandlers = UnfinishedHandlers::Wait;

    /// The types of the run's arguments, as a tuple.
    type Arguments: ArgumentList<Value = Self::Input>;
    /// The run's arguments: `()`, the argument itself, or a tuple of several.
    type Input: 'static;
    /// The type of the run's result.
    type Output: PayloadValue;
    /// The handle that a parent has of such a child: the workflow's signals are its methods.
    type Child: From<ChildHandle<Self>>;
    /// The handle that another workflow has of such a run, with the same methods.
    type External: From<ExternalWorkflow<Self>>;

    /// Creates the state at the start of the run.
    #[doc(hidden)]
    fn init(input: &Self::Input) -> Self;

    /// The main code of the run; the run closes when it returns.
    #[doc(hidden)]
    fn run(
        ctx: Context<Self>,
        input: Self::Input,
    ) -> LocalBoxFuture<'static, Result<Self::Output, ReturnedError>>;

    /// Encodes the arguments of the run, one payload each.
    #[doc(hidden)]
    fn encode_input(input: &Self::Input) -> Result<Payloads, PayloadError> {
        Self::ARGUMENTS
            .encode(input)
            .map_err(|error| error.of(format!("input of workflow {}", Self::NAME)))
    }

    /// Decodes the result of the run from its payloads.
    #[doc(hidden)]
    fn decode_output(result: &[Payload]) -> Result<Self::Output, PayloadError> {
        payload::decode(result)
            .map_err(|error: PayloadError| error.of(format!("result of workflow {}", Self::NAME)))
    }
}

/// What happens to handlers that still run when the run has its result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnfinishedHandlers {
    /// The run waits for them before it completes.
    #[default]
    Wait,
    /// They end with the run: callers of updates get an error, and a warning names the handlers.
    Abandon,
}

/// The parts that all definitions have in common.
macro_rules! definition {
    ($name:ident<$($parameter:ident $(: $bound:ident)?),+>, $kind:literal) => {
        impl<$($parameter $(: $bound)?),+> Clone for $name<$($parameter),+> {
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<$($parameter $(: $bound)?),+> Copy for $name<$($parameter),+> {}

        impl<$($parameter $(: $bound)?),+> std::fmt::Debug for $name<$($parameter),+> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!($kind, " {}"), self.name)
            }
        }

        impl<$($parameter $(: $bound)?),+> $name<$($parameter),+> {
            /// The name under which it is declared and called.
            pub const fn name(&self) -> &'static str {
                self.name
            }

            /// Encodes the arguments, one payload each.
            pub fn encode(&self, input: &I::Value) -> Result<Payloads, PayloadError> {
                self.arguments.encode(input).map_err(|error| error.of(self.input_subject()))
            }

            pub(crate) fn decode_input(&self, input: &[Payload]) -> Result<I::Value, PayloadError> {
                self.arguments.decode(input).map_err(|error| error.of(self.input_subject()))
            }

            fn input_subject(&self) -> String {
                format!(concat!("input of ", $kind, " {}"), self.name)
            }
        }
    };
}
use definition;
