//! A signal that a client sends.

use std::{
    future::{Future, IntoFuture},
    pin::Pin,
};

use abide_core::{
    event::SignalReceived,
    ids::Key,
    operation::{self, RunTarget},
    payload::{Extension, Payloads},
};

use super::{Client, ClientError, repeat::fresh_key};
use crate::payload::PayloadError;

/// A signal that is sent when awaited.
#[must_use = "nothing is sent until this is awaited"]
pub struct Signal {
    client: Client,
    target: RunTarget,
    name: String,
    input: Result<Payloads, PayloadError>,
    key: Option<Key>,
}

impl Signal {
    pub(super) fn new(
        client: Client,
        target: RunTarget,
        name: String,
        input: Result<Payloads, PayloadError>,
    ) -> Self {
        Self { client, target, name, input, key: None }
    }

    /// The idempotency key: signals with the same key are delivered once. By default each call gets
    /// a new key.
    pub fn key(mut self, key: impl Into<Key>) -> Self {
        self.key = Some(key.into());
        self
    }

    async fn send(self) -> Result<(), ClientError> {
        let signal = SignalReceived {
            name: self.name,
            input: self.input?,
            identity: self.client.identity().into(),
            key: Some(self.key.unwrap_or_else(fresh_key)),
            ..SignalReceived::default()
        };
        let (target, extension) = (self.target, Extension::new());
        self.client.ask(operation::Signal { target, signal, extension }).await?;
        Ok(())
    }
}

impl IntoFuture for Signal {
    type Output = Result<(), ClientError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}
