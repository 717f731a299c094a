//! The history of a run: a snapshot, or followed as it grows.

use abide_core::{
    codec,
    event::Event,
    follow::FollowedHistory,
    operation::{HistoryPage, RunTarget},
};

use super::{
    Client, ClientError, WorkflowHandle,
    list::{Fetch, List, Page},
};

/// Reads the history of a run as it grows.
pub struct HistoryFollower {
    client: Client,
    followed: FollowedHistory,
}

impl<W> WorkflowHandle<W> {
    /// The events of the run so far: `handle.history().await?`, or one by one.
    pub fn history(&self) -> List<Event> {
        List::new(fetch(self.follow_history()))
    }

    /// Follows the history of the run from its first event.
    pub fn follow_history(&self) -> HistoryFollower {
        let target = RunTarget { run: self.run_id(), ..self.target() };
        HistoryFollower { client: self.client.clone(), followed: FollowedHistory::new(target, 0) }
    }
}

/// The next page of events so far. Pages have the size that the engine chooses.
fn fetch(mut follower: HistoryFollower) -> Fetch<Event> {
    Box::new(move |_| {
        Box::pin(async move {
            let page = follower.client.ask(follower.followed.page()).await?;
            let more = page.more;
            let rows = follower.take(page).await?;
            Ok(Page { rows, next: more.then(|| fetch(follower)) })
        })
    })
}

impl HistoryFollower {
    /// Waits for the next events; none when the run is closed and all events were read.
    pub async fn next(&mut self) -> Result<Option<Vec<Event>>, ClientError> {
        while !self.followed.ended() {
            let page = self.client.wait(self.followed.next()).await?;
            let events = self.take(page).await?;
            if !events.is_empty() {
                return Ok(Some(events));
            }
        }
        Ok(None)
    }

    async fn take(&mut self, mut page: HistoryPage) -> Result<Vec<Event>, ClientError> {
        let mut events = Vec::new();
        for row in std::mem::take(&mut page.rows) {
            let decoded = codec::decode_events(row).map_err(|error| {
                ClientError::Unavailable(format!("the history cannot be decoded: {error}"))
            })?;
            events.extend(decoded);
        }
        // Without codecs, encoded data is shown as it is.
        if !self.client.codecs().is_empty() {
            self.client.codecs().decode_all(&mut events).await?;
        }
        self.followed.took(&page, events.last().map(|event| event.number));
        Ok(events)
    }
}
