//! Interceptors: code of the user's that sees every call of a client, every attempt of an activity,
//! and everything that goes into and out of workflow code. They carry headers along, authorize,
//! measure and trace.
//!
//! One trait, [`Interceptor`], has a method for each place; each passes on by default. A client has a
//! chain of them, and so has a worker: that of its client, then its own.

mod activity;
#[cfg(feature = "worker")]
mod call;
mod headers;
mod propagate;
mod run;

use std::{fmt, sync::Arc};

#[cfg(feature = "worker")]
pub use self::call::{CallAnswer, CallKind, ClientCall, NextCall};
pub(crate) use self::headers::read as header;
pub use self::{
    activity::{Attempt, NextAttempt},
    headers::Headers,
    propagate::PropagateHeaders,
    run::{Message, MessageKind, Outgoing, OutgoingKind, RunFuture, RunInfo},
};
#[cfg(feature = "worker")]
use crate::ClientError;
pub use crate::{future::BoxFuture, registry::ActivityEnd};

/// Sees what goes in and out of clients and workers. Every method passes on by default.
///
/// [`run`](Self::run), [`message`](Self::message) and [`outgoing`](Self::outgoing) are called from
/// workflow code, on its thread: they must not block it, and a panic in one fails the workflow task, as
/// a panic of workflow code does.
///
/// `run` and `outgoing` are called again on replay, so the rules of workflow code apply to them: a
/// wrapper of `run` that changes the result of the run does so by nothing but what history records.
/// [`RunInfo`] has the time of the run and tells replay from the first time. `message` is not called on
/// replay: history records what it decided, so interceptors that refuse messages can be added, changed
/// and removed while runs are open.
///
/// ```
/// # extern crate abide_sdk as abide;
/// use abide::interceptor::{Interceptor, Message, RunInfo};
///
/// /// Takes no messages of another tenant. Senders choose their headers: this finds mistakes,
/// /// and is no protection from a sender who means harm.
/// struct OwnTenant;
///
/// impl Interceptor for OwnTenant {
///     fn message(&self, run: &RunInfo, message: &Message) -> Result<(), String> {
///         match message.headers.text("tenant") == run.headers().text("tenant") {
///             true => Ok(()),
///             false => Err(format!("{} is of another tenant", message.name)),
///         }
///     }
/// }
/// ```
pub trait Interceptor: Send + Sync + 'static {
    /// A call of a client: a start, signal, query, update, cancellation or anything else. Repeats of
    /// a lost call are one call.
    #[cfg(feature = "worker")]
    fn call<'a>(
        &'a self,
        call: ClientCall,
        next: NextCall<'a>,
    ) -> BoxFuture<'a, Result<CallAnswer, ClientError>> {
        next.run(call)
    }

    /// An attempt of an activity, local activities included.
    fn activity<'a>(
        &'a self,
        attempt: Attempt,
        next: NextAttempt<'a>,
    ) -> BoxFuture<'a, ActivityEnd> {
        next.run(attempt)
    }

    /// The main code of a run, as a future that may be wrapped in another. The wrapper may await
    /// `code` and nothing else.
    fn run(&self, run: &RunInfo, code: RunFuture) -> RunFuture {
        let _ = run;
        code
    }

    /// A signal, query or update arrives. An error refuses it: the sender of an update or query gets
    /// the text; a signal is dropped, and the text is logged and recorded in history, up to 1,000
    /// characters of it. Called when the message arrives, and again only if the task that brought it
    /// does not complete, because it fails or its worker stops: the task is then done again.
    fn message(&self, run: &RunInfo, message: &Message) -> Result<(), String> {
        let _ = (run, message);
        Ok(())
    }

    /// Workflow code is about to ask for something: an activity, a child, a sleep, a signal to
    /// another workflow, a next run. Headers that are set here travel with it.
    fn outgoing(&self, run: &RunInfo, call: &mut Outgoing<'_>) {
        let _ = (run, call);
    }
}

/// A chain of interceptors, the outermost first. An empty chain costs nothing.
#[derive(Clone, Default)]
pub(crate) struct Interceptors(Option<Arc<[Arc<dyn Interceptor>]>>);

impl Interceptors {
    pub(crate) const NONE: Self = Self(None);

    pub(crate) const fn of(chain: Arc<[Arc<dyn Interceptor>]>) -> Self {
        Self(Some(chain))
    }

    pub(crate) fn chain(&self) -> Option<Arc<[Arc<dyn Interceptor>]>> {
        self.0.clone()
    }

    /// The chain with one more interceptor, the innermost.
    #[must_use]
    pub(crate) fn with(&self, interceptor: Arc<dyn Interceptor>) -> Self {
        let chain = self.iter().cloned().chain([interceptor]);
        Self(Some(chain.collect()))
    }

    /// This chain around another.
    #[cfg(feature = "worker")]
    #[must_use]
    pub(crate) fn around(&self, inner: &Self) -> Self {
        inner.iter().fold(self.clone(), |chain, interceptor| chain.with(Arc::clone(interceptor)))
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    pub(crate) fn iter(&self) -> std::slice::Iter<'_, Arc<dyn Interceptor>> {
        self.as_slice().iter()
    }

    pub(crate) fn as_slice(&self) -> &[Arc<dyn Interceptor>] {
        self.0.as_deref().unwrap_or_default()
    }
}

impl fmt::Debug for Interceptors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} interceptors", self.as_slice().len())
    }
}
