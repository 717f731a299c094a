//! Queries: questions about the state, which they do not change.

use abide_core::{
    failure::Failure,
    payload::{Payload, Payloads},
};

use super::definition;
use crate::{
    arguments::ArgumentList,
    payload::{self, Arguments, PayloadError, PayloadValue},
    returned::ReturnedError,
};

/// A query as a value: of workflow `W`, with arguments of types `I` and answer `O`.
pub struct QueryDef<W: 'static, I: ArgumentList, O: 'static> {
    name: &'static str,
    arguments: Arguments<I>,
    code: fn(&W, I::Value) -> Result<O, ReturnedError>,
}

definition!(QueryDef<W, I: ArgumentList, O>, "query");

impl<W, I: ArgumentList, O> QueryDef<W, I, O> {
    /// A query with this name.
    #[doc(hidden)]
    pub const fn new(
        name: &'static str,
        arguments: Arguments<I>,
        code: fn(&W, I::Value) -> Result<O, ReturnedError>,
    ) -> Self {
        Self { name, arguments, code }
    }
}

impl<W, I: ArgumentList, O: PayloadValue> QueryDef<W, I, O> {
    /// Decodes an answer from its payloads.
    pub fn decode(&self, answer: &[Payload]) -> Result<O, PayloadError> {
        payload::decode(answer)
            .map_err(|error: PayloadError| error.of(format!("answer of query {}", self.name)))
    }
}

/// A query without the types of its arguments and answer.
pub trait QueryHandler<W>: Sync {
    /// The name under which clients send the query.
    fn name(&self) -> &'static str;

    /// Decodes the arguments and answers from the state.
    fn answer(&self, state: &W, input: &[Payload]) -> Result<Payloads, Failure>;
}

impl<W, I: ArgumentList, O: PayloadValue> QueryHandler<W> for QueryDef<W, I, O> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn answer(&self, state: &W, input: &[Payload]) -> Result<Payloads, Failure> {
        let answer = self
            .decode_input(input)
            .map_err(ReturnedError::new)
            .and_then(|input| (self.code)(state, input))
            .and_then(|answer| payload::encode(&answer).map_err(ReturnedError::new));
        answer.map_err(ReturnedError::into_failure)
    }
}
