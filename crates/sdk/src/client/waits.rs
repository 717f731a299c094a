//! What a run waits for: as it is now, or followed as it changes; and its ends, which can be moved.

pub use abide_core::run::{ShownWait, WaitKey};
use abide_core::{
    call::{Call, CallReply, RunTarget, RunWaits},
    run::Movable,
    time::Timestamp,
};

use super::{Client, ClientError, RescheduleTimer, WorkflowHandle};

/// Follows what a run waits for.
pub struct WaitsFollower {
    client: Client,
    target: RunTarget,
    log_row: u64,
    told: Option<Vec<ShownWait>>,
    ended: bool,
}

impl<W> WorkflowHandle<W> {
    /// Everything that the run waits for; nothing if it is closed.
    pub async fn waits(&self) -> Result<Vec<ShownWait>, ClientError> {
        let reply = self.client.call(Call::AwaitWaits(self.target(), 0)).await?;
        Ok(waits(reply)?.waits)
    }

    /// Follows what the run waits for, until it is closed.
    pub fn follow_waits(&self) -> WaitsFollower {
        let target = RunTarget { run: self.run_id(), ..self.target() };
        WaitsFollower { client: self.client.clone(), target, log_row: 0, told: None, ended: false }
    }

    /// Moves the end of a wait that has one: of a sleep, or the deadline of a wait for a signal, a
    /// condition or an approval. Await what this returns.
    pub fn reschedule_wait(&self, wait: WaitKey, until: Timestamp) -> RescheduleTimer {
        RescheduleTimer::new(self.client.clone(), self.target(), Movable::Wait(wait), until)
    }
}

impl WaitsFollower {
    /// What the run waits for, as soon as it is not what was told before; none when it is closed.
    pub async fn next(&mut self) -> Result<Option<Vec<ShownWait>>, ClientError> {
        while !self.ended {
            let call = Call::AwaitWaits(self.target.clone(), self.log_row);
            let RunWaits { run, log_row, waits, closed } = waits(self.client.wait(call).await?)?;
            // The current run may be another one soon; this stays with the one it began with.
            self.target.run = Some(run);
            self.log_row = log_row;
            self.ended = closed;
            if !closed && self.told.as_ref() != Some(&waits) {
                self.told = Some(waits.clone());
                return Ok(Some(waits));
            }
        }
        Ok(None)
    }
}

fn waits(reply: CallReply) -> Result<RunWaits, ClientError> {
    match reply {
        CallReply::Waits(waits) => Ok(waits),
        reply => Err(ClientError::unexpected(&reply)),
    }
}
