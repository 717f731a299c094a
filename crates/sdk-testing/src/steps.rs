//! What a workflow requested, read from its history, in a form that a test can compare.

use std::{fmt, time::Duration};

use abide_core::{
    event::{Fact, MarkerKind, Origin, TimerSpec},
    payload::Payload,
    time::Timestamp,
};
use abide_sdk::client::HistoryEvent;
use abide_sdk::{
    IntoArguments, Workflow,
    activity::Activity,
    payload::{self, PayloadError},
};
use serde::Serialize;
use serde_json::Value;

/// One request of a workflow. Arguments are compared as JSON.
///
/// ```
/// # extern crate abide_sdk as abide;
/// # use abide::prelude::*;
/// # use abide_sdk_testing::TestEnvironment;
/// use abide_sdk_testing::{Step, steps};
///
/// # #[activity]
/// # async fn charge(_who: String, _cents: u32) {}
/// # #[workflow]
/// # async fn order(ctx: &Context) -> abide::Result<u32> {
/// #     ctx.sleep(hours(1)).await?;
/// #     ctx.activity(charge, ("Ada", 300)).await?;
/// #     Ok(7)
/// # }
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let env = TestEnvironment::new().await;
/// # env.worker(|worker| worker.workflow::<order>().activity(charge)).await?;
/// # let order = order::start(&env.client(), "order-1").await?;
/// # order.result().await?;
/// assert_eq!(
///     steps(&order.history().await?),
///     [
///         Step::sleep(hours(1)),
///         Step::activity(charge, ("Ada", 300)),
///         Step::complete(&7),
///     ]
/// );
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub enum Step {
    Activity {
        name: String,
        input: Vec<Value>,
    },
    Sleep(Duration),
    /// A wait for a signal, with an optional limit.
    Receive {
        /// Name of the signal; empty for any.
        signal: String,
        timeout: Option<Duration>,
    },
    /// A wait for a condition.
    Condition {
        /// Its key, if it has one.
        key: Option<String>,
    },
    Child {
        workflow_type: String,
        workflow: String,
        input: Vec<Value>,
    },
    /// A signal to another workflow.
    Signal {
        workflow: String,
        name: String,
        input: Vec<Value>,
    },
    /// A cancel request to another workflow.
    Cancel {
        workflow: String,
    },
    /// The result of a local activity of this type.
    LocalActivity(String),
    /// A non-deterministic value.
    SideEffect,
    /// A patch: following a change of the code.
    Patch(String),
    /// Completing the run with a result.
    Complete(Vec<Value>),
    /// Failing the run with this message.
    Fail(String),
    /// Ending the run as cancelled.
    CancelRun,
    /// Continuing in a new run.
    ContinueAsNew(Vec<Value>),
}

/// What the workflow requested, in order. Requests that it cancelled, and retries, which come from
/// policies, are left out.
pub fn steps(history: &[HistoryEvent]) -> Vec<Step> {
    let mut now = Timestamp::EPOCH;
    let mut steps = Vec::new();
    for event in history {
        if let Fact::TaskStarted(_) = event.fact() {
            now = event.time();
        }
        steps.extend(Step::of(event.fact(), now));
    }
    steps
}

impl Step {
    /// An activity with these arguments.
    pub fn activity<A: Activity<M>, M>(
        activity: A,
        input: impl IntoArguments<A::Arguments>,
    ) -> Self {
        let definition = activity.definition();
        Self::Activity {
            name: definition.name().to_owned(),
            input: written(definition.encode(&input.into_arguments())),
        }
    }

    /// A sleep of this length.
    pub const fn sleep(length: Duration) -> Self {
        Self::Sleep(length)
    }

    /// A wait for a signal of this name, without a limit.
    pub fn receive(signal: impl Into<String>) -> Self {
        Self::Receive { signal: signal.into(), timeout: None }
    }

    /// A wait for a signal of this name, for at most this long.
    pub fn receive_within(signal: impl Into<String>, timeout: Duration) -> Self {
        Self::Receive { signal: signal.into(), timeout: Some(timeout) }
    }

    /// A wait for the condition with this key.
    pub fn condition(key: impl Into<String>) -> Self {
        Self::Condition { key: Some(key.into()) }
    }

    /// A child with this id and these arguments.
    pub fn child<C: Workflow>(
        workflow: impl Into<String>,
        input: impl IntoArguments<C::Arguments>,
    ) -> Self {
        Self::Child {
            workflow_type: C::NAME.to_owned(),
            workflow: workflow.into(),
            input: written(C::encode_input(&input.into_arguments())),
        }
    }

    /// Completing with this result.
    pub fn complete<T: Serialize + ?Sized>(result: &T) -> Self {
        let value = serde_json::to_value(result);
        let value = value.unwrap_or_else(|error| Value::String(error.to_string()));
        // `()` is sent as nothing.
        Self::Complete(Some(value).filter(|value| !value.is_null()).into_iter().collect())
    }

    /// Failing with this message.
    pub fn fail(message: impl Into<String>) -> Self {
        Self::Fail(message.into())
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "all others were not asked for by code")]
    fn of(fact: &Fact, now: Timestamp) -> Option<Self> {
        Some(match fact {
            Fact::ActivityScheduled(scheduled) => Self::Activity {
                name: scheduled.spec.activity_type.clone(),
                input: values(&scheduled.spec.input),
            },
            Fact::TimerStarted(started) => return Self::of_timer(&started.spec, now),
            Fact::WaitOpened(opened) => Self::Condition { key: opened.spec.condition.key.clone() },
            Fact::ChildInitiated(initiated) => Self::Child {
                workflow_type: initiated.child.spec.workflow_type.clone(),
                workflow: initiated.child.workflow.workflow.to_string(),
                input: values(&initiated.child.spec.input),
            },
            Fact::ExternalSignalInitiated(signal) => Self::Signal {
                workflow: signal.target.workflow.workflow.to_string(),
                name: signal.name.clone(),
                input: values(&signal.input),
            },
            Fact::ExternalCancelInitiated(cancel) => {
                Self::Cancel { workflow: cancel.target.workflow.workflow.to_string() }
            }
            Fact::MarkerRecorded(recorded) => match recorded.marker.kind {
                MarkerKind::SideEffect => Self::SideEffect,
                MarkerKind::Version => Self::Patch(recorded.marker.id.clone()),
                // The number precedes the type.
                MarkerKind::LocalActivity => {
                    let id = &recorded.marker.id;
                    Self::LocalActivity(id.split_once('/').map_or(&**id, |(_, name)| name).into())
                }
                MarkerKind::Named(_) => return None,
            },
            Fact::RunCompleted(completed) => {
                let mut result = values(&completed.result);
                result.retain(|value| !value.is_null());
                Self::Complete(result)
            }
            Fact::RunFailed(failed) => Self::Fail(failed.failure.message.clone()),
            Fact::RunCancelled(_) => Self::CancelRun,
            Fact::RunContinuedAsNew(next) => Self::ContinueAsNew(values(&next.spec.input)),
            _ => return None,
        })
    }

    fn of_timer(spec: &TimerSpec, now: Timestamp) -> Option<Self> {
        let length = spec.fire_at.saturating_since(now);
        match &spec.origin {
            None | Some(Origin::CreateTimer) => Some(Self::Sleep(length)),
            Some(Origin::ExternalEvent { name }) => {
                let timeout = (!spec.optional()).then_some(length);
                Some(Self::Receive { signal: name.clone(), timeout })
            }
            // The condition has its own event, and retries come from their policies.
            Some(
                Origin::Condition { .. }
                | Origin::ActivityRetry { .. }
                | Origin::ChildWorkflowRetry { .. },
            ) => None,
        }
    }
}

/// Readable form for the failure message of a test.
impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Activity { name, input } => write!(f, "activity {name}({})", shown(input)),
            Self::Sleep(length) => write!(f, "sleep {length:?}"),
            Self::Receive { signal, timeout: None } => write!(f, "receive {signal}"),
            Self::Receive { signal, timeout: Some(limit) } => {
                write!(f, "receive {signal} within {limit:?}")
            }
            Self::Condition { key } => write!(f, "condition {}", key.as_deref().unwrap_or("")),
            Self::Child { workflow_type, workflow, input } => {
                write!(f, "child {workflow_type} {workflow}({})", shown(input))
            }
            Self::Signal { workflow, name, input } => {
                write!(f, "signal {workflow} {name}({})", shown(input))
            }
            Self::Cancel { workflow } => write!(f, "cancel {workflow}"),
            Self::LocalActivity(name) => write!(f, "local activity {name}"),
            Self::SideEffect => f.write_str("side effect"),
            Self::Patch(change) => write!(f, "patch {change}"),
            Self::Complete(result) => write!(f, "complete({})", shown(result)),
            Self::Fail(message) => write!(f, "fail({message:?})"),
            Self::CancelRun => f.write_str("cancel the run"),
            Self::ContinueAsNew(input) => write!(f, "continue as new({})", shown(input)),
        }
    }
}

fn shown(values: &[Value]) -> String {
    values.iter().map(Value::to_string).collect::<Vec<_>>().join(", ")
}

fn values(payloads: &[Payload]) -> Vec<Value> {
    let bytes = |payload: &Payload| String::from_utf8_lossy(&payload.data).into_owned();
    let read = |payload: &Payload| payload::decode(std::slice::from_ref(payload));
    let value = |payload: &Payload| read(payload).unwrap_or_else(|_| Value::String(bytes(payload)));
    payloads.iter().map(value).collect()
}

/// Expected arguments of a test. If they cannot be encoded, the reason, which equals no recorded
/// value.
fn written(encoded: Result<Vec<Payload>, PayloadError>) -> Vec<Value> {
    match encoded {
        Ok(payloads) => values(&payloads),
        Err(error) => vec![Value::String(error.to_string())],
    }
}
