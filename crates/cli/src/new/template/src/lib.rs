//! The workflow, its activity, and the list of both for workers.

use abide::{Worker, prelude::*};

/// An activity has side effects: it may call a service, write a file, fail. It is retried until it succeeds.
#[activity]
pub async fn remind(customer: String) {
    println!("{customer}, please remember to pay");
}

/// A workflow with state is a struct. Without state, `#[workflow]` stands on an async function.
#[derive(Default)]
pub struct Order {
    paid: u64,
}

#[workflow]
impl Order {
    /// Waits for the payment, for weeks if need be: a crash or a deploy in between costs nothing. Code
    /// here has side effects through activities only, because it is replayed from its history.
    #[run]
    async fn run(ctx: &Context<Self>, customer: String, cents: u64) -> abide::Result<String> {
        for _ in 0..3 {
            let paid = ctx.wait_until(condition!("order.paid", |it| it.paid >= cents));
            match paid.timeout(weeks(1)).await? {
                Outcome::InTime(()) => return Ok(format!("{customer} has paid")),
                Outcome::TimedOut => ctx.activity(remind, &customer).await?,
            }
        }
        Ok(format!("{customer} has not paid"))
    }

    #[signal]
    pub fn pay(&mut self, cents: u64) {
        self.paid += cents;
    }
}

/// Everything that a worker of this program runs.
pub fn register(worker: Worker) -> Worker {
    worker.workflow::<Order>().activity(remind)
}
