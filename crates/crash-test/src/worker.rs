//! A worker of the crash test, which is a process of its own.

use std::path::Path;

use abide::Worker;
use abide_command::{Common, Failed};

use crate::{
    auction::Auction,
    faults::Beacon,
    journey::{Detour, Journey, Ledger, QUEUE},
    register::Register,
    site,
    traveller::PATIENCE,
};

/// Serves the runs of the crash test until the process is killed.
pub(crate) async fn work(common: &Common, folder: &Path) -> Result<(), Failed> {
    let failed = |error: &dyn std::fmt::Display| Failed::refused(format_args!("worker: {error}"));
    let client = site::connect(&common.engine_url()?, PATIENCE).map_err(|error| failed(&error))?;
    let ledger = Ledger::open(&site::ledger_of(folder)).map_err(|error| failed(&error))?;
    let worker = Worker::new(&client).queue(QUEUE).activities(ledger);
    let worker = worker.workflow::<Journey>().workflow::<Detour>();
    let worker = worker.workflow::<Beacon>().workflow::<Register>().workflow::<Auction>();
    worker.run().await.map_err(|error| failed(&error))
}
