//! What a run waits for: a snapshot, or followed as it changes; the ends of waits can be moved.

use std::sync::Arc;

pub use abide_core::run::{ShownWait, WaitKey};
use abide_core::{
    follow::FollowedWaits,
    operation::{AwaitWaits, RunTarget},
    run::Movable,
    time::Timestamp,
};

use super::{Client, ClientError, RescheduleTimer, WorkflowHandle};

/// Reads what a run waits for, as it changes.
pub struct WaitsFollower {
    client: Client,
    followed: FollowedWaits,
    ended: bool,
}

impl<W> WorkflowHandle<W> {
    /// Everything that the run waits for; empty if it is closed.
    pub async fn waits(&self) -> Result<Vec<ShownWait>, ClientError> {
        let shown = self.client.ask(AwaitWaits { target: self.target(), after: 0 }).await?;
        Ok(Arc::unwrap_or_clone(shown.waits))
    }

    /// Follows what the run waits for, until it is closed.
    pub fn follow_waits(&self) -> WaitsFollower {
        let target = RunTarget { run: self.run_id(), ..self.target() };
        let followed = FollowedWaits::new(target, 0);
        WaitsFollower { client: self.client.clone(), followed, ended: false }
    }

    /// Moves the end of a wait that has one: of a sleep, or the deadline of a wait for a signal, a
    /// condition or an approval. Await the returned value.
    pub fn reschedule_wait(&self, wait: WaitKey, until: Timestamp) -> RescheduleTimer {
        RescheduleTimer::new(self.client.clone(), self.target(), Movable::Wait(wait), until)
    }
}

impl WaitsFollower {
    /// Waits until the run's waits differ from the last returned ones; none when the run is closed.
    pub async fn next(&mut self) -> Result<Option<Vec<ShownWait>>, ClientError> {
        while !self.ended {
            let answer = self.client.wait(self.followed.next()).await?;
            self.ended = answer.closed;
            if self.followed.news(&answer) && !answer.closed {
                return Ok(Some(Arc::unwrap_or_clone(answer.waits)));
            }
        }
        Ok(None)
    }
}
