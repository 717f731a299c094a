//! Frequent polling: another system is polled every few moments until it is done. The loop is in an
//! activity: it adds nothing to history, and its heartbeats show that it is alive.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use abide::{embedded::Embedded, prelude::*};

/// A client of a system that renders films and has no callbacks.
struct Renderer {
    asked: AtomicU32,
}

impl Renderer {
    /// Stands for a request over the network. The film is ready at the fifth request.
    fn status(&self, _film: &str) -> Option<&'static str> {
        (self.asked.fetch_add(1, Ordering::Relaxed) >= 4).then_some("film.mp4")
    }
}

#[activities]
impl Renderer {
    #[activity]
    async fn await_film(
        &self,
        ctx: ActivityContext,
        film: String,
    ) -> Result<String, ActivityError> {
        let mut asked = 0;
        loop {
            if let Some(file) = self.status(&film) {
                return Ok(file.to_owned());
            }
            asked += 1;
            // If the worker dies, that is noticed within the heartbeat timeout, and another
            // continues.
            ctx.heartbeat(&asked)?;
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(10)) => {}
                // The film is no longer wanted.
                () = ctx.cancelled() => return Err(ActivityError::cancelled()),
            }
        }
    }
}

#[workflow]
async fn film(ctx: &Context, film: String) -> abide::Result<String> {
    ctx.activity(Renderer::await_film, film)
        // As long as the other system may need at most.
        .start_to_close(hours(1))
        .heartbeat_timeout(seconds(10))
        .await
}

#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    let engine = Embedded::in_memory().await;
    let renderer = Renderer { asked: AtomicU32::new(0) };
    engine.worker().workflow::<film>().activities(renderer).spawn();

    let film = film::start(&engine.client(), "film-1", "holidays").await?;
    println!("ready: {}", film.result().await?);
    println!("{} events in history, however often it asks", film.history().await?.len());
    Ok(())
}
