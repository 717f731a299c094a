//! Faults that happen to the processes while clients work, one file each. A fault is over when
//! everything that it broke runs again; the checks find what it did to runs and calls.

mod cut;
mod database;
mod failover;
mod freeze;
mod kill;
mod lose_answers;
mod roll;

use std::{fmt, time::Duration};

use abide::Client;
use clap::ValueEnum;
use fastrand::Rng;

pub(crate) use self::{
    failover::{Beacon, Failovers, rehearse},
    kill::Kills,
};
use crate::{check::Finding, site::Site};

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum FaultKind {
    /// Nodes and workers are killed, one or several at once, and started again
    Kill,
    /// A node is killed and stays away until others have all its runs
    Failover,
    /// A node stands still for longer than its lease, and goes on
    Freeze,
    /// A node is cut off from the database for longer than its lease, while clients reach it
    Cut,
    /// The connection is lost between a commit and its answer
    LoseAnswers,
    /// The database is restarted by --restart-database
    Database,
    /// All nodes are told to end and started again, one after the other
    Roll,
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Every fault has a name on the command line.
        let name = self.to_possible_value();
        f.write_str(name.as_ref().map_or("fault", |name| name.get_name()))
    }
}

/// Everything that faults act on.
pub(crate) struct Scene<'a> {
    pub(crate) site: &'a mut Site,
    /// A client of all nodes.
    pub(crate) client: &'a Client,
    /// Command that restarts the database, if one was given.
    pub(crate) restart_database: Option<&'a str>,
    /// Kills that are left to do, and those done.
    pub(crate) kills: &'a mut Kills,
    /// Durations of the failovers.
    pub(crate) failovers: &'a mut Failovers,
}

impl Scene<'_> {
    /// Carries out a fault to its end. Only kills hit nodes that are starting: a node that finds no
    /// database at its start gives up, as it should.
    pub(crate) async fn perform(&mut self, fault: FaultKind, rng: &mut Rng) -> Result<(), Finding> {
        if fault != FaultKind::Kill {
            self.site.ready().await?;
        }
        match fault {
            FaultKind::Kill => kill::perform(self.site, self.kills, rng).await,
            FaultKind::Failover => {
                failover::perform(self.site, self.client, self.failovers, rng).await
            }
            FaultKind::Freeze => freeze::perform(self.site, rng).await,
            FaultKind::Cut => cut::perform(self.site, rng).await,
            FaultKind::LoseAnswers => lose_answers::perform(self.site, rng).await,
            FaultKind::Database => database::perform(self.restart_database).await,
            FaultKind::Roll => roll::perform(self.site).await,
        }
    }
}

/// A duration longer than a lease, so that other nodes take over before it ends.
fn past(lease: Duration, rng: &mut Rng) -> Duration {
    lease.mul_f64(1.3 + rng.f64())
}
