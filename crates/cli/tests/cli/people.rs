//! A worker whose workflows wait for people: each asks for one decision per thing, of which only Anna and
//! managers are capable.

use abide::{
    Client, Timestamp, Worker, Workflow,
    approval::{Approvals, Request},
    prelude::*,
};
use tokio::runtime::Runtime;

/// The queue of these workflows.
pub(crate) const QUEUE: &str = "people";

#[derive(Default)]
struct Purchase {
    approvals: Approvals,
}

#[workflow(name = "purchase", approvals = approvals)]
impl Purchase {
    /// Asks for all things at once, and ends with the first that is decided.
    #[run]
    async fn run(ctx: &Context<Self>, things: Vec<String>) -> abide::Result<Vec<String>> {
        let year_9000 = Timestamp::new(221_845_392_000, 0).expect("a moment");
        let asked = things.into_iter().map(|thing| {
            let request = Request::new(&*thing)
                .about(format!("a new {thing}"))
                .data("price", &300)
                .approver("anna")
                .requested_by("carl")
                .role("managers")
                .timeout(hours(24))
                .max_extensions(1)
                .not_after(year_9000);
            ctx.approval(request).start()
        });
        let mut asked: Vec<_> = asked.collect();
        let first = asked.pop().expect("something is asked for").await?;
        Ok(first.decided_by().iter().map(ToString::to_string).collect())
    }
}

/// The same workflow after a change that does not fit the runs there are: it sleeps before it asks.
#[derive(Default)]
struct Slower {
    approvals: Approvals,
}

#[workflow(name = "purchase", approvals = approvals)]
impl Slower {
    #[run]
    async fn run(ctx: &Context<Self>, things: Vec<String>) -> abide::Result<Vec<String>> {
        ctx.sleep(hours(1)).await?;
        Ok(things)
    }
}

/// A running worker. It ends when it is dropped.
pub(crate) struct People(Runtime);

impl People {
    /// Takes the work of the engine at this address.
    pub(crate) fn ask(address: &str) -> Self {
        Self::work::<Purchase>(address, "test")
    }

    /// Does so with code that does not fit the runs of the other.
    pub(crate) fn changed(address: &str) -> Self {
        Self::work::<Slower>(address, "changed")
    }

    pub(crate) fn work<W: Workflow>(address: &str, build: &'static str) -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let address = address.to_owned();
        runtime.spawn(async move {
            let client = Client::connect_lazy(address).expect("a good address");
            let worker = Worker::new(&client).queue(QUEUE).build_id(build);
            worker.workflow::<W>().run().await.expect("it works until it is stopped");
        });
        Self(runtime)
    }

    /// Ends it.
    pub(crate) fn leave(self) {
        self.0.shutdown_background();
    }
}
