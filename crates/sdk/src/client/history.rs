//! The history of a run: as it is now, or followed as it grows.

use abide_core::{
    call::{HistoryPage, HistoryRequest, RunTarget},
    codec,
    event::Event,
    ids::EventNumber,
};

use super::{Client, ClientError, WorkflowHandle};

/// Follows the history of a run.
pub struct HistoryFollower {
    client: Client,
    target: RunTarget,
    next: u64,
    last_event: EventNumber,
    ended: bool,
}

impl<W> WorkflowHandle<W> {
    /// All events of the run so far.
    pub async fn history(&self) -> Result<Vec<Event>, ClientError> {
        let mut reader = self.follow_history();
        let mut history = Vec::new();
        loop {
            let (events, more) = reader.read(None).await?;
            history.extend(events);
            if !more {
                return Ok(history);
            }
        }
    }

    /// Follows the history of the run from its beginning.
    pub fn follow_history(&self) -> HistoryFollower {
        let target = RunTarget { run: self.run_id(), ..self.target() };
        HistoryFollower {
            client: self.client.clone(),
            target,
            next: 0,
            last_event: 0,
            ended: false,
        }
    }
}

impl HistoryFollower {
    /// The next events, as soon as there are some; none when the run is closed and all was read.
    pub async fn next(&mut self) -> Result<Option<Vec<Event>>, ClientError> {
        while !self.ended {
            let (events, _) = self.read(Some(self.last_event)).await?;
            if !events.is_empty() {
                return Ok(Some(events));
            }
        }
        Ok(None)
    }

    async fn read(
        &mut self,
        follow: Option<EventNumber>,
    ) -> Result<(Vec<Event>, bool), ClientError> {
        let request = HistoryRequest { target: self.target.clone(), from: self.next, follow };
        let HistoryPage { run, rows, next, more, closed } = if follow.is_some() {
            self.client.wait_for(|| self.client.transport().history(request.clone())).await?
        } else {
            self.client.repeat(|| self.client.transport().history(request.clone())).await?
        };
        let mut events = Vec::new();
        for row in rows {
            let decoded = codec::decode_events(row).map_err(|error| {
                ClientError::Unavailable(format!("the history cannot be decoded: {error}"))
            })?;
            events.extend(decoded);
        }
        // The current run may change between two pages.
        self.target.run = Some(run);
        self.next = next;
        self.last_event = events.last().map_or(self.last_event, |event: &Event| event.number);
        self.ended = closed && !more;
        Ok((events, more))
    }
}
