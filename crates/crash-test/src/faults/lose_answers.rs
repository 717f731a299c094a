//! A node loses its connections to the database right after a commit, so that it cannot know
//! whether the commit took effect.

use std::time::Duration;

use fastrand::Rng;
use tokio::time::{Instant, sleep};

use crate::{check::Finding, proxy::Traffic, site::Site, traveller::PATIENCE};

/// Answers to lose at least, and how long the fault lasts at least.
const ANSWERS: usize = 3;
const AT_LEAST: Duration = Duration::from_millis(300);

pub(super) async fn perform(site: &mut Site, rng: &mut Rng) -> Result<(), Finding> {
    let Some(proxy) = rng.choice(&site.nodes).and_then(|node| node.proxy.as_ref()) else {
        return Ok(());
    };
    let (before, begun) = (proxy.lost(), Instant::now());
    proxy.set(Traffic::LosesAnswers);
    while proxy.lost() < before + ANSWERS || begun.elapsed() < AT_LEAST {
        if begun.elapsed() > PATIENCE {
            proxy.set(Traffic::Open);
            return Err(Finding::new("a node", "commits nothing"));
        }
        sleep(AT_LEAST / 10).await;
    }
    proxy.set(Traffic::Open);
    Ok(())
}
