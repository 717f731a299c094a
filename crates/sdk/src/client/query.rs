//! A query that a client sends.

use std::{
    future::{Future, IntoFuture},
    pin::Pin,
    sync::Arc,
};

use abide_core::{
    operation::{self, QueryAnswer, QueryRequest, RunTarget},
    payload::Payloads,
};

use super::{Client, ClientError, update::Decode};
use crate::payload::PayloadError;

/// A query that is sent when awaited; it resolves to the answer.
#[must_use = "nothing is sent until this is awaited"]
pub struct Query<O> {
    client: Client,
    target: RunTarget,
    name: String,
    input: Result<Payloads, PayloadError>,
    decode: Decode<O>,
}

impl<O> Query<O> {
    pub(super) fn new(
        client: Client,
        target: RunTarget,
        name: String,
        input: Result<Payloads, PayloadError>,
        decode: impl Fn(Payloads) -> Result<O, PayloadError> + Send + Sync + 'static,
    ) -> Self {
        Self { client, target, name, input, decode: Arc::new(decode) }
    }

    async fn send(self) -> Result<O, ClientError> {
        let query = QueryRequest::new(self.name, self.input?);
        match self.client.ask(operation::Query { target: self.target, query }).await {
            Ok(QueryAnswer(Ok(answer))) => Ok((self.decode)(answer)?),
            Ok(QueryAnswer(Err(failure))) => {
                Err(ClientError::QueryFailed(Box::new(failure.into())))
            }
            Err(ClientError::Unavailable(why)) => Err(ClientError::Unavailable(format!(
                "{why}; a query needs a worker on the run's queue: check that one is running"
            ))),
            Err(error) => Err(error),
        }
    }
}

impl<O: 'static> IntoFuture for Query<O> {
    type Output = Result<O, ClientError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}
