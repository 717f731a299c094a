//! A node loses its connection to the database for longer than its lease: connections are refused,
//! or bytes disappear. Clients and other nodes still reach it.

use fastrand::Rng;
use tokio::time::sleep;

use super::past;
use crate::{check::Finding, proxy::Traffic, site::Site};

pub(super) async fn perform(site: &mut Site, rng: &mut Rng) -> Result<(), Finding> {
    let way = if rng.bool() { Traffic::Closed } else { Traffic::Silent };
    let cut_off = past(site.lease, rng);
    let Some(proxy) = rng.choice(&site.nodes).and_then(|node| node.proxy.as_ref()) else {
        return Ok(());
    };
    proxy.set(way);
    sleep(cut_off).await;
    proxy.set(Traffic::Open);
    Ok(())
}
