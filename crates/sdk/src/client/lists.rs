//! Lists and counts of the runs and waits of a client's namespace.

use std::collections::BTreeMap;

use abide_core::{
    list,
    operation::{
        CountRuns, CreateSearchAttribute, DeleteSearchAttribute, ListNodes, ListRuns,
        ListSearchAttributes, ListWaits, RunRows, SearchAttributes, WaitRows,
    },
    tally::TallyRuns,
};

use super::{
    Client, ClientError, List, NodeInfo,
    list::{Fetch, Page},
};
use crate::{
    list::{
        FieldCounts, RunCounts, RunFilter, RunRow, WaitCounts, WaitFilter, WaitIntervals, WaitRow,
    },
    search::{AttributeKind, SearchAttribute},
};

impl Client {
    /// Lists the runs of the client's namespace, newest first unless the filter's query orders them: `client.runs(filter).take(10).await?`.
    pub fn runs(&self, filter: RunFilter) -> List<RunRow> {
        List::new(self.fetch_runs(filter.in_namespace(self.namespace())))
    }

    /// One page of [`Client::runs`], of at most `limit` rows; the engine has a bound too. For the
    /// next page, pass the [`RunRow::position`] of the last row to [`RunFilter::after`].
    pub async fn runs_page(
        &self,
        filter: RunFilter,
        limit: usize,
    ) -> Result<Vec<RunRow>, ClientError> {
        let filter = filter.in_namespace(self.namespace());
        let order = filter.order();
        let RunRows { rows, .. } = self.ask(ListRuns { filter, limit: Some(limit) }).await?;
        Ok(rows.into_iter().map(|row| RunRow::of(row, order)).collect())
    }

    fn fetch_runs(&self, filter: list::RunFilter) -> Fetch<RunRow> {
        let client = self.clone();
        Box::new(move |limit| {
            Box::pin(async move {
                let page = ListRuns { filter: filter.clone(), limit: Some(limit) };
                let RunRows { rows, next } = client.ask(page).await?;
                let order = filter.order();
                let next = next.map(|after| {
                    client.fetch_runs(list::RunFilter { after: Some(after), ..filter })
                });
                let rows = rows.into_iter().map(|row| RunRow::of(row, order)).collect();
                Ok(Page { rows, next })
            })
        })
    }

    /// How many runs of the client's namespace match the filter.
    pub async fn count_runs(&self, filter: RunFilter) -> Result<u64, ClientError> {
        Ok(self.ask(CountRuns { filter: filter.in_namespace(self.namespace()) }).await?.0)
    }

    /// Counts the runs of the client's namespace that match the filter, by status and type. It
    /// examines a bounded number of runs, the newest, and says whether there are more.
    pub async fn count_runs_by_status(&self, filter: RunFilter) -> Result<RunCounts, ClientError> {
        let filter = filter.in_namespace(self.namespace());
        Ok(RunCounts::of(self.ask(TallyRuns { filter }).await?))
    }

    /// Counts the runs of the client's namespace that match the filter, by the field that the filter's
    /// query names with `GROUP BY`. It examines a bounded number of runs and says whether there are more.
    pub async fn count_runs_by_field(&self, filter: RunFilter) -> Result<FieldCounts, ClientError> {
        let tally = TallyRuns { filter: filter.in_namespace(self.namespace()) };
        Ok(FieldCounts::of(self.ask(tally).await?))
    }

    /// Registers a search attribute in the client's namespace; to repeat it changes nothing.
    pub async fn create_search_attribute<T>(
        &self,
        attribute: SearchAttribute<T>,
    ) -> Result<(), ClientError> {
        let (name, kind) = (attribute.name().to_owned(), attribute.kind().to_core());
        let namespace = self.namespace().clone();
        self.ask(CreateSearchAttribute { namespace, name, kind }).await.map(drop)
    }

    /// The search attributes of the client's namespace, by name.
    pub async fn search_attributes(&self) -> Result<BTreeMap<String, AttributeKind>, ClientError> {
        let namespace = self.namespace().clone();
        let SearchAttributes(all) = self.ask(ListSearchAttributes { namespace }).await?;
        Ok(all.iter().map(|(name, kind)| (name.to_owned(), AttributeKind::of(kind))).collect())
    }

    /// Removes a search attribute of the client's namespace; runs keep their values, which no query finds.
    /// To remove one that does not exist changes nothing.
    pub async fn delete_search_attribute(
        &self,
        name: impl Into<String>,
    ) -> Result<(), ClientError> {
        let (namespace, name) = (self.namespace().clone(), name.into());
        self.ask(DeleteSearchAttribute { namespace, name }).await.map(drop)
    }

    /// Counts the waits of the client's namespace that end in these intervals, by kind. It examines a
    /// bounded number of waits, the earliest first, and says how far it came.
    pub async fn count_waits(&self, intervals: WaitIntervals) -> Result<WaitCounts, ClientError> {
        Ok(intervals.counts(self.ask(intervals.in_namespace(self.namespace())).await?))
    }

    /// Lists what runs of the client's namespace wait for, the earliest end first:
    /// `client.waits(filter).take(10).await?`.
    pub fn waits(&self, filter: WaitFilter) -> List<WaitRow> {
        List::new(self.fetch_waits(filter.in_namespace(self.namespace()), Some))
    }

    /// One page of [`Client::waits`], of at most `limit` rows; the engine has a bound too. For the
    /// next page, pass the [`position`](WaitRow::position) of the last row to [`WaitFilter::after`].
    pub async fn waits_page(
        &self,
        filter: WaitFilter,
        limit: usize,
    ) -> Result<Vec<WaitRow>, ClientError> {
        let filter = filter.in_namespace(self.namespace());
        let WaitRows { rows, .. } = self.ask(ListWaits { filter, limit: Some(limit) }).await?;
        rows.into_iter().map(known).collect()
    }

    /// Pages of waits, as what `read` makes of each.
    pub(crate) fn fetch_waits<T: Send + 'static>(
        &self,
        filter: list::WaitFilter,
        read: fn(WaitRow) -> Option<T>,
    ) -> Fetch<T> {
        let client = self.clone();
        Box::new(move |limit| {
            Box::pin(async move {
                let page = ListWaits { filter: filter.clone(), limit: Some(limit) };
                let WaitRows { rows, more } = client.ask(page).await?;
                let last = rows.last().filter(|_| more).map(list::WaitRow::position);
                let rows: Vec<_> = rows.into_iter().map(known).collect::<Result<_, _>>()?;
                let next = last.map(|after| {
                    client.fetch_waits(list::WaitFilter { after: Some(after), ..filter }, read)
                });
                Ok(Page { rows: rows.into_iter().filter_map(read).collect(), next })
            })
        })
    }

    /// Lists the nodes of the cluster by name; they serve all namespaces.
    pub async fn nodes(&self) -> Result<Vec<NodeInfo>, ClientError> {
        Ok(self.ask(ListNodes).await?.0.into_iter().map(NodeInfo::from).collect())
    }
}

/// A row whose key this version knows.
fn known(row: list::WaitRow) -> Result<WaitRow, ClientError> {
    let key = row.wait.clone();
    WaitRow::of(row).ok_or_else(|| ClientError::unexpected(&key))
}
