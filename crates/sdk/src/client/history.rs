//! The history of a run: a snapshot, or followed as it grows. Its events are shown by a type of their
//! own, because the form in which they are stored may grow and change.

use std::fmt;

use abide_core::{
    codec,
    event::{Event, Fact},
    follow::FollowedHistory,
    ids::EventNumber,
    operation::{HistoryPage, RunTarget},
    time::Timestamp,
};

use super::{
    Client, ClientError, WorkflowHandle,
    list::{Fetch, List, Page},
};

/// An event in the history of a run. `{event}` shows its number and name, and `{event:?}` all of it, in
/// a form that may change. Tests compare what a workflow requested by `abide::testing::steps`.
#[derive(Clone, PartialEq)]
pub struct HistoryEvent(Event);

impl HistoryEvent {
    /// Its place in the history; the first is 1.
    pub const fn number(&self) -> EventNumber {
        self.0.number
    }

    /// When it happened, by the engine's clock; never before the event before it.
    pub const fn time(&self) -> Timestamp {
        self.0.time
    }

    /// What happened, such as `TimerFired`. The guide's pages list the events of each concept.
    pub const fn name(&self) -> &'static str {
        self.0.name()
    }

    /// For Abide's own programs, which show and check everything that is stored.
    #[doc(hidden)]
    pub const fn new(event: Event) -> Self {
        Self(event)
    }

    /// What is stored. For Abide's own programs.
    #[doc(hidden)]
    pub const fn recorded(&self) -> &Event {
        &self.0
    }

    /// What is stored of these events. For Abide's own programs.
    #[doc(hidden)]
    pub fn all_recorded(events: Vec<Self>) -> Vec<Event> {
        events.into_iter().map(|event| event.0).collect()
    }

    /// What is stored as its content. For Abide's own programs.
    #[doc(hidden)]
    pub const fn fact(&self) -> &Fact {
        &self.0.body.fact
    }
}

impl fmt::Display for HistoryEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.number(), self.name())
    }
}

impl fmt::Debug for HistoryEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Reads the history of a run as it grows.
pub struct HistoryFollower {
    client: Client,
    followed: FollowedHistory,
}

impl<W> WorkflowHandle<W> {
    /// The events of one run so far: `handle.history().await?`, or one by one. It is the run of
    /// [`run_id`](Self::run_id), which for a handle from a start is the first of its chain; a handle
    /// without one reads the current run. For a later run of a chain:
    /// `handle.run(handle.describe().await?.run).history()`.
    pub fn history(&self) -> List<HistoryEvent> {
        List::new(fetch(self.follow_history()))
    }

    /// Follows the history of one run, the same as [`history`](Self::history), from its first event.
    pub fn follow_history(&self) -> HistoryFollower {
        let target = RunTarget { run: self.run_id(), ..self.target() };
        HistoryFollower { client: self.client.clone(), followed: FollowedHistory::new(target, 0) }
    }
}

/// The next page of events so far. Pages have the size that the engine chooses.
fn fetch(mut follower: HistoryFollower) -> Fetch<HistoryEvent> {
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
    pub async fn next(&mut self) -> Result<Option<Vec<HistoryEvent>>, ClientError> {
        while !self.followed.ended() {
            let page = self.client.wait(self.followed.next()).await?;
            let events = self.take(page).await?;
            if !events.is_empty() {
                return Ok(Some(events));
            }
        }
        Ok(None)
    }

    async fn take(&mut self, mut page: HistoryPage) -> Result<Vec<HistoryEvent>, ClientError> {
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
        Ok(events.into_iter().map(HistoryEvent).collect())
    }
}
