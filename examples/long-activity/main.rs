//! Long-running activity: it reports its progress, resumes from there when it is retried, and stops
//! when it is cancelled.

use std::time::Duration;

use abide::{ClientError, prelude::*, testing::TestEnvironment};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

/// Progress of an import: what the next attempt needs to resume.
#[derive(Default, Serialize, Deserialize)]
struct Progress {
    pages: u32,
    rows: u32,
}

/// Reports what the import does, in order.
struct Importer {
    news: mpsc::UnboundedSender<String>,
}

#[activities]
impl Importer {
    #[activity]
    async fn import(&self, ctx: ActivityContext, pages: u32) -> Result<u32, ActivityError> {
        // Progress of the previous attempt, if there was one.
        let mut done = ctx.heartbeat_details::<Progress>()?.unwrap_or_default();
        self.tell(format!("attempt {} begins after page {}", ctx.attempt(), done.pages));
        while done.pages < pages {
            tokio::select! {
                rows = read_page(&ctx, done.pages + 1) => done.rows += rows?,
                () = ctx.cancelled() => {
                    self.tell("stopped, because nobody wants it".into());
                    return Err(ActivityError::cancelled());
                }
            }
            done.pages += 1;
            // Sent after the work that it reports: reading a page twice is better than skipping
            // one.
            ctx.heartbeat(&done)?;
        }
        Ok(done.rows)
    }
}

impl Importer {
    fn tell(&self, news: String) {
        // The receiver is gone when the program ends.
        let _ended = self.news.send(news);
    }
}

/// Stands for a slow system whose connection breaks once.
async fn read_page(ctx: &ActivityContext, page: u32) -> Result<u32, ActivityError> {
    tokio::time::sleep(Duration::from_millis(20)).await;
    if page == 4 && ctx.attempt() == 1 {
        return Err(ActivityError::new("the connection broke"));
    }
    Ok(100)
}

#[workflow]
async fn import(ctx: &Context, pages: u32) -> abide::Result<u32> {
    ctx.activity(Importer::import, pages)
        // The whole import may take hours; a dead worker is noticed much sooner.
        .start_to_close(hours(5))
        .heartbeat_timeout(Duration::from_millis(200))
        .await
}

#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    let (news, mut told) = mpsc::unbounded_channel();
    let env =
        TestEnvironment::with(|worker| worker.workflow::<import>().activities(Importer { news }))
            .await?;
    let client = env.client();

    let import = import::start(&client, "import-1", 6).await?;
    println!("{} rows", import.result().await?);
    for _ in 0..2 {
        println!("  {}", told.recv().await.unwrap_or_default());
    }

    // An import that would take days is cancelled. The attempt learns of it with its next
    // heartbeat.
    let endless = import::start(&client, "import-2", 1_000_000).await?;
    println!("  {}", told.recv().await.unwrap_or_default());
    endless.cancel().await?;
    while let Some(news) = told.recv().await {
        println!("  {news}");
        if news.starts_with("stopped") {
            break;
        }
    }
    println!("cancelled: {}", matches!(endless.result().await, Err(ClientError::RunCancelled(_))));
    Ok(())
}
