//! What a run waits for: a snapshot, or followed as it changes; the ends of waits can be moved.

use std::sync::Arc;

use abide_core::{
    follow::FollowedWaits,
    operation::{AwaitWaits, RunTarget, RunWaits},
    run::Movable,
    time::Timestamp,
};

use super::{Client, ClientError, RescheduleTimer, WorkflowHandle};
use crate::list::{Wait, WaitKey};

/// Reads what a run waits for, as it changes.
pub struct WaitsFollower {
    client: Client,
    followed: FollowedWaits,
    ended: bool,
}

impl<W> WorkflowHandle<W> {
    /// Everything that the run waits for; empty if it is closed.
    pub async fn waits(&self) -> Result<Vec<Wait>, ClientError> {
        let shown = self.client.ask(AwaitWaits { target: self.target(), after: 0 }).await?;
        Ok(waits(shown))
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
        RescheduleTimer::new(self.client.clone(), self.target(), Movable::Wait(wait.0), until)
    }

    /// Moves the end of a timer or wait, named as the engine names it. For Abide's own programs.
    #[doc(hidden)]
    pub fn reschedule(&self, what: Movable, until: Timestamp) -> RescheduleTimer {
        RescheduleTimer::new(self.client.clone(), self.target(), what, until)
    }
}

impl WaitsFollower {
    /// Waits until the run's waits differ from the last returned ones; none when the run is closed.
    pub async fn next(&mut self) -> Result<Option<Vec<Wait>>, ClientError> {
        while !self.ended {
            let answer = self.client.wait(self.followed.next()).await?;
            self.ended = answer.closed;
            if self.followed.news(&answer) && !answer.closed {
                return Ok(Some(waits(answer)));
            }
        }
        Ok(None)
    }
}

fn waits(shown: RunWaits) -> Vec<Wait> {
    Arc::unwrap_or_clone(shown.waits).into_iter().map(Wait::of).collect()
}
