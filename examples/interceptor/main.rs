//! Interceptor: code around every call, attempt and message. Here it carries the name of a tenant
//! from the client to the activity, and bills every attempt to that tenant.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use abide::{
    ClientError, Worker,
    embedded::Embedded,
    interceptor::{
        ActivityEnd, Attempt, BoxFuture, CallAnswer, ClientCall, Interceptor, NextAttempt,
        NextCall, PropagateHeaders,
    },
    prelude::*,
};

#[activity]
async fn render(page: u32) -> String {
    format!("page {page}")
}

#[derive(Default)]
struct Report;

#[workflow]
impl Report {
    #[run]
    async fn run(ctx: &Context<Self>, pages: u32) -> abide::Result<Vec<String>> {
        let mut rendered = Vec::new();
        for page in 1..=pages {
            rendered.push(ctx.activity(render, page).await?);
        }
        Ok(rendered)
    }
}

/// Sets a header with every call of one client.
struct Tenant(&'static str);

impl Interceptor for Tenant {
    fn call<'a>(
        &'a self,
        mut call: ClientCall,
        next: NextCall<'a>,
    ) -> BoxFuture<'a, Result<CallAnswer, ClientError>> {
        call.headers.set_text("tenant", self.0);
        next.run(call)
    }
}

/// Counts the attempts of each tenant.
#[derive(Clone, Default)]
struct Bill(Arc<Mutex<BTreeMap<String, u32>>>);

impl Interceptor for Bill {
    fn activity<'a>(
        &'a self,
        attempt: Attempt,
        next: NextAttempt<'a>,
    ) -> BoxFuture<'a, ActivityEnd> {
        let tenant = attempt.context.header("tenant").ok().flatten();
        let tenant = tenant.unwrap_or_else(|| "nobody".to_owned());
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(tenant).or_default() += 1;
        next.run(attempt)
    }
}

#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    let engine = Embedded::in_memory().await;
    let (client, bill) = (engine.client(), Bill::default());
    // Headers go no further by themselves: the second interceptor passes this one on.
    Worker::new(&client)
        .workflow::<Report>()
        .activity(render)
        .interceptor(bill.clone())
        .interceptor(PropagateHeaders::new(["tenant"]))
        .spawn();

    for (tenant, pages) in [("acme", 3), ("globex", 1)] {
        let client = client.clone().with_interceptor(Tenant(tenant));
        let report = client.start::<Report>(format!("report-{tenant}"), pages).await?;
        println!("{tenant}: {}", report.result().await?.join(", "));
    }
    for (tenant, attempts) in &*bill.0.lock().unwrap_or_else(PoisonError::into_inner) {
        println!("{tenant} pays for {attempts}");
    }
    Ok(())
}
