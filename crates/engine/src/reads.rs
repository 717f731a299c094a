//! Operations that any node answers from the store: histories and lists. For a followed run, only
//! the number of its last event comes from its owner.

use std::collections::BTreeSet;

use abide_core::{
    codec,
    ids::{EventNumber, NamespaceId, RunId, ShardId, WorkflowKey},
    limits::Limits,
    list::{RunFilter, RunRow, WaitFilter, WaitKind, WaitRow},
    operation::{
        AnyAnswer, AwaitEvents, CallError, Caller, Count, CountRuns, Events, History, HistoryPage,
        ListNodes, ListRuns, ListSchedules, ListWaits, Nodes, Operation, ReadOperation, RunRows,
        RunTarget, ScheduleRow, ScheduleRows, WaitRows,
    },
    tally::{RunTally, TallyRuns, TallyWaits, WaitTally},
};
use abide_store::{
    ReadError,
    rows::{ListLimit, LogLimit},
};

use crate::{
    Engine, history, nodes,
    search::Purpose,
    turns::{Turn, Turns},
};

/// Bytes of a page that may wait for the next turn; a larger one ends.
const UNFINISHED_PAGE_BYTES: usize = 64 << 10;

impl Engine {
    /// Performs an operation that is answered from the store, in its turn. Counts and tallies build
    /// nothing large, and may take long: they wait for each other only.
    pub(crate) async fn read(
        &self,
        operation: ReadOperation,
        turns: Turns<'_>,
    ) -> Result<(AnyAnswer, Option<Turn>), CallError> {
        let in_turn = async || Some(turns().await);
        Ok(match operation {
            ReadOperation::History(History { target, from, follow }) => {
                let shard = target.workflow.slot().shard();
                // The run's owner may be slow: nothing is built meanwhile.
                let events = self.events(target, follow.unwrap_or_default()).await?;
                let turn = in_turn().await;
                (self.history(shard, events, from).await?.into(), turn)
            }
            ReadOperation::ListRuns(asked) => {
                let (rows, turn) = self.runs(asked, turns).await?;
                (rows.into(), Some(turn))
            }
            ReadOperation::CountRuns(asked) => (self.count_runs(asked).await?.into(), None),
            ReadOperation::ListWaits(asked) => {
                let turn = in_turn().await;
                (self.waits(asked).await?.into(), turn)
            }
            ReadOperation::TallyRuns(asked) => (self.tally_runs(asked).await?.into(), None),
            ReadOperation::TallyWaits(asked) => (self.tally_waits(asked).await?.into(), None),
            ReadOperation::CreateSearchAttribute(asked) => {
                (self.create_search_attribute(asked).await?.into(), None)
            }
            ReadOperation::ListSearchAttributes(asked) => {
                (self.list_search_attributes(asked).await?.into(), None)
            }
            ReadOperation::DeleteSearchAttribute(asked) => {
                (self.delete_search_attribute(asked).await?.into(), None)
            }
            ReadOperation::ListSchedules(asked) => {
                let turn = in_turn().await;
                (self.schedules(asked).await?.into(), turn)
            }
            ReadOperation::StartBatch(asked) => (self.start_batch(asked).await?.into(), None),
            ReadOperation::StopBatch(asked) => (self.stop_batch(asked).await?.into(), None),
            ReadOperation::ListBatches(asked) => (self.list_batches(asked).await?.into(), None),
            ReadOperation::ListNodes(ListNodes) => {
                let nodes = nodes::list(&self.node).await;
                (Nodes(nodes.map_err(|error| self.unreadable(&error))?).into(), None)
            }
        })
    }

    /// Waits until a run has an event after this one or is closed, and returns its progress.
    async fn events(&self, target: RunTarget, after: EventNumber) -> Result<Events, CallError> {
        let asked = AwaitEvents { target, after };
        AwaitEvents::answer(self.operate(Box::new(asked.into())).await?)
    }

    /// Reads a page of a run of which its owner has told the events.
    async fn history(
        &self,
        shard: ShardId,
        Events { run, closed, .. }: Events,
        from: u64,
    ) -> Result<HistoryPage, CallError> {
        let Limits { page_rows: rows, log_page_bytes: bytes, .. } = *self.node.limits;
        let limit = LogLimit { rows, bytes };
        let page = history::page(&*self.node.store, shard, run, from, limit).await;
        let (rows, more) = page.map_err(|error| self.unreadable(&error))?;
        let next = rows.last().map_or(from, |row| row.sequence);
        let with_events = rows.into_iter().map(|row| row.events).filter(|row| !row.is_empty());
        Ok(HistoryPage { run, rows: with_events.collect(), next, more, closed })
    }

    /// Returns the target's run, and the position from which a page of its history begins with this
    /// event.
    pub async fn seek_history(
        &self,
        caller: &Caller,
        target: RunTarget,
        event: EventNumber,
    ) -> Result<(RunId, u64), CallError> {
        let shard = target.workflow.slot().shard();
        let events = self.ask(caller, AwaitEvents { target, after: 0 }.into()).await?;
        let Events { run, .. } = AwaitEvents::answer(events)?;
        let from = history::seek(&*self.node.store, shard, run, event).await;
        Ok((run, from.map_err(|error| self.unreadable(&error))?))
    }

    /// Lists runs, each read in a turn of its own: a list may walk over very many runs. A page of large
    /// rows ends before its limit.
    pub(crate) async fn runs(
        &self,
        asked: ListRuns,
        turns: Turns<'_>,
    ) -> Result<(RunRows, Turn), CallError> {
        let known = self.known(asked.filter.namespace.as_ref())?;
        let filter = self.searching(asked.filter, Purpose::List).await?;
        let mut filter = RunFilter { known, ..filter };
        let limit = self.page_rows(asked.limit);
        let mut rows: Vec<RunRow> = Vec::new();
        let bytes = |rows: &[RunRow]| rows.iter().map(|row| row.details.len()).sum::<usize>();
        loop {
            let limit = ListLimit {
                rows: limit - rows.len(),
                examined: self.examined(),
                bytes: self.node.limits.page_bytes.saturating_sub(bytes(&rows)),
            };
            let turn = turns().await;
            let part = self.node.store.runs(filter.clone(), limit).await;
            let part = part.map_err(|error| self.unreadable(&error))?;
            let full = limit.filled_by(&part.found);
            rows.extend(part.found);
            match part.next {
                Some(next) if !full && bytes(&rows) <= UNFINISHED_PAGE_BYTES => {
                    filter.after = Some(next);
                }
                next => return Ok((RunRows { rows, next }, turn)),
            }
        }
    }

    /// Rows that a store examines in one read of a list.
    fn examined(&self) -> usize {
        self.node.limits.examined_rows
    }

    pub(crate) async fn count_runs(&self, asked: CountRuns) -> Result<Count, CallError> {
        let known = self.known(asked.filter.namespace.as_ref())?;
        let filter = self.searching(asked.filter, Purpose::Count).await?;
        let mut filter = RunFilter { known, ..filter };
        let mut count = 0;
        loop {
            let _counting = self.node.counting.acquire().await;
            let part = self.node.store.count_runs(filter.clone(), self.examined()).await;
            let part = part.map_err(|error| self.unreadable(&error))?;
            count += part.found;
            match part.next {
                Some(next) => filter.after = Some(next),
                None => return Ok(Count(count)),
            }
        }
    }

    /// Lists waits. A page of large rows ends before its limit.
    async fn waits(&self, asked: ListWaits) -> Result<WaitRows, CallError> {
        let known = self.known(asked.filter.namespace.as_ref())?;
        let filter = WaitFilter { known, ..asked.filter };
        let limit = self.page_rows(asked.limit);
        let rows = self.node.store.waits(filter, limit).await;
        let rows = rows.map_err(|error| self.unreadable(&error))?;
        let read = rows.len();
        let mut room = self.node.limits.page_bytes;
        let rows = rows.into_iter().map(|(_, row)| row).enumerate();
        let fits = rows.take_while(|(index, row): &(usize, WaitRow)| {
            let left = room.checked_sub(row.size());
            room = left.unwrap_or(0);
            *index == 0 || left.is_some()
        });
        let rows: Vec<_> = fits.map(|(_, row)| row).collect();
        let more = read == limit || rows.len() < read;
        Ok(WaitRows { rows, more })
    }

    /// Lists schedules: each has one wait, for its next time.
    async fn schedules(&self, asked: ListSchedules) -> Result<ScheduleRows, CallError> {
        let ListSchedules { namespace, after, limit } = asked;
        let kind = Some(WaitKind::Schedule);
        let filter = WaitFilter { namespace, kind, after, ..WaitFilter::default() };
        let WaitRows { rows, more } = self.waits(ListWaits { filter, limit }).await?;
        let next = rows.last().filter(|_| more).map(WaitRow::position);
        let listed = rows.into_iter().map(|row| {
            let workflow = WorkflowKey { namespace: row.namespace, workflow: row.workflow };
            // A row whose details are damaged is still worth showing.
            let listing = codec::decode_schedule_listing(row.details).ok().flatten();
            ScheduleRow { workflow, listing: listing.unwrap_or_default() }
        });
        Ok(ScheduleRows { rows: listed.collect(), next })
    }

    async fn tally_runs(&self, asked: TallyRuns) -> Result<RunTally, CallError> {
        let known = self.known(asked.filter.namespace.as_ref())?;
        let read = self.searching(asked.filter, Purpose::Tally).await?;
        let filter = RunFilter { known, ..read };
        let _counting = self.node.counting.acquire().await;
        let tally = self.node.store.tally_runs(filter, self.node.limits.tally_rows).await;
        let mut tally = tally.map_err(|error| self.unreadable(&error))?;
        tally.bound(self.node.limits.tally_groups);
        Ok(tally)
    }

    async fn tally_waits(&self, asked: TallyWaits) -> Result<WaitTally, CallError> {
        asked.check(&self.node.limits)?;
        let known = self.known(asked.namespace.as_ref())?;
        let asked = TallyWaits { known, ..asked };
        let _counting = self.node.counting.acquire().await;
        let tally = self.node.store.tally_waits(asked, self.node.limits.tally_rows).await;
        tally.map_err(|error| self.unreadable(&error))
    }

    fn page_rows(&self, asked: Option<usize>) -> usize {
        let most = self.node.limits.page_rows;
        asked.map_or(most, |asked| asked.clamp(1, most))
    }

    /// The namespaces to which a list is limited: all that exist, or no limit if the filter names
    /// one, which must exist.
    fn known(&self, asked: Option<&NamespaceId>) -> Result<BTreeSet<NamespaceId>, CallError> {
        match asked {
            Some(namespace) => self.check_namespace(namespace).map(|()| BTreeSet::new()),
            None => Ok(self.namespaces.clone()),
        }
    }

    pub(crate) fn unreadable(&self, error: &ReadError) -> CallError {
        self.node.read_failed(error);
        CallError::Unavailable(error.to_string())
    }
}
