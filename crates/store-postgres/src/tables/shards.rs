//! Owner and epoch of each shard. Every write transaction locks the rows of its shards, in order of
//! shard.

use std::collections::BTreeMap;

use abide_core::ids::ShardId;
use abide_store::rows::ShardRow;
use tokio_postgres::{Error, Row, error::SqlState};

use crate::{
    readers::Query,
    session::Call,
    tables::{call, column},
    values::{Columns, Undecodable, number, shard_number, text},
};

pub(crate) const READ: &str = "SELECT shard, epoch, owner FROM shards WHERE shard = $1";

/// Allows concurrent shared locks; a claim of one of the shards waits.
pub(crate) const LOCK_SHARED: &str =
    "SELECT shard, epoch FROM shards WHERE shard = ANY ($1::smallint[]) ORDER BY shard FOR SHARE";

/// For transactions with a claim. They take this lock on all their shards from the start: upgrading
/// a shared lock later could deadlock with another transaction that does the same.
pub(crate) const LOCK: &str =
    "SELECT shard, epoch FROM shards WHERE shard = ANY ($1::smallint[]) ORDER BY shard FOR UPDATE";

/// Locks the shards like [`LOCK_SHARED`], and fails unless they have these epochs.
pub(crate) const CHECK: &str = "SELECT 1 / (count(*) = cardinality($1::smallint[]))::int FROM \
    (SELECT FROM unnest($1::smallint[], $2::bigint[]) AS assumed (shard, epoch) \
    JOIN shards ON shards.shard = assumed.shard AND shards.epoch = assumed.epoch \
    ORDER BY shards.shard FOR SHARE OF shards) AS current";

pub(crate) const CLAIM: &str = "UPDATE shards SET epoch = claim.epoch, owner = claim.owner \
    FROM unnest($1::smallint[], $2::bigint[], $3::text[]) AS claim (shard, epoch, owner) \
    WHERE shards.shard = claim.shard";

pub(crate) fn lock(shards: &[ShardId], claims: bool) -> Call<'static> {
    let shards: Vec<_> = shards.iter().copied().map(shard_number).collect();
    call(if claims { LOCK } else { LOCK_SHARED }, vec![Box::new(shards)])
}

/// A check that fails unless the shards have these epochs; their rows stay locked.
pub(crate) fn check(epochs: &BTreeMap<ShardId, u64>) -> Call<'static> {
    let epochs: Vec<_> = epochs.iter().collect();
    let params = vec![
        column(&epochs, |(shard, _)| shard_number(**shard)),
        column(&epochs, |(_, epoch)| number(**epoch)),
    ];
    call(CHECK, params)
}

/// Whether [`CHECK`] has failed.
pub(crate) fn has_other_epoch(error: &Error) -> bool {
    error.code() == Some(&SqlState::DIVISION_BY_ZERO)
}

/// A locked shard with its epoch.
pub(crate) fn locked(row: &Row) -> Result<(ShardId, u64), Undecodable> {
    Ok((row.shard(0)?, row.number(1)?))
}

pub(crate) fn claim<'a>(claims: &[(ShardId, u64, &'a str)]) -> Call<'a> {
    let params = vec![
        column(claims, |(shard, _, _)| shard_number(*shard)),
        column(claims, |(_, epoch, _)| number(*epoch)),
        column(claims, |(_, _, owner)| text(owner)),
    ];
    call(CLAIM, params)
}

pub(crate) fn read(shard: ShardId) -> Query {
    Query::ByKey(call(READ, vec![Box::new(shard_number(shard))]))
}

pub(crate) fn decode(row: &Row) -> Result<ShardRow, Undecodable> {
    Ok(ShardRow { shard: row.shard(0)?, epoch: row.number(1)?, owner: row.text(2)? })
}
