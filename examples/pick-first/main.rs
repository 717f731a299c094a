//! Pick first: two services are asked for the same. The first answer wins, and the other call is
//! cancelled.

use std::time::Duration;

use abide::{prelude::*, testing::TestEnvironment};
use tokio::sync::mpsc;

/// Two map services. The slow one reports here that it has stopped.
struct Maps {
    stopped: mpsc::Sender<String>,
}

#[activities]
impl Maps {
    #[activity]
    async fn fast_route(&self, to: String) -> String {
        format!("to {to} by the fast service")
    }

    /// Works until it is done or cancelled. A running attempt learns of a cancellation from its
    /// heartbeats, so it must send some.
    #[activity]
    async fn slow_route(&self, ctx: ActivityContext, to: String) -> Result<String, ActivityError> {
        for step in 0..100 {
            ctx.heartbeat(&step)?;
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(100)) => {}
                () = ctx.cancelled() => {
                    self.stopped.send(format!("the way to {to} is not wanted any more")).await.ok();
                    return Err(ActivityError::cancelled());
                }
            }
        }
        Ok(format!("to {to} by the slow service"))
    }
}

#[workflow]
async fn route(ctx: &Context, to: String) -> abide::Result<String> {
    let slow = ctx.activity(Maps::slow_route, &to);
    // The first that is ready wins; if two are ready, the branch that comes first. The others
    // are dropped, and dropping a pending activity cancels it.
    select! {
        route = slow.heartbeat_timeout(Duration::from_millis(200)) => route,
        route = ctx.activity(Maps::fast_route, to) => route,
    }
}

#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    let (stopped, mut told) = mpsc::channel(1);
    let env =
        TestEnvironment::with(|worker| worker.workflow::<route>().activities(Maps { stopped }))
            .await?;

    let route = route::start(&env.client(), "route-1", "Oslo").await?;
    println!("{}", route.result().await?);
    if let Some(news) = told.recv().await {
        println!("{news}");
    }
    Ok(())
}
