//! A node is frozen past its lease and resumes, with all its connections and its memory. Other
//! nodes own its runs by then, so it must not write, fire or answer for them.

use fastrand::Rng;
use tokio::time::sleep;

use super::past;
use crate::{
    check::{Finding, unable},
    site::Site,
};

pub(super) async fn perform(site: &mut Site, rng: &mut Rng) -> Result<(), Finding> {
    let stands_still = past(site.lease, rng);
    let Some(node) = rng.choice(&site.nodes) else { return Ok(()) };
    node.process.freeze().map_err(unable("freeze"))?;
    sleep(stands_still).await;
    node.process.thaw().map_err(unable("thaw"))
}
