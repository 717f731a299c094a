//! Update: input that the workflow may reject, and that returns a result.

use abide::{ClientError, embedded::Embedded, prelude::*};

#[derive(Default)]
struct Account {
    balance: u32,
    closed: bool,
}

#[workflow]
impl Account {
    /// Creates the initial state, instead of `Default::default()`.
    #[init]
    fn new(opening_balance: &u32) -> Self {
        Self { balance: *opening_balance, closed: false }
    }

    #[run]
    async fn run(ctx: &Context<Self>, _opening_balance: u32) -> abide::Result<u32> {
        ctx.receive(Self::CLOSE).await?;
        ctx.write(|state| state.closed = true);
        Ok(ctx.read(|state| state.balance))
    }

    /// The caller waits for the result: here, the new balance.
    #[update(validate = check_withdrawal)]
    fn withdraw(&mut self, amount: u32) -> u32 {
        self.balance -= amount;
        self.balance
    }

    /// A validator reads and rejects. What it rejects is not in history: it never happened.
    fn check_withdrawal(&self, amount: &u32) -> Result<(), String> {
        match self.balance.checked_sub(*amount) {
            Some(_) if !self.closed => Ok(()),
            Some(_) => Err("the account is closed".into()),
            None => Err(format!("{amount} is more than there is: {}", self.balance)),
        }
    }

    #[signal]
    fn close();
}

#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    let engine = Embedded::in_memory().await;
    engine.worker().workflow::<Account>().spawn();
    let account = Account::start(&engine.client(), "account-1", 100).await?;

    println!("balance: {}", account.withdraw(30).await?);

    match account.withdraw(500).await {
        Err(ClientError::UpdateRejected(failure)) => println!("rejected: {failure}"),
        other => println!("unexpected: {other:?}"),
    }

    // With your own id, a repeat is the same update: it gets the result of the first.
    println!("balance: {}", account.withdraw(20).id("invoice-7").await?);
    println!("balance: {}", account.withdraw(20).id("invoice-7").await?);

    account.close().await?;
    println!("paid out: {}", account.result().await?);
    Ok(())
}
