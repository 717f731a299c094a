//! One transaction for a group. It goes out in two flights: the first begins it and locks the epochs of
//! its shards, so that nobody can take a shard before it has ended; the second writes what passed, table
//! by table, and commits.

use std::{collections::BTreeSet, time::Duration};

use abide_core::ids::ShardId;
use abide_store::{Batch, CommitError, Write};
use tokio_postgres::Error;

use crate::{
    fault::{self, Fault},
    session::{Session, boxed, flight, within},
    tables::{log, shards},
    writer::{Answer, epochs::Epochs, plan::Plan},
};

/// Commits what can be committed of these batches, and answers each. If it fails, nothing is left, but
/// for an outcome that is unknown.
pub(super) async fn transaction(
    session: &Session,
    batches: &[Batch],
    patience: Duration,
) -> Result<Vec<Answer>, Fault> {
    let begun = within(patience, begin(session, batches)).await;
    let mut epochs = match begun {
        Ok(epochs) => epochs,
        Err(fault) => {
            roll_back(session).await;
            return Err(fault);
        }
    };
    let mut plan = Plan::default();
    let answers: Vec<Answer> =
        batches.iter().map(|batch| admit(&mut epochs, &mut plan, batch)).collect();
    if answers.iter().all(Result::is_err) {
        roll_back(session).await;
        return Ok(answers);
    }
    match write(session, &plan, patience).await {
        Ok(()) => Ok(answers),
        Err(fault) => Err(name_the_row(session, &plan, fault, patience).await),
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
fn admit<'a>(epochs: &mut Epochs, plan: &mut Plan<'a>, batch: &'a Batch) -> Answer {
    let raised = epochs.check(batch)?;
    plan.add(batch)?;
    epochs.set(batch.shard, raised);
    Ok(())
}

/// Sends all statements and the commit without waiting between them. A statement that fails makes the
/// commit undo everything.
async fn write(session: &Session, plan: &Plan<'_>, patience: Duration) -> Result<(), Fault> {
    let calls = plan.calls();
    // A statement that is not prepared would be sent later than the commit behind it.
    let statements: Vec<_> = calls.iter().map(|call| call.sql).collect();
    let prepared = within(patience, async { Ok(session.prepare(&statements).await?) }).await;
    if let Err(fault) = prepared {
        roll_back(session).await;
        return Err(fault);
    }
    let mut pieces: Vec<_> = calls
        .into_iter()
        .map(|call| boxed(async { session.execute(call).await.map(drop) }))
        .collect();
    pieces.push(boxed(session.run("COMMIT")));
    let whole = pieces.len();
    // What was said before the commit is not about it.
    session.was_hasty();
    let Ok(mut answers) = tokio::time::timeout(patience, flight(pieces)).await else {
        session.spoil();
        return Err(Fault::Unknown(format!("no answer to the commit in {patience:?}")));
    };
    if answers.len() < whole {
        // A statement could not even be sent, and neither was the commit.
        roll_back(session).await;
        return Ok(answers.into_iter().collect::<Result<(), Error>>()?);
    }
    let committed = answers.pop().unwrap_or(Ok(()));
    answers.into_iter().collect::<Result<(), Error>>().map_err(fault::before_commit)?;
    committed.map_err(fault::of_commit)?;
    if session.was_hasty() { Err(fault::hasty_commit()) } else { Ok(()) }
}

/// After a log row was refused: which one, in the words of all backends.
async fn name_the_row(
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

/// How long the end of a transaction may take that has written nothing.
const UNDO_PATIENCE: Duration = Duration::from_secs(1);

/// Ends the transaction without effect. A session that cannot is not used again.
async fn roll_back(session: &Session) {
    let ended = within(UNDO_PATIENCE, async { Ok(session.run("ROLLBACK").await?) }).await;
    if ended.is_err() {
        session.spoil();
    }
}
