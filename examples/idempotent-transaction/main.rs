//! Idempotent transaction: money moves between two accounts exactly once, although the order
//! arrives twice and an attempt dies after it has taken the money. If the second step fails, the
//! first is undone.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

use abide::{Client, ClientError, ConflictPolicy, prelude::*, testing::TestEnvironment};

/// The other system: a bank that takes an idempotency key with each request, and carries out a
/// request with the same key only once.
#[derive(Default)]
struct Bank {
    books: Mutex<Books>,
}

#[derive(Default)]
struct Books {
    balances: BTreeMap<String, i64>,
    keys: BTreeSet<String>,
}

impl Bank {
    fn book(&self, account: &str, cents: i64, key: String) -> Result<(), ActivityError> {
        let mut books = self.books();
        if !books.balances.contains_key(account) {
            return Err(ActivityError::new(format!("no account of {account}")).non_retryable());
        }
        if books.keys.insert(key) {
            *books.balances.entry(account.to_owned()).or_default() += cents;
        }
        Ok(())
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[activities]
impl Bank {
    /// The key is the same for all attempts of this step, and different for every other step.
    #[activity]
    async fn change(
        &self,
        ctx: ActivityContext,
        account: String,
        cents: i64,
    ) -> Result<(), ActivityError> {
        self.book(&account, cents, ctx.execution_id().to_string())?;
        if ctx.attempt() == 1 && cents < 0 {
            // The worst moment: the money is taken, but the result is lost.
            panic!("the attempt dies");
        }
        Ok(())
    }

    #[activity]
    async fn balances(&self) -> BTreeMap<String, i64> {
        self.books().balances.clone()
    }
}

#[workflow]
async fn transfer(
    ctx: &Context,
    from: String,
    to: String,
    cents: i64,
) -> abide::Result<BTreeMap<String, i64>> {
    ctx.activity(Bank::change, (&from, -cents)).await?;
    if let Err(error) = ctx.activity(Bank::change, (to, cents)).await {
        // Undoing is a separate step with its own key, and is retried until it succeeds.
        ctx.activity(Bank::change, (from, cents)).await?;
        return Err(error);
    }
    ctx.call(Bank::balances).await
}

/// What a web server does for a form. The number of the form is the workflow's id and the key of
/// the start: however often it is sent, even after the transfer is done, there is one run of it.
async fn submit(
    client: &Client,
    form: &str,
    to: &str,
) -> Result<BTreeMap<String, i64>, ClientError> {
    let start = transfer::start(client, form, "ada", to, 30).key(form);
    start.on_conflict(ConflictPolicy::UseExisting).await?.result().await
}

#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    // The test environment skips time, because a retry waits a second.
    let bank = Bank::default();
    bank.books().balances.extend([("ada".to_owned(), 100), ("bob".to_owned(), 0)]);
    let env =
        TestEnvironment::with(|worker| worker.workflow::<transfer>().activities(bank)).await?;
    let client = env.client();

    // Sent twice concurrently, and once more when it is done.
    let (first, second) =
        tokio::join!(submit(&client, "form-1", "bob"), submit(&client, "form-1", "bob"));
    println!("first:  {:?}", first?);
    println!("second: {:?}", second?);
    println!("third:  {:?}", submit(&client, "form-1", "bob").await?);

    // This account does not exist, so the money is returned.
    match submit(&client, "form-2", "eve").await {
        Err(ClientError::RunFailed(failure)) => println!("form-2: {failure}"),
        other => println!("unexpected: {other:?}"),
    }
    println!("after a transfer back to herself: {:?}", submit(&client, "form-3", "ada").await?);
    Ok(())
}
