//! What is done to the processes while clients work, one file per fault. A fault is over when all that
//! it broke runs again; what it did to runs and calls is for the checks to find.

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

pub(super) use self::{
    failover::{Beacon, Failovers, rehearse},
    kill::Kills,
};
use super::{check::Finding, site::Site};

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(super) enum Fault {
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

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Every fault can be named on the command line.
        let name = self.to_possible_value();
        f.write_str(name.as_ref().map_or("fault", |name| name.get_name()))
    }
}

/// What faults need beside the processes.
pub(super) struct Scene<'a> {
    /// The processes.
    pub(super) site: &'a mut Site,
    /// A client of all nodes.
    pub(super) client: &'a Client,
    /// Restarts the database, if that is known.
    pub(super) restart_database: Option<&'a str>,
    /// What has been killed.
    pub(super) kills: &'a mut Kills,
    /// What was measured.
    pub(super) failovers: &'a mut Failovers,
}

impl Scene<'_> {
    /// Carries out a fault, to its end. Only kills hit nodes that start: one that finds no database then
    /// gives up, as it should.
    pub(super) async fn perform(&mut self, fault: Fault, rng: &mut Rng) -> Result<(), Finding> {
        if fault != Fault::Kill {
            self.site.ready().await?;
        }
        match fault {
            Fault::Kill => kill::perform(self.site, self.kills, rng).await,
            Fault::Failover => failover::perform(self.site, self.client, self.failovers, rng).await,
            Fault::Freeze => freeze::perform(self.site, rng).await,
            Fault::Cut => cut::perform(self.site, rng).await,
            Fault::LoseAnswers => lose_answers::perform(self.site, rng).await,
            Fault::Database => database::perform(self.restart_database).await,
            Fault::Roll => roll::perform(self.site).await,
        }
    }
}

/// A while that is longer than a lease, so that others have taken over before it is over.
fn past(lease: Duration, rng: &mut Rng) -> Duration {
    lease.mul_f64(1.3 + rng.f64())
}
