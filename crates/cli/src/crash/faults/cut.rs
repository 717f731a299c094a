//! A node loses its connection to the database for longer than its lease: connections are refused,
//! or bytes disappear. Clients and other nodes still reach it.

use fastrand::Rng;
use tokio::time::sleep;

use super::{
    super::{check::Finding, proxy::Way, site::Site},
    past,
};

pub(super) async fn perform(site: &mut Site, rng: &mut Rng) -> Result<(), Finding> {
    let way = if rng.bool() { Way::Closed } else { Way::Silent };
    let cut_off = past(site.lease, rng);
    let Some(proxy) = rng.choice(&site.nodes).and_then(|node| node.proxy.as_ref()) else {
        return Ok(());
    };
    proxy.set(way);
    sleep(cut_off).await;
    proxy.set(Way::Open);
    Ok(())
}
