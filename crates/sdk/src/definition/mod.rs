//! What a workflow is made of, as values: its run, signals, queries and updates. The macro
//! `#[workflow]` writes them; clients and other workflows name them by path.

mod query;
mod signal;
mod update;

use abide_core::payload::{Payload, Payloads};

pub use self::{
    query::{QueryDef, QueryHandler},
    signal::{Arrival, SignalCode, SignalDef, SignalHandler},
    update::{UpdateCode, UpdateDef, UpdateHandler, UpdateProgress, Validator},
};
use crate::{
    context::Context,
    future::LocalBoxFuture,
    payload::{self, Arguments, Data, PayloadError},
    raised::Raised,
};

/// A workflow: state with a run, signals, queries and updates. Implemented by `#[workflow]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a workflow",
    note = "put `#[workflow]` on its impl block and `#[run]` on one of the methods"
)]
pub trait Workflow: Sized + 'static {
    /// The type's name on the wire.
    const NAME: &'static str;
    /// How the arguments travel.
    const ARGUMENTS: Arguments<Self::Input>;
    /// All signals.
    const SIGNALS: &'static [&'static dyn SignalHandler<Self>];
    /// All queries.
    const QUERIES: &'static [&'static dyn QueryHandler<Self>];
    /// All updates.
    const UPDATES: &'static [&'static dyn UpdateHandler<Self>];
    /// What becomes of handlers that still run when the run has its result.
    const UNFINISHED: Unfinished = Unfinished::Wait;

    /// The arguments of the run.
    type Input: 'static;
    /// Its result.
    type Output: Data;

    /// The state at the beginning.
    fn init(input: &Self::Input) -> Self;

    /// The run itself.
    fn run(
        ctx: Context<Self>,
        input: Self::Input,
    ) -> LocalBoxFuture<'static, Result<Self::Output, Raised>>;

    /// The arguments as they travel.
    fn encode_input(input: &Self::Input) -> Result<Payloads, PayloadError> {
        Self::ARGUMENTS
            .encode(input)
            .map_err(|error| error.of(format!("input of workflow {}", Self::NAME)))
    }

    /// The result as it was sent.
    fn decode_output(result: &[Payload]) -> Result<Self::Output, PayloadError> {
        payload::decode(result)
            .map_err(|error: PayloadError| error.of(format!("result of workflow {}", Self::NAME)))
    }
}

/// What becomes of handlers that still run when the run has its result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unfinished {
    /// The run waits for them before it completes.
    #[default]
    Wait,
    /// They end with the run: callers of updates are told, and a warning names them.
    Abandon,
}

/// The parts that all definitions have in common.
macro_rules! definition {
    ($name:ident<$($parameter:ident),+>, $kind:literal) => {
        impl<$($parameter),+> Clone for $name<$($parameter),+> {
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<$($parameter),+> Copy for $name<$($parameter),+> {}

        impl<$($parameter),+> std::fmt::Debug for $name<$($parameter),+> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!($kind, " {}"), self.name)
            }
        }

        impl<$($parameter),+> $name<$($parameter),+> {
            /// The name on the wire.
            pub const fn name(&self) -> &'static str {
                self.name
            }

            /// The arguments as they travel.
            pub fn encode(&self, input: &I) -> Result<Payloads, PayloadError> {
                self.arguments.encode(input).map_err(|error| error.of(self.input_subject()))
            }

            pub(crate) fn decode_input(&self, input: &[Payload]) -> Result<I, PayloadError> {
                self.arguments.decode(input).map_err(|error| error.of(self.input_subject()))
            }

            fn input_subject(&self) -> String {
                format!(concat!("input of ", $kind, " {}"), self.name)
            }
        }
    };
}
use definition;
