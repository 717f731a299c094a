//! Retries calls without an answer. A call that may have taken effect is retried with the same key,
//! so retrying is always safe.

use std::time::Duration;

use abide_core::{
    ids::Key,
    operation::{AnyAnswer, AnyOperation, CallError, Operation},
};
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use super::{Client, ClientError};
use crate::{
    backoff::Backoff,
    interceptor::{ClientCall, NextCall},
};

/// The longest pause between two tries.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

impl Client {
    /// Sends an operation that is answered soon, and retries it until it is answered or the
    /// client's timeout has passed. Users have typed methods; this is for Abide's own programs, which
    /// show what the engine answers as it is.
    #[doc(hidden)]
    pub async fn ask<O: Operation>(&self, operation: O) -> Result<O::Answer, ClientError> {
        self.through_interceptors(operation, Some(self.call_timeout)).await
    }

    /// Sends an operation that is answered when a run has reached a state, and retries it until it
    /// is answered, however long that takes. For Abide's own programs.
    #[doc(hidden)]
    pub async fn wait<O: Operation>(&self, operation: O) -> Result<O::Answer, ClientError> {
        self.through_interceptors(operation, None).await
    }

    async fn through_interceptors<O: Operation>(
        &self,
        operation: O,
        within: Option<Duration>,
    ) -> Result<O::Answer, ClientError> {
        let operation = operation.into();
        let answer = if self.interceptors().is_empty() {
            self.send(operation, within).await?
        } else {
            NextCall::new(self, within).run(ClientCall::new(operation)).await?.0
        };
        Ok(O::answer(answer)?)
    }

    /// Sends an operation, and retries it until it is answered or this much time has passed.
    pub(crate) async fn send(
        &self,
        operation: AnyOperation,
        within: Option<Duration>,
    ) -> Result<AnyAnswer, ClientError> {
        let mut unanswered = None;
        let Some(within) = within else {
            return self.repeated(operation, &mut unanswered).await;
        };
        match timeout(within, self.repeated(operation, &mut unanswered)).await {
            Ok(result) => result,
            Err(_) => Err(no_answer(within, unanswered)),
        }
    }

    /// Retries until there is a final answer; keeps the last answer that was not final. Payloads are
    /// encoded once, so that every retry sends the same bytes.
    async fn repeated(
        &self,
        operation: AnyOperation,
        unanswered: &mut Option<CallError>,
    ) -> Result<AnyAnswer, ClientError> {
        let mut operation = operation;
        self.codecs().encode_all(&mut operation).await?;
        let mut answer = self.answered(operation, unanswered).await?;
        // Without codecs, encoded data is returned as it is; what needs its type says what is missing.
        if !self.codecs().is_empty() {
            self.codecs().decode_all(&mut answer).await?;
        }
        Ok(answer)
    }

    async fn answered(
        &self,
        operation: AnyOperation,
        unanswered: &mut Option<CallError>,
    ) -> Result<AnyAnswer, CallError> {
        let mut backoff = Backoff::new(LONGEST_WAIT);
        loop {
            match self.transport().ask(operation.clone()).await {
                Err(error) if error.passing() => {
                    tracing::debug!(%error, "retrying the call");
                    *unanswered = Some(error);
                    sleep(backoff.step()).await;
                }
                result => return result,
            }
        }
    }
}

/// The error after the timeout. Its display adds that the engine cannot be reached.
fn no_answer(within: Duration, unanswered: Option<CallError>) -> ClientError {
    let why = match unanswered {
        Some(CallError::Unavailable(why)) => format!(": {why}"),
        Some(error) => format!(": {error}"),
        None => String::new(),
    };
    ClientError::Unavailable(format!("no answer within {within:?}{why}"))
}

/// A key for a call without one.
pub(super) fn fresh_key() -> Key {
    Uuid::new_v4().to_string().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_takes_too_long_says_what_stood_in_its_way() {
        let refused = CallError::Unavailable("connection refused".into());
        let told = |unanswered| no_answer(Duration::from_secs(10), unanswered).to_string();
        let expected = "the engine is unreachable: no answer within 10s: connection refused";
        assert_eq!(told(Some(refused)), expected);
        assert!(
            told(Some(CallError::Overloaded))
                .ends_with("within 10s: too many requests are pending for the run: retry later")
        );
        assert!(told(None).ends_with("no answer within 10s"));
    }
}
