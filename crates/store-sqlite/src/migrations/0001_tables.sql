-- Times are 12 bytes that sort as they should: seconds with the sign bit flipped, then nanoseconds,
-- both big-endian. Runs are their 16 bytes. Run ids grow with time, so a key that begins with the run
-- is written at its right edge; a key that begins with the shard is written in 64 places, and stands
-- only where rows are few or must be read shard by shard.

CREATE TABLE shards (
    shard INTEGER PRIMARY KEY,
    epoch INTEGER NOT NULL,
    owner TEXT NOT NULL
) STRICT;

-- A rowid table: rows are appended whole, in the order of commits, and pages are full. Kept in the order
-- of runs instead, each commit would touch the pages of all runs that are under way.
CREATE TABLE log (
    run BLOB NOT NULL,
    shard INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    first_event INTEGER NOT NULL,
    events BLOB NOT NULL,
    notes BLOB NOT NULL,
    PRIMARY KEY (run, shard, sequence)
) STRICT;

CREATE TABLE snapshots (
    run BLOB NOT NULL,
    shard INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    state BLOB NOT NULL,
    PRIMARY KEY (run, shard)
) STRICT;

CREATE TABLE runs (
    run BLOB NOT NULL,
    shard INTEGER NOT NULL,
    namespace TEXT NOT NULL,
    workflow TEXT NOT NULL,
    ordinal INTEGER NOT NULL,
    workflow_type TEXT NOT NULL,
    status INTEGER NOT NULL,
    start_key TEXT,
    started_at BLOB NOT NULL,
    closed_at BLOB,
    details BLOB NOT NULL,
    PRIMARY KEY (run, shard)
) STRICT, WITHOUT ROWID;

CREATE INDEX runs_by_workflow ON runs (namespace, workflow, ordinal);
CREATE INDEX runs_by_start ON runs (started_at, run);
-- Statuses up to 3 are open. What the sweeper walks stays as small as the number of open runs.
CREATE INDEX runs_open ON runs (run, shard) WHERE status <= 3;

CREATE TABLE tasks (
    shard INTEGER NOT NULL,
    namespace TEXT NOT NULL,
    queue TEXT NOT NULL,
    kind INTEGER NOT NULL,
    run BLOB NOT NULL,
    scheduled INTEGER NOT NULL,
    workflow TEXT NOT NULL,
    phase INTEGER NOT NULL,
    PRIMARY KEY (shard, namespace, queue, kind, run, scheduled)
) STRICT, WITHOUT ROWID;

-- The hour of the due time stands before the shard: the many timeouts of the near future, of whatever
-- shard, then share a few pages, however many timers lie far ahead.
CREATE TABLE due (
    hour INTEGER NOT NULL,
    shard INTEGER NOT NULL,
    due BLOB NOT NULL,
    run BLOB NOT NULL,
    timer BLOB NOT NULL,
    workflow TEXT NOT NULL,
    namespace TEXT NOT NULL,
    PRIMARY KEY (hour, shard, due, run, timer)
) STRICT, WITHOUT ROWID;

-- The list of waits goes through the index on the day on which they end, in which new ones stand at the
-- right edge of their day: an index on the exact end would touch a page for each of them. A page of the
-- list sorts one day. Waits without an end have a day of their own and need no sorting.
CREATE TABLE waits (
    run BLOB NOT NULL,
    shard INTEGER NOT NULL,
    wait BLOB NOT NULL,
    day INTEGER NOT NULL,
    namespace TEXT NOT NULL,
    workflow TEXT NOT NULL,
    workflow_type TEXT NOT NULL,
    kind INTEGER NOT NULL,
    name TEXT NOT NULL,
    since BLOB NOT NULL,
    until BLOB NOT NULL,
    timer TEXT,
    details BLOB NOT NULL,
    PRIMARY KEY (run, shard, wait)
) STRICT, WITHOUT ROWID;

CREATE INDEX waits_by_day ON waits (day, run, shard, wait);
-- Signals (2), conditions (3) and approvals (6) are what people look up by name. Timers and retries have
-- names that occur once, so an index of them would cost a write for each and serve nobody.
CREATE INDEX waits_by_name ON waits (kind, name, until, run, shard, wait) WHERE kind IN (2, 3, 6);

CREATE TABLE outbox (
    shard INTEGER NOT NULL,
    run BLOB NOT NULL,
    number INTEGER NOT NULL,
    namespace TEXT NOT NULL,
    workflow TEXT NOT NULL,
    effect BLOB NOT NULL,
    PRIMARY KEY (shard, run, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE inbox (
    source BLOB NOT NULL,
    shard INTEGER NOT NULL,
    number INTEGER NOT NULL,
    at BLOB NOT NULL,
    outcome BLOB NOT NULL,
    PRIMARY KEY (source, shard, number)
) STRICT, WITHOUT ROWID;

CREATE INDEX inbox_by_time ON inbox (at, shard);

CREATE TABLE registry (
    name TEXT PRIMARY KEY,
    version INTEGER NOT NULL,
    value BLOB NOT NULL
) STRICT, WITHOUT ROWID;
