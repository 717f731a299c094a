//! Bounded parallelism: hundreds of steps, but never more than ten at the same time, because the
//! other system could not handle more. The results are in the order of the items.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use abide::{embedded::Embedded, prelude::*};

const AT_ONCE: usize = 10;

/// A system that counts its concurrent requests.
#[derive(Default)]
struct Archive {
    busy: AtomicUsize,
    busiest: AtomicUsize,
}

struct Archiving {
    archive: Arc<Archive>,
}

#[activities]
impl Archiving {
    #[activity]
    async fn store(&self, letter: u32) -> Result<u32, ActivityError> {
        let busy = self.archive.busy.fetch_add(1, Ordering::SeqCst) + 1;
        self.archive.busiest.fetch_max(busy, Ordering::SeqCst);
        tokio::task::yield_now().await;
        self.archive.busy.fetch_sub(1, Ordering::SeqCst);
        match letter % 100 {
            0 => Err(ActivityError::new("unreadable").non_retryable()),
            _ => Ok(letter),
        }
    }
}

#[workflow]
async fn letters(ctx: &Context, count: u32) -> abide::Result<String> {
    // The next starts when any has ended. `try_map_bounded` would stop at the first failure.
    let store = |letter| ctx.activity(Archiving::store, letter);
    let stored = ctx.map_bounded(AT_ONCE, 1..=count, store).await;
    let mut failed = Vec::new();
    for (letter, stored) in (1..).zip(stored) {
        match stored {
            Ok(_) => {}
            Err(Error::Activity(_)) => failed.push(letter),
            Err(error) => return Err(error),
        }
    }
    Ok(format!("{} of {count} letters were stored, not {failed:?}", count - failed.len() as u32))
}

#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    let engine = Embedded::in_memory().await;
    let archive = Arc::new(Archive::default());
    let activities = Archiving { archive: Arc::clone(&archive) };
    engine.worker().workflow::<letters>().activities(activities).spawn();

    let letters = letters::start(&engine.client(), "letters", 300).await?;
    println!("{}", letters.result().await?);
    let busiest = archive.busiest.load(Ordering::SeqCst);
    println!("never more than {AT_ONCE} at once: {}", busiest <= AT_ONCE);
    Ok(())
}
