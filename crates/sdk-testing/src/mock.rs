//! Functions of the test in the place of activities.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use abide_core::payload::Payloads;
use abide_sdk::{
    ActivityContext, BoxError, PayloadValue, Registry, ReturnedError, TypedError,
    activity::Activity,
    future::BoxFuture,
    registry::{ActivityCode, ActivityEnd},
};

use crate::{TestEnvironment, lock::lock};

/// The result of a mock: a value, or a `Result` whose error fails the attempt. The error has the
/// message, type and retry instructions that an activity's error has. To keep its value too, as
/// activities do, a mock returns it as [`typed_error`].
pub trait MockResult<T> {
    /// The result of the attempt.
    fn into_result(self) -> Result<T, ReturnedError>;
}

impl<T> MockResult<T> for T {
    fn into_result(self) -> Result<T, ReturnedError> {
        Ok(self)
    }
}

impl<T, E: Into<BoxError> + 'static> MockResult<T> for Result<T, E> {
    fn into_result(self) -> Result<T, ReturnedError> {
        self.map_err(ReturnedError::new)
    }
}

/// An error for a mock that keeps its value, so that workflow code finds it by `error.cause()`:
/// `env.mock(charge, |_| Err(typed_error(CardExpired { last4 })))`.
pub fn typed_error<E: TypedError>(error: E) -> ReturnedError {
    ReturnedError::typed(error)
}

/// The calls that a mock has got; see [`TestEnvironment::mock`].
#[derive(Debug)]
pub struct Mock<I>(Arc<Mutex<Vec<I>>>);

impl<I: Clone> Mock<I> {
    /// The arguments of each attempt so far, in order.
    pub fn calls(&self) -> Vec<I> {
        lock(&self.0).clone()
    }
}

impl<I> Mock<I> {
    /// How many attempts there were so far.
    pub fn count(&self) -> usize {
        lock(&self.0).len()
    }
}

impl TestEnvironment {
    /// Puts a function in the place of an activity: `env.mock(charge, |cents| cents * 2)`. It returns
    /// what the activity returns, or a `Result` whose error fails the attempt, which is then retried
    /// as usual. The returned value knows the calls: `assert_eq!(charged.calls(), [4200])`.
    ///
    /// It takes effect at once, in all workers that have the activity, and in all that are added
    /// later, whether they have it or not. A second mock of an activity replaces the first.
    pub fn mock<A, M, R>(
        &self,
        activity: A,
        fake: impl Fn(A::Input) -> R + Send + Sync + 'static,
    ) -> Mock<A::Input>
    where
        A: Activity<M, State: Send + Sync, Input: Clone + Send, Output: PayloadValue + Send>,
        R: MockResult<A::Output>,
    {
        let definition = activity.definition();
        let calls = Arc::new(Mutex::new(Vec::new()));
        let (seen, fake) = (Arc::clone(&calls), Arc::new(fake));
        let mock = move |registry: &mut Registry| {
            let (seen, fake) = (Arc::clone(&seen), Arc::clone(&fake));
            registry.replace_activity(definition, move |_, input: A::Input| {
                lock(&seen).push(input.clone());
                let result = fake(input).into_result();
                async move { result }
            });
        };
        let mut only = Registry::new();
        mock(&mut only);
        if let Some(code) = only.activity_code(definition.name()) {
            lock(&self.mocks.0).insert(definition.name().to_owned(), code);
        }
        self.change(mock);
        Mock(calls)
    }
}

/// The mocks of an environment, by the names of their activities.
#[derive(Clone, Default)]
pub(crate) struct Mocks(Arc<Mutex<BTreeMap<String, Arc<dyn ActivityCode>>>>);

impl Mocks {
    /// Lets mocks stand in for every activity, also those that are made later.
    pub(crate) fn enter(&self, registry: &mut Registry) {
        let types: Vec<_> = registry.activity_types().map(str::to_owned).collect();
        for activity_type in types {
            registry.wrap_activity(&activity_type, |code| {
                Arc::new(Mockable { code, mocks: self.clone() })
            });
        }
    }
}

/// An activity that a mock may stand in for.
struct Mockable {
    code: Arc<dyn ActivityCode>,
    mocks: Mocks,
}

impl ActivityCode for Mockable {
    fn run(&self, ctx: ActivityContext, input: Payloads) -> BoxFuture<'static, ActivityEnd> {
        let mock = lock(&self.mocks.0).get(&ctx.info().given.spec.activity_type).cloned();
        mock.as_ref().unwrap_or(&self.code).run(ctx, input)
    }
}
