-- What lists search by. Most runs are running (1) or completed (4), so the index by status leaves them out.

ALTER TABLE runs ADD COLUMN queue text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN parent_workflow text COLLATE "C";
ALTER TABLE runs ADD COLUMN parent_run uuid;

CREATE INDEX runs_by_type ON runs (workflow_type, started_at, run);
-- Type and status let a walk over all open runs skip others without reading their rows.
CREATE INDEX runs_open_by_start ON runs (started_at, run, workflow_type, status) WHERE status <= 3;
CREATE INDEX runs_by_close ON runs (closed_at, run) WHERE closed_at IS NOT NULL;
CREATE INDEX runs_by_status ON runs (status, started_at, run) WHERE status NOT IN (1, 4);
CREATE INDEX runs_by_parent ON runs (parent_workflow, started_at, run)
    WHERE parent_workflow IS NOT NULL;

-- One row per value of a search attribute: several for a list, one per word for a text. A value is the
-- number of its type and then bytes that sort as the values do.
CREATE TABLE attributes (
    shard smallint NOT NULL,
    run uuid NOT NULL,
    name text COLLATE "C" NOT NULL,
    value bytea NOT NULL,
    namespace text COLLATE "C" NOT NULL,
    started_at bytea NOT NULL,
    PRIMARY KEY (shard, run, name, value)
);

CREATE INDEX attributes_by_value ON attributes (namespace, name, value, started_at, run, shard);
