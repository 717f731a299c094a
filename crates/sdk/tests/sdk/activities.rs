//! Activities as a worker runs them.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use abide::{
    ActivityContext, ActivityError, Context, Registry,
    activity::{ActivityInfo, AttemptLink, CancelToken},
    payload,
    registry::{ActivityEnd, RegistryError},
};
use abide_core::{
    attempt::ActivityToken,
    event::{ActivitySpec, Delivery},
    failure::Failure,
    payload::{Payload, Payloads},
    run::ActivityGiven,
};
use abide_sdk_macros::{activities, activity, workflow};

use crate::world::{key, run_id};

struct Mailer {
    sender: String,
}

#[activities]
impl Mailer {
    /// Sends a mail.
    #[activity]
    async fn send(&self, ctx: ActivityContext, to: String, body: String) -> anyhow::Result<String> {
        ctx.heartbeat(&body)?;
        anyhow::ensure!(!to.is_empty(), "nobody to send to");
        Ok(format!("{} to {to}, attempt {}", self.sender, ctx.attempt()))
    }

    #[activity(name = "count-mails")]
    async fn count(&self) -> usize {
        self.sender.len()
    }
}

#[activity]
async fn stop(ctx: ActivityContext) -> Result<(), ActivityError> {
    ctx.cancelled().await;
    Err(ActivityError::cancelled().details(&"half done".to_owned()))
}

#[activity]
async fn give_up(hard: bool) -> Result<(), ActivityError> {
    let source = "x".parse::<u8>().map(drop).map_err(ActivityError::from_source);
    let error = source.err().unwrap_or_default().error_type("BadNumber");
    Err(if hard { error.non_retryable() } else { error.retry_after(Duration::from_secs(7)) })
}

#[derive(Default)]
struct Beats(Mutex<Vec<Payloads>>);

impl AttemptLink for Beats {
    fn heartbeat(&self, details: Payloads) {
        self.0.lock().unwrap().push(details);
    }

    fn token(&self) -> Option<ActivityToken> {
        None
    }
}

fn context(beats: &Arc<Beats>, cancel: &CancelToken) -> ActivityContext {
    let spec = ActivitySpec {
        activity: "activity-1".into(),
        activity_type: "send".into(),
        queue: "main".into(),
        input: Vec::new(),
        header: Default::default(),
        schedule_to_close: None,
        schedule_to_start: None,
        start_to_close: None,
        heartbeat: None,
        retry: None,
        delivery: Delivery::AtLeastOnce,
        retry_of: None,
        attempt: 0,
    };
    let given = ActivityGiven {
        spec,
        execution: "execution".into(),
        attempt: 2,
        scheduled_at: Default::default(),
        heartbeat: Some(payload::encode(&5_u32).unwrap()),
    };
    let info = ActivityInfo { given, workflow: key("order-1"), run: run_id(1) };
    ActivityContext::new(info, beats.clone(), cancel.clone())
}

fn run(registry: &Registry, name: &str, input: Payloads) -> ActivityEnd {
    let context = context(&Arc::default(), &CancelToken::new());
    pollster::block_on(registry.activity_code(name).unwrap().run(context, input))
}

fn registry() -> Registry {
    let mut registry = Registry::new();
    registry.activities(Mailer { sender: "Ada".into() }).unwrap();
    registry.activity(stop).unwrap();
    registry.activity(give_up).unwrap();
    registry
}

fn arguments(arguments: &[&str]) -> Payloads {
    arguments.iter().map(|text| Payload::new((*text).to_owned())).collect()
}

#[test]
fn activities_are_found_by_name_and_share_their_state() {
    let registry = registry();
    let names: Vec<_> = registry.activity_types().collect();
    assert_eq!(names, ["count-mails", "give_up", "send", "stop"]);
    let expected = payload::encode(&"Ada to Bob, attempt 2".to_owned()).unwrap();
    let sent = run(&registry, "send", arguments(&["\"Bob\"", "\"Hi\""]));
    assert_eq!(sent, ActivityEnd::Completed(expected));
    let counted = run(&registry, "count-mails", Vec::new());
    assert_eq!(counted, ActivityEnd::Completed(payload::encode(&3).unwrap()));
}

#[test]
fn errors_of_any_kind_are_failures() {
    let registry = registry();
    let failed = |name: &str, input: &[&str]| match run(&registry, name, arguments(input)) {
        ActivityEnd::Failed(failure) => failure,
        other => panic!("{other:?}"),
    };
    assert_eq!(failed("send", &["\"\"", "\"Hi\""]).message(), "nobody to send to");
    let unreadable = failed("send", &["7"]);
    assert!(unreadable.message().starts_with("input of activity send: "), "{unreadable}");
    assert!(unreadable.is_non_retryable());
    let hard = failed("give_up", &["true"]);
    assert_eq!((hard.error_type(), hard.is_non_retryable()), ("BadNumber", true));
    assert_eq!(hard.message(), "invalid digit found in string");
    let soft = failed("give_up", &["false"]);
    assert_eq!(soft.next_retry_delay(), Some(Duration::from_secs(7)));
}

#[test]
fn an_activity_hears_that_it_should_stop() {
    let cancel = CancelToken::new();
    let context = context(&Arc::default(), &cancel);
    assert!(!context.is_cancelled());
    let code = registry().activity_code("stop").unwrap();
    let attempt = std::thread::spawn(move || pollster::block_on(code.run(context, Vec::new())));
    cancel.cancel();
    let details = payload::encode(&"half done".to_owned()).unwrap();
    assert_eq!(attempt.join().unwrap(), ActivityEnd::Cancelled(details));
}

#[test]
fn an_activity_can_be_called_by_its_own_tests() {
    let beats = Arc::new(Beats::default());
    let context = context(&beats, &CancelToken::new());
    assert_eq!(context.heartbeat_details::<u32>().unwrap(), Some(5));
    assert_eq!(context.execution_id().as_str(), "execution");
    let mailer = Mailer { sender: "Eve".into() };
    let sent = mailer.send(context, "Bob".to_owned(), "Hi".to_owned());
    let sent = pollster::block_on(sent).unwrap();
    assert_eq!(sent, "Eve to Bob, attempt 2");
    assert_eq!(beats.0.lock().unwrap().len(), 1);
}

#[test]
fn an_activity_can_be_replaced() {
    let mut registry = registry();
    registry.replace_activity(Mailer::send, |_, (to, _)| async move {
        if to == "Bob" { Ok(format!("no mail to {to}")) } else { Err("who?") }
    });
    let expected = payload::encode(&"no mail to Bob".to_owned()).unwrap();
    let sent = run(&registry, "send", arguments(&["\"Bob\"", "\"Hi\""]));
    assert_eq!(sent, ActivityEnd::Completed(expected));
    let failure = Failure { message: "who?".into(), ..Failure::default() };
    let failed = run(&registry, "send", arguments(&["\"Eve\"", "\"Hi\""]));
    assert_eq!(failed, ActivityEnd::Failed(failure.into()));
}

#[derive(Default)]
struct Order;

#[workflow]
impl Order {
    #[run]
    async fn run(_ctx: &Context<Self>) {}
}

#[test]
fn a_name_is_taken_once() {
    let mut registry = registry();
    assert_eq!(registry.activity(stop), Err(RegistryError::DuplicateActivity("stop")));
    registry.workflow::<Order>().unwrap();
    assert_eq!(registry.workflow::<Order>(), Err(RegistryError::DuplicateWorkflow("Order")));
    assert_eq!(registry.workflow_types().collect::<Vec<_>>(), ["Order"]);
    assert!(registry.create("Order", &key("order-1"), run_id(1)).is_some());
    assert!(registry.create("Odrer", &key("order-1"), run_id(1)).is_none());
}
