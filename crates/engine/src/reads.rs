//! Operations that any node answers from the store: histories and lists. For a followed run, only
//! the number of its last event comes from its owner.

use std::collections::BTreeSet;

use abide_core::{
    ids::{EventNumber, NamespaceId, RunId},
    limits::Limits,
    list::{RunFilter, WaitFilter, WaitRow},
    operation::{
        AnyAnswer, AwaitEvents, CallError, Caller, Count, CountRuns, Events, History, HistoryPage,
        ListNodes, ListRuns, ListWaits, Nodes, Operation, ReadOperation, RunRows, RunTarget,
        WaitRows,
    },
    tally::{Tallied, Tally},
};
use abide_store::{ReadError, rows::LogLimit};

use crate::{Engine, history, nodes};

impl Engine {
    /// Performs an operation that is answered from the store.
    pub(crate) async fn read(&self, operation: ReadOperation) -> Result<AnyAnswer, CallError> {
        Ok(match operation {
            ReadOperation::History(asked) => self.history(asked).await?.into(),
            ReadOperation::ListRuns(asked) => self.runs(asked).await?.into(),
            ReadOperation::CountRuns(asked) => self.count_runs(asked).await?.into(),
            ReadOperation::ListWaits(asked) => self.waits(asked).await?.into(),
            ReadOperation::Tally(tally) => self.tally(tally).await?.into(),
            ReadOperation::ListNodes(ListNodes) => {
                let nodes = nodes::list(&self.node).await;
                Nodes(nodes.map_err(|error| self.unreadable(&error))?).into()
            }
        })
    }

    /// Waits until a run has an event after this one or is closed, and returns its progress.
    async fn events(&self, target: RunTarget, after: EventNumber) -> Result<Events, CallError> {
        let asked = AwaitEvents { target, after };
        AwaitEvents::answer(self.operate(Box::new(asked.into())).await?)
    }

    async fn history(&self, asked: History) -> Result<HistoryPage, CallError> {
        let History { target, from, follow } = asked;
        let shard = target.workflow.slot().shard();
        let Events { run, closed, .. } = self.events(target, follow.unwrap_or_default()).await?;
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

    async fn runs(&self, asked: ListRuns) -> Result<RunRows, CallError> {
        let known = self.known(asked.filter.namespace.as_ref())?;
        let filter = RunFilter { known, ..asked.filter };
        let limit = self.page_rows(asked.limit);
        let rows = self.node.store.runs(filter, limit).await;
        let rows = rows.map_err(|error| self.unreadable(&error))?;
        let more = rows.len() == limit;
        Ok(RunRows { rows, more })
    }

    async fn count_runs(&self, asked: CountRuns) -> Result<Count, CallError> {
        let known = self.known(asked.filter.namespace.as_ref())?;
        let filter = RunFilter { known, ..asked.filter };
        let count = self.node.store.count_runs(filter).await;
        count.map(Count).map_err(|error| self.unreadable(&error))
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

    async fn tally(&self, mut tally: Tally) -> Result<Tallied, CallError> {
        match &mut tally {
            Tally::Waits(waits) => {
                waits.check(&self.node.limits)?;
                waits.known = self.known(waits.namespace.as_ref())?;
            }
            Tally::Runs(filter) => filter.known = self.known(filter.namespace.as_ref())?,
        }
        let tallied = self.node.store.tally(tally, self.node.limits.tally_rows).await;
        let mut tallied = tallied.map_err(|error| self.unreadable(&error))?;
        tallied.bound(self.node.limits.tally_groups);
        Ok(tallied)
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

    fn unreadable(&self, error: &ReadError) -> CallError {
        self.node.read_failed(error);
        CallError::Unavailable(error.to_string())
    }
}
