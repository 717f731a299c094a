//! Claim check: data that is too large for a history is stored elsewhere, and only a ticket is
//! passed around. A value has at most 2 MB, and all inputs and results of a workflow stay in its
//! history.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use abide::{ClientError, embedded::Embedded, prelude::*};
use serde::{Deserialize, Serialize};

/// Stands for large data.
const FILM: usize = 2_000_000;

/// What is passed around instead of the data.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Ticket(String);

/// Stands for a store of large objects, such as a bucket. Activities on all machines can reach it.
#[derive(Default)]
struct Wardrobe {
    objects: Mutex<BTreeMap<String, Vec<u8>>>,
}

impl Wardrobe {
    fn objects(&self) -> MutexGuard<'_, BTreeMap<String, Vec<u8>>> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn object(&self, ticket: &Ticket) -> Result<Vec<u8>, ActivityError> {
        let found = self.objects().get(&ticket.0).cloned();
        found.ok_or_else(|| ActivityError::new(format!("nothing for {ticket:?}")).non_retryable())
    }
}

#[activities]
impl Wardrobe {
    /// The name is derived from the activity, so that a retry writes the same object.
    #[activity]
    async fn download(&self, ctx: ActivityContext, _address: String) -> Ticket {
        let name = ctx.execution_id().to_string();
        self.objects().insert(name.clone(), vec![1; FILM]);
        Ticket(name)
    }

    #[activity]
    async fn measure(&self, film: Ticket) -> Result<usize, ActivityError> {
        Ok(self.object(&film)?.len())
    }

    /// When the run ends, its data is deleted; the store should also expire old objects by itself.
    #[activity]
    async fn forget(&self, ticket: Ticket) {
        self.objects().remove(&ticket.0);
    }
}

/// What happens without a ticket.
#[activity]
async fn download_all(_address: String) -> Vec<u8> {
    vec![1; FILM]
}

#[derive(Default)]
struct Film;

#[workflow]
impl Film {
    #[run]
    async fn run(ctx: &Context<Self>, address: String, ticket: bool) -> abide::Result<usize> {
        if !ticket {
            return Ok(ctx.activity(download_all, address).await?.len());
        }
        let film = ctx.activity(Wardrobe::download, address).await?;
        let size = ctx.activity(Wardrobe::measure, film.clone()).await?;
        ctx.activity(Wardrobe::forget, film).await?;
        Ok(size)
    }
}

#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    let engine = Embedded::in_memory().await;
    let worker = engine.worker().workflow::<Film>().activity(download_all);
    worker.activities(Wardrobe::default()).spawn();
    let client = engine.client();

    let film = client.start::<Film>("film-1", ("film.example.org".to_owned(), true)).await?;
    println!("the film has {} bytes", film.result().await?);
    let history = film.describe().await?.history_bytes;
    println!("its history has less than 5 kB: {}", history < 5_000);

    let film = client.start::<Film>("film-2", ("film.example.org".to_owned(), false)).await?;
    match film.result().await {
        Err(ClientError::RunFailed(failure)) => println!("without a ticket: {}", failure.message),
        other => println!("unexpected: {other:?}"),
    }
    Ok(())
}
