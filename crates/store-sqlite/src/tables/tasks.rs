//! Tasks for workers, in the order in which a shard offers them.

use abide_core::ids::ShardId;
use abide_store::rows::{TaskKey, TaskPhase, TaskRow, WorkKind};
use rusqlite::{Connection, Result, params, params_from_iter, types::Value};

use crate::{
    tables::{execute, rows},
    values::{Columns, bound, limit, number},
};

pub(crate) fn put(connection: &Connection, shard: ShardId, row: &TaskRow) -> Result<()> {
    const SQL: &str = "INSERT OR REPLACE INTO tasks \
        (shard, namespace, queue, kind, run, scheduled, workflow, phase) \
        VALUES (?, ?, ?, ?, ?, ?, ?, ?)";
    let key = &row.key;
    let params = params![
        shard.number(),
        key.namespace.as_str(),
        key.queue,
        key.kind.number(),
        key.run.as_bytes(),
        number(key.scheduled)?,
        row.workflow.as_str(),
        row.phase.number(),
    ];
    execute(connection, SQL, params).map(drop)
}

pub(crate) fn delete(connection: &Connection, shard: ShardId, key: &TaskKey) -> Result<()> {
    const SQL: &str = "DELETE FROM tasks WHERE shard = ? AND namespace = ? AND queue = ? \
        AND kind = ? AND run = ? AND scheduled = ?";
    let params = params![
        shard.number(),
        key.namespace.as_str(),
        key.queue,
        key.kind.number(),
        key.run.as_bytes(),
        number(key.scheduled)?,
    ];
    execute(connection, SQL, params).map(drop)
}

pub(crate) fn page(
    connection: &Connection,
    shard: ShardId,
    after: Option<&TaskKey>,
    page: usize,
) -> Result<Vec<TaskRow>> {
    let mut params: Vec<Value> = vec![shard.number().into()];
    let begin =
        after.map_or("", |_| "AND (namespace, queue, kind, run, scheduled) > (?, ?, ?, ?, ?)");
    if let Some(key) = after {
        params.extend([
            key.namespace.to_string().into(),
            key.queue.clone().into(),
            key.kind.number().into(),
            key.run.as_bytes().to_vec().into(),
            bound(key.scheduled).into(),
        ]);
    }
    params.push(limit(page).into());
    let sql = format!(
        "SELECT namespace, queue, kind, run, scheduled, workflow, phase FROM tasks \
         WHERE shard = ? {begin} ORDER BY namespace, queue, kind, run, scheduled LIMIT ?"
    );
    rows(connection, &sql, params_from_iter(params), |row| {
        let key = TaskKey {
            namespace: row.text(0)?,
            queue: row.text(1)?,
            kind: row.choice(2, WorkKind::from_number)?,
            run: row.run(3)?,
            scheduled: row.number(4)?,
        };
        Ok(TaskRow { key, workflow: row.text(5)?, phase: row.choice(6, TaskPhase::from_number)? })
    })
}
