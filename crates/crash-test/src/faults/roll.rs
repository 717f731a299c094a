//! A rolling restart, as for an upgrade: each node is told to stop, hands its runs over, and is
//! restarted before the next one is told.

use crate::{
    check::{Finding, unable},
    site::Site,
};

pub(super) async fn perform(site: &mut Site) -> Result<(), Finding> {
    for node in &mut site.nodes {
        let process = &mut node.process;
        let status = process.terminate().await.map_err(unable("end"))?;
        if !status.success() {
            let what = format!("was told to end, and ended with {status}; see its log");
            return Err(Finding::new(process.name(), what));
        }
        process.start_again().map_err(unable("restart"))?;
        process.ready().await.map_err(unable("restart"))?;
    }
    Ok(())
}
