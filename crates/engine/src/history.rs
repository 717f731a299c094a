//! Pages of a run's log, bounded in rows and in bytes, because a row may be as large as a request and
//! the inputs that were buffered while it was made. A page can begin at any event without reading the
//! rows before it.

use abide_core::ids::{EventNumber, RunId, ShardId};
use abide_store::{
    ReadError, Store,
    rows::{LogLimit, LogRow},
};

/// Reads the rows after `after`, at least one if there is one. Also returns whether there may be
/// more.
pub(crate) async fn page(
    store: &dyn Store,
    shard: ShardId,
    run: RunId,
    after: u64,
    limit: LogLimit,
) -> Result<(Vec<LogRow>, bool), ReadError> {
    let rows = store.log(shard, run, after, limit).await?;
    let more = limit.filled_by(&rows);
    Ok((rows, more))
}

/// The row after which a page must be read to begin with this event, or with the last row if the
/// event does not exist yet. Rows are numbered without gaps, so a binary search finds it.
pub(crate) async fn seek(
    store: &dyn Store,
    shard: ShardId,
    run: RunId,
    event: EventNumber,
) -> Result<u64, ReadError> {
    let begins_by_then = async |sequence: u64| {
        let rows = store.log(shard, run, sequence - 1, LogLimit::rows(1)).await?;
        Ok::<_, ReadError>(rows.first().is_some_and(|row| row.first_event <= event))
    };
    // Row `low` (if it is not 0) begins at or before the event; row `high` does not.
    let (mut low, mut high) = (0, 1);
    while begins_by_then(high).await? {
        (low, high) = (high, high * 2);
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if begins_by_then(middle).await? {
            low = middle;
        } else {
            high = middle;
        }
    }
    Ok(low.saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use abide_store::{Batch, Write, memory::MemoryStore};

    use super::*;

    const RUN: RunId = RunId::MIN;

    /// A log whose rows begin with these events.
    async fn log(first_events: &[EventNumber]) -> MemoryStore {
        let store = MemoryStore::default();
        let shard = ShardId::all().next().expect("there are shards");
        let row = |(sequence, first_event): (u64, &EventNumber)| {
            Write::AppendLog(LogRow {
                run: RUN,
                sequence,
                first_event: *first_event,
                events: Default::default(),
                notes: Default::default(),
            })
        };
        let claim = Write::Claim { epoch: 1, owner: "test".into() };
        let claimed = store.commit(Batch { shard, epoch: 0, writes: vec![claim] }).await;
        claimed.expect("it is claimed");
        let writes = (1..).zip(first_events).map(row).collect();
        store.commit(Batch { shard, epoch: 1, writes }).await.expect("it is written");
        store
    }

    /// Rows without events begin with the event that comes next.
    #[tokio::test]
    async fn a_page_begins_with_the_row_that_holds_the_event() {
        let shard = ShardId::all().next().expect("there are shards");
        let first_events = [1, 4, 5, 5, 5, 9, 10, 12, 12];
        let store = log(&first_events).await;
        for event in 1..20 {
            let last = first_events.iter().rposition(|first| *first <= event);
            let expected = last.expect("the first row begins with the first event");
            let found = seek(&store, shard, RUN, event).await.expect("the store reads");
            assert_eq!(found, expected as u64, "event {event}");
        }
        let nothing = log(&[]).await;
        assert_eq!(seek(&nothing, shard, RUN, 3).await, Ok(0));
    }
}
