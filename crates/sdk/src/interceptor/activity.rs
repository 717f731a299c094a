//! Attempts of activities, as interceptors see them.

use std::{fmt, sync::Arc};

use abide_core::payload::Payloads;

use super::{Interceptor, Interceptors};
use crate::{
    activity::{ActivityCode, ActivityContext, ActivityEnd},
    future::BoxFuture,
};

/// An attempt of an activity that is about to run.
#[derive(Debug)]
#[non_exhaustive]
pub struct Attempt {
    /// What the activity gets: names, headers, the number of the attempt.
    pub context: ActivityContext,
    /// The encoded arguments, one payload each.
    pub input: Payloads,
}

/// The rest of the chain, and the code of the activity at its end.
pub struct NextAttempt<'a> {
    rest: &'a [Arc<dyn Interceptor>],
    code: &'a dyn ActivityCode,
}

impl<'a> NextAttempt<'a> {
    /// Runs the attempt.
    pub fn run(self, attempt: Attempt) -> BoxFuture<'a, ActivityEnd> {
        let Self { rest, code } = self;
        match rest.split_first() {
            Some((first, rest)) => first.activity(attempt, NextAttempt { rest, code }),
            None => code.run(attempt.context, attempt.input),
        }
    }
}

impl fmt::Debug for NextAttempt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} more interceptors", self.rest.len())
    }
}

/// The code of an activity within a chain.
struct Intercepted {
    interceptors: Interceptors,
    code: Arc<dyn ActivityCode>,
}

impl ActivityCode for Intercepted {
    fn run(&self, context: ActivityContext, input: Payloads) -> BoxFuture<'static, ActivityEnd> {
        let (interceptors, code) = (self.interceptors.clone(), Arc::clone(&self.code));
        Box::pin(async move {
            let next = NextAttempt { rest: interceptors.as_slice(), code: &*code };
            next.run(Attempt { context, input }).await
        })
    }
}

impl Interceptors {
    /// The code of an activity within this chain.
    pub(crate) fn around_activity(&self, code: Arc<dyn ActivityCode>) -> Arc<dyn ActivityCode> {
        match self.is_empty() {
            true => code,
            false => Arc::new(Intercepted { interceptors: self.clone(), code }),
        }
    }
}
