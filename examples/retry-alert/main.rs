//! Retry alerting: a step is retried forever, as it should be, and an alert is raised when that
//! takes too long. The activity knows its attempt number, so it can count.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use abide::{prelude::*, testing::TestEnvironment};

/// From this attempt on it is no longer a short outage.
const ALERT_FROM: u32 = 5;

/// Stands for the metrics of your program, such as a Prometheus counter. The alert itself is a rule
/// of the monitoring: "more than none in five minutes".
#[derive(Default)]
struct Metrics {
    many_retries: AtomicU32,
}

struct Printer {
    metrics: Arc<Metrics>,
}

#[activities]
impl Printer {
    #[activity]
    async fn print(&self, ctx: ActivityContext, label: String) -> Result<String, ActivityError> {
        // First, so that it is counted however the attempt ends.
        if ctx.attempt() >= ALERT_FROM {
            self.metrics.many_retries.fetch_add(1, Ordering::Relaxed);
        }
        if ctx.attempt() == ALERT_FROM {
            let workflow = &ctx.info().workflow.workflow;
            println!("alert: {workflow} cannot print, attempt {}", ctx.attempt());
        }
        match ctx.attempt() {
            1..=7 => Err(ActivityError::new("out of paper")),
            attempt => Ok(format!("{label} printed by attempt {attempt}")),
        }
    }
}

#[workflow]
async fn parcel(ctx: &Context, label: String) -> abide::Result<String> {
    ctx.activity(Printer::print, label).await
}

#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    let metrics = Arc::new(Metrics::default());
    let printer = Printer { metrics: Arc::clone(&metrics) };
    let env =
        TestEnvironment::with(|worker| worker.workflow::<parcel>().activities(printer)).await?;

    let parcel = parcel::start(&env.client(), "parcel-1", "to Oslo").await?;
    println!("{}", parcel.result().await?);
    println!("attempts over the threshold: {}", metrics.many_retries.load(Ordering::Relaxed));
    Ok(())
}
