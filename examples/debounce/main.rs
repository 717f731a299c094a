//! Debounced timer: a document is indexed when it has not changed for half a minute, but at the
//! latest ten minutes after the first change. Each change reschedules the same timer.

use abide::{Timestamp, prelude::*, testing::TestEnvironment};

#[activity]
async fn index(document: String, changes: u32) -> String {
    format!("{document}: indexed once for {changes} changes")
}

#[derive(Default)]
struct Indexing {
    changes: u32,
    quiet: Deadline,
    latest: Timestamp,
    refused: Vec<String>,
}

#[workflow]
impl Indexing {
    #[run]
    async fn run(ctx: &Context<Self>, document: String) -> abide::Result<String> {
        let quiet = ctx.sleep(seconds(30)).start();
        ctx.write(|state| {
            state.quiet = quiet.deadline();
            state.latest = ctx.now() + minutes(10);
        });
        quiet.await?;
        let changes = ctx.read(|state| state.changes);
        ctx.activity(index, (document, changes)).await
    }

    /// An async handler has the context, and with it the current time.
    #[signal]
    async fn changed(ctx: &Context<Self>) {
        let half_a_minute = ctx.now() + seconds(30);
        ctx.write(|state| {
            state.changes += 1;
            // The sender of a signal gets no reply, so errors are kept for a query.
            let moved = state.quiet.reset(half_a_minute.min(state.latest));
            state.refused.extend(moved.err().map(|refused| refused.to_string()));
        });
    }

    /// Why changes did not postpone the indexing.
    #[query]
    fn refused(&self) -> Vec<String> {
        self.refused.clone()
    }
}

#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    let env = TestEnvironment::with(|worker| worker.workflow::<Indexing>().activity(index)).await?;
    let client = env.client();

    // A user makes three changes and leaves.
    let begun = env.now();
    let letter = Indexing::start(&client, "index-letter", "letter").await?;
    for _ in 0..3 {
        letter.changed().await?;
        env.skip(seconds(20)).await;
    }
    println!("{}", letter.result().await?);
    println!("after {} seconds", env.now().saturating_since(begun).as_secs());

    // A user writes a book without a pause.
    let begun = env.now();
    let book = Indexing::start(&client, "index-book", "book").await?;
    while env.now() < begun + minutes(9) {
        book.changed().await?;
        env.skip(seconds(10)).await;
    }
    book.changed().await?;
    println!("{}", book.result().await?);
    println!("after {} seconds", env.now().saturating_since(begun).as_secs());
    Ok(())
}
