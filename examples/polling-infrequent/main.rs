//! Infrequent polling: another system is polled once an hour until it is done. Each request is an
//! attempt of one activity, and the pause between two is its retry delay. Nothing runs meanwhile,
//! and nothing is added to history.

use std::sync::atomic::{AtomicU32, Ordering};

use abide::{prelude::*, testing::TestEnvironment};

/// A client of a slow office.
#[derive(Default)]
struct Office {
    asked: AtomicU32,
}

impl Office {
    /// Stands for a request over the network: the stamp is there after three days.
    fn has_stamped(&self, _form: &str) -> bool {
        self.asked.fetch_add(1, Ordering::Relaxed) >= 72
    }
}

#[activities]
impl Office {
    #[activity]
    async fn stamp(&self, form: String) -> Result<String, ActivityError> {
        match self.has_stamped(&form) {
            true => Ok(format!("form {form} is stamped")),
            // Not really an error: it means "ask again later".
            false => Err(ActivityError::new("not stamped yet").error_type("NotYet")),
        }
    }
}

#[workflow]
async fn permit(ctx: &Context, form: String) -> abide::Result<String> {
    let every_hour = RetryPolicy::default().initial_interval(hours(1)).backoff(1.0);
    ctx.activity(Office::stamp, form)
        .start_to_close(minutes(1))
        // How long the workflow waits in total.
        .schedule_to_close(days(30))
        .retry(every_hour.maximum_interval(hours(1)))
        .await
}

#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    // Time skips ahead here, so that the office takes no real time.
    let env =
        TestEnvironment::with(|worker| worker.workflow::<permit>().activities(Office::default()))
            .await?;

    let begun = env.now();
    let permit = permit::start(&env.client(), "permit-1", "A 38").await?;
    println!("{}", permit.result().await?);
    println!("after {} hours", env.now().saturating_since(begun).as_secs() / 3600);
    println!("{} events in history", permit.history().await?.len());
    Ok(())
}
