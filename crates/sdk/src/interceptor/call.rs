//! Calls of clients, as interceptors see them.

use std::{fmt, sync::Arc, time::Duration};

use abide_core::{
    event::SignalReceived,
    ids::{RunId, WorkflowKey},
    operation::{AnyAnswer, AnyOperation, OperationName, RunOperation, Started},
    payload::PayloadMap,
};

use super::{Headers, Interceptor};
use crate::{Client, ClientError, future::BoxFuture};

/// A call of a client that is about to be sent.
#[derive(Debug)]
pub struct ClientCall {
    operation: AnyOperation,
    /// The headers that travel with it. Starts, signals, queries and updates carry headers; those of
    /// other calls go nowhere.
    pub headers: Headers,
}

/// The kinds of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CallKind {
    /// Starts a workflow, perhaps with a signal or an update.
    Start,
    /// Sends a signal.
    Signal,
    /// Asks a query.
    Query,
    /// Sends an update.
    Update,
    /// Requests cancellation.
    Cancel,
    /// Terminates a run.
    Terminate,
    /// Waits for a result.
    Result,
    /// Any other call: to pause, to list, to describe and so on.
    Other,
}

/// The answer to a call.
#[derive(Clone, Debug)]
pub struct CallAnswer(pub(crate) AnyAnswer);

impl CallAnswer {
    /// The run that a start has created or found.
    pub fn run_id(&self) -> Option<RunId> {
        match &self.0 {
            AnyAnswer::Started(Started { run, .. }) => Some(*run),
            _ => None,
        }
    }
}

/// The rest of the chain, and the engine at its end.
pub struct NextCall<'a> {
    client: &'a Client,
    rest: &'a [Arc<dyn Interceptor>],
    within: Option<Duration>,
}

impl<'a> NextCall<'a> {
    pub(crate) fn new(client: &'a Client, within: Option<Duration>) -> Self {
        Self { client, rest: client.interceptors().as_slice(), within }
    }

    /// Sends the call, and returns the engine's answer.
    pub fn run(self, call: ClientCall) -> BoxFuture<'a, Result<CallAnswer, ClientError>> {
        let Self { client, rest, within } = self;
        match rest.split_first() {
            Some((first, rest)) => first.call(call, NextCall { client, rest, within }),
            None => {
                Box::pin(
                    async move { client.send(call.into_operation(), within).await.map(CallAnswer) },
                )
            }
        }
    }
}

impl fmt::Debug for NextCall<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} more interceptors", self.rest.len())
    }
}

impl ClientCall {
    pub(crate) fn new(mut operation: AnyOperation) -> Self {
        let headers = header(&mut operation).map(std::mem::take).unwrap_or_default();
        Self { operation, headers: Headers(headers) }
    }

    /// What is called.
    pub fn kind(&self) -> CallKind {
        match self.operation.name() {
            OperationName::Start => CallKind::Start,
            OperationName::Signal => CallKind::Signal,
            OperationName::Query => CallKind::Query,
            OperationName::Update => CallKind::Update,
            OperationName::Cancel => CallKind::Cancel,
            OperationName::Terminate => CallKind::Terminate,
            OperationName::AwaitClose => CallKind::Result,
            _ => CallKind::Other,
        }
    }

    /// The type of the workflow to start, or the name of the signal, query or update; else empty.
    pub fn name(&self) -> &str {
        let AnyOperation::Run(operation) = &self.operation else { return "" };
        match &**operation {
            RunOperation::Start(start) => &start.spec.workflow_type,
            RunOperation::Signal(signal) => &signal.signal.name,
            RunOperation::Query(query) => &query.query.name,
            RunOperation::Update(update) => &update.request.name,
            _ => "",
        }
    }

    /// The workflow that is called; none for lists and counts.
    pub fn workflow(&self) -> Option<&WorkflowKey> {
        match &self.operation {
            AnyOperation::Run(operation) => Some(operation.workflow()),
            AnyOperation::Read(_) => None,
        }
    }

    fn into_operation(self) -> AnyOperation {
        let Self { mut operation, headers: Headers(headers) } = self;
        if let AnyOperation::Run(run) = &mut operation
            && let RunOperation::Start(start) = &mut **run
        {
            // What is sent along with a start carries the headers of the start.
            if let Some(SignalReceived { header, .. }) = &mut start.signal {
                header.clone_from(&headers);
            }
            if let Some(update) = &mut start.update {
                update.request.header.clone_from(&headers);
            }
        }
        if let Some(header) = header(&mut operation) {
            *header = headers;
        }
        operation
    }
}

/// The place of an operation's headers, if it carries any.
fn header(operation: &mut AnyOperation) -> Option<&mut PayloadMap> {
    let AnyOperation::Run(operation) = operation else { return None };
    match &mut **operation {
        RunOperation::Start(start) => Some(&mut start.spec.header),
        RunOperation::Signal(signal) => Some(&mut signal.signal.header),
        RunOperation::Query(query) => Some(&mut query.query.header),
        RunOperation::Update(update) => Some(&mut update.request.header),
        _ => None,
    }
}
