//! Somebody outside speaks for an activity that its worker has left to others.

use std::sync::mpsc::{Receiver, Sender, channel};

use abide::{Client, Worker, prelude::*};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::harness::{Engine, Ran, compare, fresh};

/// The queue of these workflows.
const QUEUE: &str = "parcels";

/// Gives the tokens of its attempts away.
struct Post {
    tokens: Sender<String>,
}

#[activities]
impl Post {
    #[activity]
    async fn deliver(&self, ctx: ActivityContext) -> Result<u32, ActivityError> {
        self.tokens.send(ctx.token()?).map_err(ActivityError::from_source)?;
        Err(ActivityError::completed_later())
    }
}

#[derive(Default)]
struct Parcel;

#[workflow(name = "parcel")]
impl Parcel {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<u32> {
        let delivered = ctx.activity(Post::deliver, ()).start_to_close(hours(24));
        delivered.on_cancel(OnCancel::CancelAndWait).await
    }
}

/// An engine with a worker, and a run whose parcel is on its way.
struct OnItsWay {
    engine: Engine,
    _folder: TempDir,
    worker: Option<Runtime>,
    tokens: Receiver<String>,
}

impl OnItsWay {
    fn begin() -> Self {
        let (engine, _folder) = fresh();
        let (given, tokens) = channel();
        let worker = Runtime::new().expect("a runtime");
        let address = engine.address.clone();
        worker.spawn(async move {
            let client = Client::connect_lazy(address).expect("a good address");
            let worker = Worker::new(&client).queue(QUEUE).build_id("test");
            let worker = worker.workflow::<Parcel>().activities(Post { tokens: given });
            worker.run().await.expect("it works until it is stopped");
        });
        engine.run(&format!("workflow start --type parcel --id p --queue {QUEUE}")).good();
        Self { engine, _folder, worker: Some(worker), tokens }
    }

    /// The token of the next attempt.
    fn token(&self) -> String {
        self.tokens.recv().expect("the worker runs")
    }

    /// Waits until the engine knows that the attempt was left to others.
    fn left(&self) {
        while self.describe()["activities"][0]["phase"] != "detached" {}
    }

    fn describe(&self) -> Value {
        self.engine.json("workflow describe p").remove(0)
    }

    /// Says something for the attempt of this token.
    fn say(&self, word: &str, token: &str, more: &[&str]) -> Ran {
        self.engine.run_with(&format!("activity {word} --token {token}"), more)
    }

    fn result(&self) -> Ran {
        self.engine.run("workflow result p")
    }
}

impl Drop for OnItsWay {
    fn drop(&mut self) {
        if let Some(worker) = self.worker.take() {
            worker.shutdown_background();
        }
    }
}

#[test]
fn an_activity_is_completed_by_its_token() {
    let parcel = OnItsWay::begin();
    let token = parcel.token();
    let beat = parcel.say("heartbeat", &token, &["--input", "\"on the van\""]).good();
    assert_eq!(beat, "heartbeat recorded; it may continue\n");
    let done = parcel.say("complete", &token, &["--input", "7", "--json"]).good();
    assert_eq!(serde_json::from_str::<Value>(&done).unwrap(), json!({ "done": "completed" }));
    assert_eq!(parcel.result().good(), "7\n");
    // It can be said once.
    let again = parcel.say("complete", &token, &["--input", "8"]).bad(1);
    compare("activity_run_closed", &again);
}

#[test]
fn an_activity_is_completed_by_its_id() {
    let parcel = OnItsWay::begin();
    parcel.token();
    parcel.left();
    compare("activity_describe", &parcel.engine.run("workflow describe p").good());
    let unknown = parcel.engine.run("activity complete --workflow p --activity a --input 1").bad(1);
    compare("activity_unknown", &unknown);
    let run = parcel.describe()["run"].as_str().expect("a run").to_owned();
    let complete = "activity complete --workflow p --activity activity-1 --input 9 --run";
    let elsewhere = "019a0000-0000-7000-8000-000000000000";
    compare("activity_no_run", &parcel.engine.run(&format!("{complete} {elsewhere}")).bad(1));
    let done = parcel.engine.run(&format!("{complete} {run}")).good();
    assert_eq!(done, "the attempt has completed\n");
    assert_eq!(parcel.result().good(), "9\n");
}

#[test]
fn an_attempt_that_fails_is_retried_unless_that_is_useless() {
    let parcel = OnItsWay::begin();
    let first = parcel.token();
    let said = parcel.say("fail", &first, &["--message", "nobody at home"]).good();
    assert_eq!(said, "the attempt has failed\n");
    let second = parcel.token();
    assert_ne!(first, second);
    compare("activity_stale", &parcel.say("complete", &first, &["--input", "1"]).bad(1));
    let useless = ["--message", "no such street", "--type", "Address", "--non-retryable"];
    parcel.say("fail", &second, &useless).good();
    compare("activity_failed", &parcel.result().bad(1));
}

#[test]
fn an_activity_is_cancelled_when_its_workflow_asks_for_it() {
    let parcel = OnItsWay::begin();
    let token = parcel.token();
    compare("activity_not_cancelled", &parcel.say("cancel", &token, &[]).bad(1));
    parcel.engine.run("workflow cancel p").good();
    let wanted = |beat: Value| beat["cancel_requested"] == true;
    while !wanted(parcel.engine.json(&format!("activity heartbeat --token {token}")).remove(0)) {}
    let said = parcel.say("cancel", &token, &["--input", "\"sent back\""]).good();
    assert_eq!(said, "the attempt was cancelled\n");
    compare("activity_cancelled", &parcel.result().bad(1));
}

#[test]
fn what_names_no_attempt_is_refused() {
    let (engine, _folder) = fresh();
    let bad = |words: &str| engine.run(words).bad(2);
    compare("activity_bad_token", &bad("activity complete --token AQGj --input 1"));
    compare("activity_unnamed", &bad("activity complete --input 1"));
    compare("activity_no_id", &bad("activity heartbeat --workflow p"));
    compare("activity_both", &bad("activity cancel --token AQGj --workflow p --activity a"));
    compare(
        "activity_stray_run",
        &bad("activity cancel --token AQGj --run 019a0000-0000-7000-8000-000000000000"),
    );
    compare("activity_no_json", &bad("activity complete --token AQGj --input seven"));
    bad("activity fail --token AQGj");
    let nowhere = engine.run("activity heartbeat --workflow p --activity activity-1").bad(1);
    compare("activity_no_workflow", &nowhere);
}

#[test]
fn the_commands_are_explained() {
    let (engine, _folder) = fresh();
    compare("help_activity", &engine.run("activity --help").good());
}
