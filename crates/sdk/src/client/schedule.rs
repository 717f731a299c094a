//! Calls about schedules: each is retried with the same key until it is answered, so it takes effect
//! once.

use std::future::IntoFuture;

use abide_core::{
    ids::{Key, WorkflowKey},
    operation::{self, DeleteSchedule, DescribeSchedule, ListSchedules, ScheduleRows},
    schedule::{ScheduleChange, key_of},
    time::Timestamp,
};

use super::{
    Client, ClientError, List, RefusalKind,
    list::{Fetch, Page},
    repeat::fresh_key,
};
use crate::{
    future::BoxFuture,
    schedule::{Overlap, Schedule, ScheduleDescription, ScheduleRow},
};

impl Client {
    /// Creates a schedule in the client's namespace. Set options on the returned value, then await it.
    pub fn create_schedule(&self, id: impl Into<String>, schedule: Schedule) -> CreateSchedule {
        let handle = self.schedule(id);
        let (paused, note, trigger, key) = (false, String::new(), false, None);
        CreateSchedule { handle, schedule, paused, note, trigger, key }
    }

    /// A handle to a schedule. A missing one is reported when the handle is used.
    pub fn schedule(&self, id: impl Into<String>) -> ScheduleHandle {
        ScheduleHandle { client: self.clone(), id: id.into() }
    }

    /// Lists the schedules of the client's namespace, the next to act first; those that are paused or
    /// have no times come last.
    pub fn schedules(&self) -> List<ScheduleRow> {
        let namespace = Some(self.namespace().clone());
        List::new(self.fetch_schedules(ListSchedules { namespace, after: None, limit: None }))
    }

    fn fetch_schedules(&self, asked: ListSchedules) -> Fetch<ScheduleRow> {
        let client = self.clone();
        Box::new(move |limit| {
            Box::pin(async move {
                let page = ListSchedules { limit: Some(limit), ..asked.clone() };
                let ScheduleRows { rows, next } = client.ask(page).await?;
                let rows = rows.into_iter().map(ScheduleRow::from).collect();
                let next = next.map(|after| {
                    client.fetch_schedules(ListSchedules { after: Some(after), ..asked })
                });
                Ok(Page { rows, next })
            })
        })
    }
}

/// A new schedule. It is sent when awaited.
#[must_use = "nothing is created until this is awaited"]
pub struct CreateSchedule {
    handle: ScheduleHandle,
    schedule: Schedule,
    paused: bool,
    note: String,
    trigger: bool,
    key: Option<Key>,
}

impl CreateSchedule {
    /// Creates it paused, with a note that says why.
    pub fn paused(mut self, note: impl Into<String>) -> Self {
        self.paused = true;
        self.note = note.into();
        self
    }

    /// Starts a run as soon as it exists, whatever its times.
    pub const fn trigger(mut self) -> Self {
        self.trigger = true;
        self
    }

    /// The idempotency key: requests with the same key create one schedule. By default each request
    /// gets a new key.
    pub fn key(mut self, key: impl Into<Key>) -> Self {
        self.key = Some(key.into());
        self
    }

    async fn send(self) -> Result<ScheduleHandle, ClientError> {
        let Self { handle, schedule, paused, note, trigger, key } = self;
        let ScheduleHandle { client, id } = &handle;
        let create = operation::CreateSchedule {
            workflow: handle.workflow(),
            schedule: schedule.into_core(id)?,
            paused,
            note,
            trigger,
            identity: client.identity().to_owned(),
            key: Some(key.unwrap_or_else(fresh_key)),
        };
        client.ask(create).await?;
        Ok(handle)
    }
}

impl IntoFuture for CreateSchedule {
    type Output = Result<ScheduleHandle, ClientError>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}

/// A schedule, by its id.
#[derive(Clone)]
pub struct ScheduleHandle {
    client: Client,
    id: String,
}

impl ScheduleHandle {
    /// Its id.
    pub fn id(&self) -> &str {
        &self.id
    }

    fn workflow(&self) -> WorkflowKey {
        key_of(self.client.namespace().clone(), &self.id)
    }

    /// What it is, what it has started, and its next times.
    pub async fn describe(&self) -> Result<ScheduleDescription, ClientError> {
        let described = self.client.ask(DescribeSchedule { workflow: self.workflow() }).await?;
        Ok((*described).into())
    }

    /// Changes what it starts, when, or under which policy. The function gets the schedule as it is;
    /// it may be called again if another change comes first.
    pub async fn update(
        &self,
        mut change: impl FnMut(Schedule) -> Schedule,
    ) -> Result<(), ClientError> {
        loop {
            let ScheduleDescription { schedule, revision, .. } = self.describe().await?;
            let updated = change(schedule).into_core(&self.id)?;
            let mut request = self.request(ScheduleChange::Updated(Box::new(updated)));
            request.revision = Some(revision);
            match request.await {
                Err(ClientError::Refused(refusal))
                    if refusal.kind() == RefusalKind::ScheduleRevised => {}
                done => return done,
            }
        }
    }

    /// Its times cause no starts until it is unpaused. Triggers and backfills still start. Await the
    /// returned value.
    pub fn pause(&self, note: impl Into<String>) -> ChangeSchedule {
        self.request(ScheduleChange::Paused { note: note.into() })
    }

    /// Ends a pause. Times that have passed meanwhile are not made up for. Await the returned value.
    pub fn unpause(&self, note: impl Into<String>) -> ChangeSchedule {
        self.request(ScheduleChange::Unpaused { note: note.into() })
    }

    /// Starts a run now, whatever its times. Await the returned value.
    pub fn trigger(&self) -> ChangeSchedule {
        self.request(ScheduleChange::Triggered { overlap: None })
    }

    /// Starts a run for each of its times in a span of the past, both ends included. Await the returned
    /// value.
    pub fn backfill(&self, from: Timestamp, to: Timestamp) -> ChangeSchedule {
        self.request(ScheduleChange::Backfilled { from, to, overlap: None })
    }

    /// Deletes it. The runs that it started go on.
    pub async fn delete(&self) -> Result<(), ClientError> {
        let (workflow, key) = (self.workflow(), Some(fresh_key()));
        let identity = self.client.identity().to_owned();
        self.client.ask(DeleteSchedule { workflow, identity, key }).await.map(drop)
    }

    fn request(&self, change: ScheduleChange) -> ChangeSchedule {
        ChangeSchedule { handle: self.clone(), change, revision: None, key: None }
    }
}

impl std::fmt::Debug for ScheduleHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ScheduleHandle").field("id", &self.id).finish_non_exhaustive()
    }
}

/// A change of a schedule. It is sent when awaited.
#[must_use = "nothing is changed until this is awaited"]
pub struct ChangeSchedule {
    handle: ScheduleHandle,
    change: ScheduleChange,
    revision: Option<u64>,
    key: Option<Key>,
}

impl ChangeSchedule {
    /// What happens if a run is open, instead of the schedule's own policy. It makes a difference to
    /// triggers and backfills.
    pub fn overlap(mut self, instead: Overlap) -> Self {
        match &mut self.change {
            ScheduleChange::Triggered { overlap } | ScheduleChange::Backfilled { overlap, .. } => {
                *overlap = Some(instead.to_core())
            }
            ScheduleChange::Updated(_)
            | ScheduleChange::Paused { .. }
            | ScheduleChange::Unpaused { .. } => {}
        }
        self
    }

    /// The idempotency key: requests with the same key take effect once. By default each request gets
    /// a new key.
    pub fn key(mut self, key: impl Into<Key>) -> Self {
        self.key = Some(key.into());
        self
    }

    async fn send(self) -> Result<(), ClientError> {
        let Self { handle, change, revision, key } = self;
        let workflow = handle.workflow();
        let identity = handle.client.identity().to_owned();
        let key = Some(key.unwrap_or_else(fresh_key));
        let change = operation::ChangeSchedule { workflow, change, revision, identity, key };
        handle.client.ask(change).await.map(drop)
    }
}

impl IntoFuture for ChangeSchedule {
    type Output = Result<(), ClientError>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}
