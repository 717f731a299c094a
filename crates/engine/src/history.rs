//! Pages of a run's log, bounded in rows and in bytes: a row may be as large as a request.

use abide_core::ids::{RunId, ShardId};
use abide_store::{ReadError, Store, rows::LogRow};

/// Bytes after which a page is full. A single row may be larger.
const PAGE_BYTES: usize = 1 << 20;

/// Rows that are read before their size is known.
const FIRST_ROWS: usize = 16;

/// The rows after `after`, at most `limit` of them and at least one if there is one, and whether there
/// may be more.
pub(crate) async fn page(
    store: &dyn Store,
    shard: ShardId,
    run: RunId,
    after: u64,
    limit: usize,
) -> Result<(Vec<LogRow>, bool), ReadError> {
    let mut page: Vec<LogRow> = Vec::new();
    let mut bytes = 0;
    while page.len() < limit {
        let count = next_rows(page.len(), bytes).clamp(1, limit - page.len());
        let after = page.last().map_or(after, |row| row.sequence);
        let rows = store.log(shard, run, after, count).await?;
        let last = rows.len() < count;
        for row in rows {
            if bytes >= PAGE_BYTES {
                return Ok((page, true));
            }
            bytes += size(&row);
            page.push(row);
        }
        if last {
            return Ok((page, false));
        }
        if bytes >= PAGE_BYTES {
            break;
        }
    }
    Ok((page, true))
}

/// How many rows will fill the page, if they are like those that it has.
fn next_rows(rows: usize, bytes: usize) -> usize {
    match bytes.checked_div(rows) {
        Some(average) => PAGE_BYTES.saturating_sub(bytes) / average.max(1),
        None => FIRST_ROWS,
    }
}

fn size(row: &LogRow) -> usize {
    row.events.len() + row.notes.len()
}
