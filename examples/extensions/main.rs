//! Extensions: an auction that ends when there was no bid for a while. Each bid reschedules the
//! same deadline, and however often that happens, there is one timer.

use std::time::Duration;

use abide::{prelude::*, testing::TestEnvironment};

#[derive(Default)]
struct Auction {
    best: Option<(String, u32)>,
    closing: Deadline,
    last_call: bool,
    refused: Vec<String>,
}

#[workflow]
impl Auction {
    #[run]
    async fn run(ctx: &Context<Self>, length: Duration) -> abide::Result<String> {
        let closing = ctx.sleep(length).start();
        ctx.write(|auction| auction.closing = closing.deadline());
        closing.await?;
        Ok(ctx.read(|auction| match &auction.best {
            Some((name, amount)) => format!("sold to {name} for {amount}"),
            None => "not sold".into(),
        }))
    }

    /// A better bid leaves the others five more minutes, unless it is the last call.
    #[signal]
    fn bid(&mut self, name: String, amount: u32) {
        if self.best.as_ref().is_some_and(|(_, best)| *best >= amount) {
            return;
        }
        self.best = Some((name, amount));
        if self.last_call {
            return;
        }
        // The sender of a signal gets no reply, so errors are kept for a query.
        if let Err(refused) = self.closing.extend(minutes(5)) {
            self.refused.push(refused.to_string());
        }
    }

    #[signal]
    fn last_call(&mut self) {
        self.last_call = true;
    }

    /// Why bids did not extend the deadline.
    #[query]
    fn refused(&self) -> Vec<String> {
        self.refused.clone()
    }
}

#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    // The test environment skips time, so that this auction takes no real time.
    let env = TestEnvironment::with(|worker| worker.workflow::<Auction>()).await?;
    let begun = env.now();
    let auction = Auction::start(&env.client(), "lamp", minutes(30)).await?;

    for (name, amount) in [("Ada", 10), ("Bob", 20), ("Bob", 15), ("Ada", 30)] {
        env.skip(minutes(5)).await;
        auction.bid(name, amount).await?;
    }
    auction.last_call().await?;
    auction.bid("Cid", 40).await?;

    println!("{}", auction.result().await?);
    println!("after {} minutes", env.now().saturating_since(begun).as_secs() / 60);

    let history = auction.history().await?;
    let count = |name| history.iter().filter(|event| event.name() == name).count();
    let (timers, moves) = (count("TimerStarted"), count("TimerRescheduled"));
    println!("{timers} timer, moved {moves} times");
    Ok(())
}
