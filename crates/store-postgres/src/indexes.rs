//! Indexes that later versions add to tables that may be large. Each is built by itself, which takes as
//! long as the table is large, while all nodes go on writing; a build that was interrupted leaves an
//! index that cannot be used, which is replaced. The transactions of migrations create all other
//! indexes, together with their tables.

use std::{convert::Infallible, time::Duration};

use tokio::time::sleep;
use tokio_postgres::Error;

use crate::{
    Options,
    fault::Fault,
    session::{Session, within},
};

pub(crate) struct Index {
    name: &'static str,
    /// Table, columns and condition.
    on: &'static str,
}

const INDEXES: [Index; 5] = [
    Index { name: "runs_by_type", on: "runs (workflow_type, started_at, run)" },
    // Type and status let a walk over all open runs skip others without reading their rows.
    Index {
        name: "runs_open_by_start",
        on: "runs (started_at, run, workflow_type, status) WHERE status <= 3",
    },
    Index { name: "runs_by_close", on: "runs (closed_at, run) WHERE closed_at IS NOT NULL" },
    // Most runs are running (1) or completed (4).
    Index {
        name: "runs_by_status",
        on: "runs (status, started_at, run) WHERE status NOT IN (1, 4)",
    },
    Index {
        name: "runs_by_parent",
        on: "runs (parent_workflow, started_at, run) WHERE parent_workflow IS NOT NULL",
    },
];

/// Keeps a transaction from being idle. A build waits for all transactions that have a snapshot, so this
/// takes none, and as a simple query it drops that of the last query with parameters.
const HOLD: &str = "SET LOCAL lock_timeout = 0";

/// Indexes that are not there, or cannot be used.
pub(crate) async fn missing(session: &Session, options: &Options) -> Result<Vec<Index>, Error> {
    let names = "SELECT c.relname::text FROM pg_index JOIN pg_class AS c ON c.oid = indexrelid \
        JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND indisvalid";
    let there = session.texts(names, &options.schema).await?;
    Ok(INDEXES.into_iter().filter(|index| !there.iter().any(|name| name == index.name)).collect())
}

/// Creates the indexes of new tables, in the transaction that has created these.
pub(crate) async fn create(session: &Session) -> Result<(), Error> {
    for Index { name, on } in INDEXES {
        session.run(&format!("CREATE INDEX {name} ON {on}")).await?;
    }
    Ok(())
}

/// Builds the missing indexes on a connection of its own. Meanwhile the session's transaction, which
/// keeps other nodes from doing the same, is kept from being idle for too long.
pub(crate) async fn build(session: &Session, options: &Options) -> Result<(), Fault> {
    session.run(HOLD).await?;
    let building = async {
        let patience = options.patience();
        let builder = within(patience, Session::connect(options, patience)).await?;
        // Tables may be large, and others may hold them for long; a build that waits keeps no one
        // waiting.
        builder.run("SET statement_timeout = 0; SET lock_timeout = 0").await?;
        for Index { name, on } in missing(&builder, options).await? {
            tracing::info!(index = name, "building an index, which may take long");
            builder.run(&format!("DROP INDEX CONCURRENTLY IF EXISTS {name}")).await?;
            builder.run(&format!("CREATE INDEX CONCURRENTLY {name} ON {on}")).await?;
        }
        Ok(())
    };
    tokio::select! {
        built = building => built,
        ended = keep(session, options.idle_timeout / 3) => match ended? {},
    }
}

/// Keeps an idle transaction alive, and ends only if it is lost.
async fn keep(session: &Session, pause: Duration) -> Result<Infallible, Fault> {
    loop {
        sleep(pause).await;
        session.run(HOLD).await?;
    }
}
