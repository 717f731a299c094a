-- Times are 12 bytes that sort as they should: seconds with the sign bit flipped, then nanoseconds,
-- both big-endian. Texts are compared by their bytes. Every key begins with the shard, so that a
-- database that is spread over machines can keep a shard together; indexes over all shards serve lists
-- only. Rows go to the log of the database one by one, whatever page they are on, so unlike in a file
-- of pages nothing is gained by placing new rows of different shards side by side.

CREATE TABLE shards (
    shard smallint PRIMARY KEY,
    epoch bigint NOT NULL,
    owner text COLLATE "C" NOT NULL
);

-- A row of each shard, to be locked before it was ever claimed.
INSERT INTO shards (shard, epoch, owner) SELECT number, 0, '' FROM generate_series(0, 63) AS number;

CREATE TABLE log (
    shard smallint NOT NULL,
    run uuid NOT NULL,
    sequence bigint NOT NULL,
    first_event bigint NOT NULL,
    events bytea NOT NULL,
    notes bytea NOT NULL,
    PRIMARY KEY (shard, run, sequence)
);

CREATE TABLE snapshots (
    shard smallint NOT NULL,
    run uuid NOT NULL,
    sequence bigint NOT NULL,
    state bytea NOT NULL,
    PRIMARY KEY (shard, run)
);

CREATE TABLE runs (
    shard smallint NOT NULL,
    run uuid NOT NULL,
    namespace text COLLATE "C" NOT NULL,
    workflow text COLLATE "C" NOT NULL,
    ordinal bigint NOT NULL,
    workflow_type text COLLATE "C" NOT NULL,
    status smallint NOT NULL,
    start_key text COLLATE "C",
    started_at bytea NOT NULL,
    closed_at bytea,
    details bytea NOT NULL,
    PRIMARY KEY (shard, run)
);

CREATE INDEX runs_by_workflow ON runs (namespace, workflow, ordinal, run);
CREATE INDEX runs_by_start ON runs (started_at, run);
-- Statuses up to 3 are open. What the sweeper walks stays as small as the number of open runs.
CREATE INDEX runs_open ON runs (shard, run) WHERE status <= 3;

-- Rows of tasks, the due index, outbox and inbox live for moments: they are cleaned up early.
CREATE TABLE tasks (
    shard smallint NOT NULL,
    namespace text COLLATE "C" NOT NULL,
    queue text COLLATE "C" NOT NULL,
    kind smallint NOT NULL,
    run uuid NOT NULL,
    scheduled bigint NOT NULL,
    workflow text COLLATE "C" NOT NULL,
    phase smallint NOT NULL,
    PRIMARY KEY (shard, namespace, queue, kind, run, scheduled)
) WITH (autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_scale_factor = 0.02);

CREATE TABLE due (
    shard smallint NOT NULL,
    due bytea NOT NULL,
    run uuid NOT NULL,
    timer bytea NOT NULL,
    workflow text COLLATE "C" NOT NULL,
    namespace text COLLATE "C" NOT NULL,
    PRIMARY KEY (shard, due, run, timer)
) WITH (autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_scale_factor = 0.02);

CREATE TABLE waits (
    shard smallint NOT NULL,
    run uuid NOT NULL,
    wait bytea NOT NULL,
    namespace text COLLATE "C" NOT NULL,
    workflow text COLLATE "C" NOT NULL,
    workflow_type text COLLATE "C" NOT NULL,
    kind smallint NOT NULL,
    name text COLLATE "C" NOT NULL,
    since bytea NOT NULL,
    until bytea NOT NULL,
    timer text COLLATE "C",
    details bytea NOT NULL,
    PRIMARY KEY (shard, run, wait)
);

CREATE INDEX waits_by_end ON waits (until, run, shard, wait);
-- Signals (2), conditions (3) and approvals (6) are what people look up by name. Timers and retries have
-- names that occur once, so an index of them would cost a write for each and serve nobody.
CREATE INDEX waits_by_name ON waits (kind, name, until, run, shard, wait) WHERE kind IN (2, 3, 6);

CREATE TABLE outbox (
    shard smallint NOT NULL,
    run uuid NOT NULL,
    number bigint NOT NULL,
    namespace text COLLATE "C" NOT NULL,
    workflow text COLLATE "C" NOT NULL,
    effect bytea NOT NULL,
    PRIMARY KEY (shard, run, number)
) WITH (autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_scale_factor = 0.02);

CREATE TABLE inbox (
    shard smallint NOT NULL,
    source uuid NOT NULL,
    number bigint NOT NULL,
    at bytea NOT NULL,
    outcome bytea NOT NULL,
    PRIMARY KEY (shard, source, number)
) WITH (autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_scale_factor = 0.02);

CREATE INDEX inbox_by_time ON inbox (shard, at);

CREATE TABLE registry (
    name text COLLATE "C" PRIMARY KEY,
    version bigint NOT NULL,
    value bytea NOT NULL
);
