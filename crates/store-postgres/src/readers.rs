//! Connections that only read. Each read is one statement, so it sees one state of the database.
//! Reads that are queued on a connection are pipelined.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    task::{Context, Poll},
};

use abide_store::{Pending, ReadError};
use tokio::{runtime::Handle, task::JoinHandle};
use tokio_postgres::Row;

use crate::{
    Options,
    fault::Fault,
    session::{Call, Lane, Made, Session, boxed, within},
    values::Undecodable,
};

pub(crate) enum Query {
    /// A lookup by key, with a statement that every connection has prepared.
    ByKey(Call<'static>),
    /// A statement that was built for a filter.
    Filtered(Made),
}

/// A pool of connections, used round-robin.
pub(crate) struct Readers {
    lanes: Vec<Arc<Lane>>,
    next: AtomicUsize,
    runtime: Handle,
}

impl Readers {
    pub(crate) fn new(runtime: Handle, options: &Arc<Options>, count: usize) -> Self {
        let lanes = (0..count.max(1)).map(|_| Arc::new(Lane::new(options, &[]))).collect();
        Self { lanes, next: AtomicUsize::new(0), runtime }
    }

    /// A single connection for the registry.
    pub(crate) fn for_registry(runtime: Handle, options: &Arc<Options>) -> Self {
        let lanes = vec![Arc::new(Lane::for_registry(options, &[]))];
        Self { lanes, next: AtomicUsize::new(0), runtime }
    }

    /// Reads all rows, in the order of the statement.
    pub(crate) fn read<T: Send + 'static>(
        &self,
        query: Query,
        decode: fn(&Row) -> Result<T, Undecodable>,
    ) -> Pending<'static, Vec<T>> {
        let lane = Arc::clone(&self.lanes[self.next.fetch_add(1, Relaxed) % self.lanes.len()]);
        let reading = self.runtime.spawn(async move {
            let (query, patience) = (&query, lane.patience());
            let read = lane.attempt(|session| {
                boxed(async move { within(patience, rows(&session, query, decode)).await })
            });
            read.await.map_err(Fault::for_reader)
        });
        Box::pin(Reading(reading))
    }

    pub(crate) fn first<T: Send + 'static>(
        &self,
        query: Query,
        decode: fn(&Row) -> Result<T, Undecodable>,
    ) -> Pending<'static, Option<T>> {
        let rows = self.read(query, decode);
        Box::pin(async move { Ok(rows.await?.into_iter().next()) })
    }
}

async fn rows<T>(
    session: &Session,
    query: &Query,
    decode: fn(&Row) -> Result<T, Undecodable>,
) -> Result<Vec<T>, Fault> {
    let rows = match query {
        Query::ByKey(call) => session.query(call).await?,
        Query::Filtered(made) => session.query_made(made).await?,
    };
    Ok(rows.iter().map(decode).collect::<Result<_, _>>()?)
}

/// A read in flight. Dropping it aborts the read.
struct Reading<T>(JoinHandle<Result<T, ReadError>>);

impl<T> Future for Reading<T> {
    type Output = Result<T, ReadError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let ended = |_| Err(ReadError::Unavailable("the store has ended".to_owned()));
        Pin::new(&mut self.0).poll(context).map(|joined| joined.unwrap_or_else(ended))
    }
}

impl<T> Drop for Reading<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
