//! What interceptors see and change.

use std::sync::{Arc, Mutex};

use abide::{
    ClientError,
    future::BoxFuture,
    interceptor::{
        Attempt, CallAnswer, CallKind, ClientCall, Interceptor, Message, MessageKind, NextAttempt,
        NextCall, Outgoing, PropagateHeaders, RunFuture, RunInfo,
    },
    prelude::*,
    registry::ActivityEnd,
};
use abide_sdk_testing::TestEnvironment;

/// Sets a header with every call of a client.
struct Tenant(&'static str);

impl Interceptor for Tenant {
    fn call<'a>(
        &'a self,
        mut call: ClientCall,
        next: NextCall<'a>,
    ) -> BoxFuture<'a, Result<CallAnswer, ClientError>> {
        call.headers.set_text("tenant", self.0);
        next.run(call)
    }
}

#[activity]
async fn whose(ctx: ActivityContext) -> Result<String, ActivityError> {
    Ok(ctx.header("tenant")?.unwrap_or_else(|| "nobody's".to_owned()))
}

#[derive(Default)]
struct Chain;

#[workflow]
impl Chain {
    #[run]
    async fn run(ctx: &Context<Self>, depth: u32) -> abide::Result<Vec<String>> {
        let mut seen = vec![ctx.header("tenant")?.unwrap_or_else(|| "nobody's".to_owned())];
        seen.push(ctx.activity(whose, ()).await?);
        seen.push(ctx.local_activity(whose, ()).await?);
        if depth == 0 {
            let heard: String = ctx.receive(Chain::HEAR).await?;
            seen.push(heard);
            return Ok(seen);
        }
        if depth == 2 {
            return Err(ctx.continue_as_new(1));
        }
        let child = ctx.child::<Self>("child", 0).start().await?;
        child.signal(Chain::HEAR, "heard").await?;
        seen.extend(child.result().await?);
        Ok(seen)
    }

    #[signal]
    fn hear(what: String);

    #[update]
    async fn ask(ctx: &Context<Self>) -> abide::Result<String> {
        ctx.activity(whose, ()).await
    }

    #[query]
    fn look(&self) -> u32 {
        7
    }
}

#[tokio::test]
async fn a_header_of_the_client_reaches_activities_children_and_next_runs() {
    let env = TestEnvironment::new().await;
    let propagate = PropagateHeaders::new(["tenant"]);
    let set_up =
        |worker: Worker| worker.workflow::<Chain>().activity(whose).interceptor(propagate.clone());
    let worker = env.worker(set_up).await.unwrap();
    let client = env.client().with_interceptor(Tenant("acme"));
    let chain = client.start::<Chain>("chain", 2).await.unwrap();
    worker.restart().await.unwrap();
    let seen = chain.result().await.unwrap();
    assert_eq!(seen, ["acme", "acme", "acme", "acme", "acme", "acme", "heard"]);

    // Without it, headers stay where they are.
    let env = TestEnvironment::new().await;
    env.worker(|worker| worker.workflow::<Chain>().activity(whose)).await.unwrap();
    let client = env.client().with_interceptor(Tenant("acme"));
    let chain = client.start::<Chain>("chain", 2).await.unwrap();
    let seen = chain.result().await.unwrap();
    let nobody = "nobody's";
    assert_eq!(seen, ["acme", nobody, nobody, nobody, nobody, nobody, "heard"]);
}

#[tokio::test]
async fn in_the_handler_of_a_message_its_headers_come_first() {
    let env = TestEnvironment::new().await;
    let set_up = |worker: Worker| {
        let propagate = PropagateHeaders::new(["tenant"]);
        worker.workflow::<Chain>().activity(whose).interceptor(propagate)
    };
    env.worker(set_up).await.unwrap();
    env.client().with_interceptor(Tenant("acme")).start::<Chain>("chain", 0).await.unwrap();
    let other = env.client().with_interceptor(Tenant("other")).handle::<Chain>("chain");
    assert_eq!(other.update(Chain::ASK, ()).await.unwrap(), "other");
    other.signal(Chain::HEAR, "done").await.unwrap();
    assert_eq!(other.result().await.unwrap(), ["acme", "acme", "acme", "done"]);
}

/// Writes down what it sees.
#[derive(Clone, Default)]
struct Notebook(Arc<Mutex<Vec<String>>>);

impl Notebook {
    fn note(&self, line: String) {
        self.0.lock().expect("no note panics").push(line);
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().expect("no note panics"))
    }
}

impl Interceptor for Notebook {
    fn call<'a>(
        &'a self,
        call: ClientCall,
        next: NextCall<'a>,
    ) -> BoxFuture<'a, Result<CallAnswer, ClientError>> {
        if !matches!(call.kind(), CallKind::Other | CallKind::Result) {
            self.note(format!("call {:?} {}", call.kind(), call.name()));
        }
        next.run(call)
    }

    fn activity<'a>(
        &'a self,
        attempt: Attempt,
        next: NextAttempt<'a>,
    ) -> BoxFuture<'a, ActivityEnd> {
        Box::pin(async move {
            let number = attempt.context.attempt();
            let end = next.run(attempt).await;
            self.note(format!("attempt {number} {}", matches!(end, ActivityEnd::Completed(_))));
            end
        })
    }

    fn run(&self, run: &RunInfo, code: RunFuture) -> RunFuture {
        let (notebook, run) = (self.clone(), run.clone());
        Box::pin(async move {
            if !run.is_replaying() {
                notebook.note(format!("run {} begins", run.workflow_type()));
            }
            let result = code.await;
            if !run.is_replaying() {
                notebook.note(format!("run ends {}", result.is_ok()));
            }
            result
        })
    }

    fn message(&self, run: &RunInfo, message: &Message) -> Result<(), String> {
        if !run.is_replaying() {
            self.note(format!("message {:?} {}", message.kind, message.name));
        }
        Ok(())
    }

    fn outgoing(&self, run: &RunInfo, call: &mut Outgoing<'_>) {
        if !run.is_replaying() {
            self.note(format!("outgoing {:?} {}", call.kind, call.name));
        }
    }
}

#[derive(Default)]
struct Order;

#[workflow]
impl Order {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<()> {
        ctx.activity(whose, ()).await?;
        ctx.sleep(days(1)).await?;
        ctx.receive(Order::CLOSE).await
    }

    #[signal]
    fn close();

    #[update]
    fn add(&mut self, number: u32) -> u32 {
        number + 1
    }

    #[query]
    fn total(&self) -> u32 {
        5
    }
}

#[tokio::test]
async fn an_interceptor_sees_everything_once_also_with_replays() {
    let env = TestEnvironment::new().await;
    let notebook = Notebook::default();
    let noted = notebook.clone();
    let set_up =
        |worker: Worker| worker.workflow::<Order>().activity(whose).interceptor(noted.clone());
    let worker = env.worker(set_up).await.unwrap();
    env.fail_attempt(whose, 1, "busy");
    let client = env.client().with_interceptor(notebook.clone());
    let order = client.start::<Order>("order", ()).await.unwrap();
    env.skip(hours(1)).await;
    assert_eq!(
        notebook.take(),
        [
            "call Start Order",
            "run Order begins",
            "outgoing Activity whose",
            "attempt 1 false",
            "attempt 2 true",
            "outgoing Sleep ",
        ]
    );
    worker.restart().await.unwrap();
    assert_eq!(order.update(Order::ADD, 1).await.unwrap(), 2);
    worker.restart().await.unwrap();
    assert_eq!(order.query(Order::TOTAL, ()).await.unwrap(), 5);
    order.signal(Order::CLOSE, ()).await.unwrap();
    // A task that a restart interrupts is done again, with its messages.
    env.settle().await;
    worker.restart().await.unwrap();
    order.result().await.unwrap();
    assert_eq!(
        notebook.take(),
        [
            "call Update add",
            "message Update add",
            "call Query total",
            "message Query total",
            "call Signal close",
            "message Signal close",
            "run ends true",
        ]
    );
}

/// Refuses what has no tenant, and panics at what has a bad one.
struct Gate;

impl Interceptor for Gate {
    fn message(&self, _: &RunInfo, message: &Message) -> Result<(), String> {
        let tenant = message.headers.text("tenant");
        assert_ne!(tenant.as_deref(), Some("bad"), "the gate breaks");
        match (message.kind, tenant) {
            (MessageKind::Query, _) | (_, Some(_)) => Ok(()),
            _ => Err(format!("{} needs a tenant", message.name)),
        }
    }
}

#[tokio::test]
async fn a_message_that_is_refused_changes_nothing() {
    let env = TestEnvironment::new().await;
    let set_up = |worker: Worker| worker.workflow::<Order>().activity(whose).interceptor(Gate);
    let worker = env.worker(set_up).await.unwrap();
    let order = env.client().start::<Order>("order", ()).await.unwrap();
    let refused = order.update(Order::ADD, 1).await.unwrap_err();
    assert!(matches!(&refused, ClientError::UpdateRejected(_)), "{refused}");
    assert!(refused.to_string().contains("add needs a tenant"), "{refused}");
    order.signal(Order::CLOSE, ()).await.unwrap();
    env.skip(days(2)).await;
    worker.restart().await.unwrap();
    assert_eq!(order.waits().await.unwrap()[0].name, "close");

    // The bad one panics in the interceptor: the query fails, and the run is not harmed.
    let bad = env.client().with_interceptor(Tenant("bad")).handle::<Order>("order");
    let failed = bad.query(Order::TOTAL, ()).await.unwrap_err().to_string();
    assert!(failed.contains("the gate breaks"), "{failed}");
    let good = env.client().with_interceptor(Tenant("acme")).handle::<Order>("order");
    good.signal(Order::CLOSE, ()).await.unwrap();
    good.result().await.unwrap();
}
