//! One transaction for a group. Nearly always it is one statement, in one round trip: it locks the
//! epochs of its shards, fails if one is not what the batches assume, and writes every table.
//!
//! A group that one statement cannot write, or with a batch of another epoch, takes two round trips.
//! The first begins the transaction and locks the epochs, so that no other node can claim a shard
//! before the transaction ends; the second writes the admitted batches, table by table, and commits.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use abide_core::ids::ShardId;
use abide_store::{Batch, CommitError, Write};
use tokio_postgres::Error;

use crate::{
    fault::{self, Fault},
    session::{Session, boxed, flight, within},
    tables::{log, shards},
    writer::{CommitResult, epochs::Epochs, plan::Plan, statement::one_statement},
};

/// Commits those batches that can be committed, and returns a result for each. If the transaction
/// fails, nothing of it remains, unless the error says that the outcome is unknown.
pub(super) async fn transaction(
    session: &Session,
    batches: &[Batch],
    patience: Duration,
) -> Result<Vec<CommitResult>, Fault> {
    if write_at_once(session, batches, patience).await? {
        return Ok(vec![Ok(()); batches.len()]);
    }
    let begun = within(patience, begin(session, batches)).await;
    let mut epochs = match begun {
        Ok(epochs) => epochs,
        Err(fault) => {
            roll_back(session).await;
            return Err(fault);
        }
    };
    let mut plan = Plan::default();
    let answers: Vec<CommitResult> =
        batches.iter().map(|batch| admit(&mut epochs, &mut plan, batch)).collect();
    if answers.iter().all(Result::is_err) {
        roll_back(session).await;
        return Ok(answers);
    }
    match write(session, &plan, patience).await {
        Ok(()) => Ok(answers),
        Err(fault) => Err(find_duplicate_row(session, &plan, fault, patience).await),
    }
}

/// Writes all batches as one statement, which is a transaction by itself. Returns `false` if that is
/// impossible, or if a shard has another epoch than its batches; then nothing is written.
async fn write_at_once(
    session: &Session,
    batches: &[Batch],
    patience: Duration,
) -> Result<bool, Fault> {
    let assumed: BTreeMap<ShardId, u64> =
        batches.iter().map(|batch| (batch.shard, batch.epoch)).collect();
    let mut epochs = Epochs::new(assumed.clone());
    let mut plan = Plan::default();
    let admitted = batches.iter().all(|batch| admit(&mut epochs, &mut plan, batch).is_ok());
    let Some(writes) = plan.independent_calls().filter(|_| admitted) else { return Ok(false) };
    let statement = one_statement(writes, shards::check(&assumed));
    let statement = within(patience, async { Ok(session.prepare_call(statement).await?) }).await?;
    // Clears warnings from before this commit.
    session.take_unreplicated();
    let Ok(written) = tokio::time::timeout(patience, session.execute(statement)).await else {
        session.discard();
        return Err(Fault::Unknown(format!("no answer to the commit in {patience:?}")));
    };
    match written {
        Ok(_) if session.take_unreplicated() => Err(fault::unreplicated_commit()),
        Ok(_) => Ok(true),
        Err(error) if shards::has_other_epoch(&error) => Ok(false),
        Err(error) => {
            let fault = fault::of_lone_statement(error);
            Err(find_duplicate_row(session, &plan, fault, patience).await)
        }
    }
}

/// Begins the transaction and locks the rows of its shards.
async fn begin(session: &Session, batches: &[Batch]) -> Result<Epochs, Fault> {
    let shards: BTreeSet<ShardId> = batches.iter().map(|batch| batch.shard).collect();
    let shards: Vec<ShardId> = shards.into_iter().collect();
    let claims = |batch: &Batch| batch.writes.iter().any(|w| matches!(w, Write::Claim { .. }));
    let lock = shards::lock(&shards, batches.iter().any(claims));
    let begin = boxed(async { session.run("BEGIN").await.map(|()| Vec::new()) });
    let answers = flight(vec![begin, boxed(session.query(&lock))]).await;
    let rows = answers.into_iter().collect::<Result<Vec<_>, _>>()?;
    let locked = rows.iter().flatten().map(shards::locked).collect::<Result<Vec<_>, _>>()?;
    Ok(Epochs::new(locked))
}

/// Checks the batch against the epochs and adds it to the plan.
fn admit<'a>(epochs: &mut Epochs, plan: &mut Plan<'a>, batch: &'a Batch) -> CommitResult {
    let raised = epochs.check(batch)?;
    plan.add(batch)?;
    epochs.set(batch.shard, raised);
    Ok(())
}

/// Pipelines all statements and the commit. If a statement fails, the commit rolls back.
async fn write(session: &Session, plan: &Plan<'_>, patience: Duration) -> Result<(), Fault> {
    // An unprepared statement would be sent after the commit.
    let prepared = within(patience, async { Ok(session.prepare_calls(plan.calls()).await?) }).await;
    let calls = match prepared {
        Ok(calls) => calls,
        Err(fault) => {
            roll_back(session).await;
            return Err(fault);
        }
    };
    let mut pieces: Vec<_> = calls
        .into_iter()
        .map(|call| boxed(async { session.execute(call).await.map(drop) }))
        .collect();
    pieces.push(boxed(session.run("COMMIT")));
    let whole = pieces.len();
    // Clears warnings from before this commit.
    session.take_unreplicated();
    let Ok(mut answers) = tokio::time::timeout(patience, flight(pieces)).await else {
        session.discard();
        return Err(Fault::Unknown(format!("no answer to the commit in {patience:?}")));
    };
    if answers.len() < whole {
        // A statement could not be sent, and so neither was the commit.
        roll_back(session).await;
        return Ok(answers.into_iter().collect::<Result<(), Error>>()?);
    }
    let committed = answers.pop().unwrap_or(Ok(()));
    answers.into_iter().collect::<Result<(), Error>>().map_err(fault::before_commit)?;
    committed.map_err(fault::of_commit)?;
    if session.take_unreplicated() { Err(fault::unreplicated_commit()) } else { Ok(()) }
}

/// Names the log row that was refused, in the wording of all backends.
async fn find_duplicate_row(
    session: &Session,
    plan: &Plan<'_>,
    fault: Fault,
    patience: Duration,
) -> Fault {
    let rows = plan.log_rows();
    if !matches!(fault, Fault::Refused(_)) || rows.is_empty() {
        return fault;
    }
    let search = async {
        let found = session.query(&log::existing(&rows)).await?;
        Ok(found.first().map(log::decode_existing).transpose()?)
    };
    match within(patience, search).await {
        Ok(Some((run, sequence))) => Fault::Refused(CommitError::log_row_exists(run, sequence)),
        _ => fault,
    }
}

/// How long a rollback may take.
const UNDO_PATIENCE: Duration = Duration::from_secs(1);

/// Rolls back. A session on which that fails is discarded.
async fn roll_back(session: &Session) {
    let ended = within(UNDO_PATIENCE, async { Ok(session.run("ROLLBACK").await?) }).await;
    if ended.is_err() {
        session.discard();
    }
}
