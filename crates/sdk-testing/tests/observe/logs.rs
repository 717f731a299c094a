//! What code logs says which run and which attempt it is, and is not logged again on replay.

use std::sync::{Arc, Mutex};

use abide::prelude::*;
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
    assert!(charged[0].contains(&span("activity-1", 2)), "{}", charged[0]);
    assert!(charged[1].contains("activity_id=local-1/charge attempt="), "{}", charged[1]);
}
