//! What code logs says which run and which attempt it is, and is not logged again on replay.

use std::sync::{Arc, Mutex};

use abide::{client::HistoryEvent, prelude::*};
use abide_sdk_testing::TestEnvironment;
use tracing_subscriber::{Registry, fmt::MakeWriter, layer::SubscriberExt as _};

#[activity]
async fn charge() {
    tracing::info!("charging");
}

#[derive(Default)]
struct Order;

#[workflow]
impl Order {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<()> {
        tracing::info!("begins");
        ctx.activity(charge, ()).await?;
        ctx.sleep(days(1)).await?;
        ctx.local_activity(charge, ()).await?;
        tracing::info!("ends");
        Ok(())
    }
}

#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Written {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no write panics").extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Written {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

/// Two runs of a worker without activities, on a queue without another worker.
async fn two_without_activities(env: &TestEnvironment) {
    env.worker(|worker| worker.workflow::<Order>().queue("bare")).await.expect("accepted");
    for id in ["bare-1", "bare-2"] {
        let order = env.client().start::<Order>(id, ()).queue("bare").await.expect("accepted");
        let mut history = order.follow_history();
        let mut seen = Vec::new();
        while !seen.iter().any(|event: &HistoryEvent| event.name() == "ActivityScheduled") {
            seen.extend(history.next().await.expect("readable").expect("an open run"));
        }
    }
}

/// The only test of this program that sets the subscriber of the whole process: workflow code and
/// activities run on other threads than the test.
#[tokio::test]
async fn log_lines_carry_run_and_attempt_and_are_not_repeated() {
    let written = Written::default();
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(written.clone())
        .without_time()
        .with_ansi(false)
        .with_target(false);
    tracing::subscriber::set_global_default(Registry::default().with(lines)).unwrap();
    let env = TestEnvironment::new().await;
    let worker = env.worker(|worker| worker.workflow::<Order>().activity(charge)).await.unwrap();
    env.fail_attempt(charge, 1, "busy");
    let order = env.client().start::<Order>("logged-order", ()).await.unwrap();
    env.skip(hours(1)).await;
    worker.restart().await.unwrap();
    order.result().await.unwrap();
    two_without_activities(&env).await;
    let run = order.run_id().unwrap();
    let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
    let lines = |of: &str| -> Vec<&str> {
        text.lines().filter(|line| line.contains("logged-order") && line.ends_with(of)).collect()
    };
    for said in ["begins", "ends"] {
        let lines = lines(&format!(": {said}"));
        assert_eq!(lines.len(), 1, "{text}");
        let span = format!(
            "workflow{{namespace=default workflow_id=logged-order run_id={run} \
             workflow_type=\"Order\" attempt=1}}"
        );
        assert!(lines[0].contains(&span), "{}", lines[0]);
    }
    let charged = lines(": charging");
    let span = |id: &str, attempt: u32| {
        format!(
            "activity{{namespace=default workflow_id=logged-order run_id={run} \
             activity_type=\"charge\" activity_id={id} attempt={attempt}}}"
        )
    };
    assert_eq!(charged.len(), 2, "{text}");
    let failed = "attempt 1 of charge failed (next in 1s if its time allows): busy";
    let failed = lines(&format!("{failed} workflow=default/logged-order"));
    assert!(failed.len() == 1 && failed[0].contains("WARN"), "{text}");
    assert!(charged[0].contains(&span("activity-1", 2)), "{}", charged[0]);
    assert!(charged[1].contains("activity_id=local-1/charge attempt="), "{}", charged[1]);
    let bare = text.lines().filter(|line| line.contains("no activity is registered"));
    let bare: Vec<_> = bare.collect();
    assert_eq!(bare.len(), 1, "{text}");
    for said in ["WARN", "default/bare-1", "of queue bare;", "add .activity(charge)"] {
        assert!(bare[0].contains(said), "{}", bare[0]);
    }
}
