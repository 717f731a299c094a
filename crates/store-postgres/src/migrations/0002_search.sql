-- What lists search by; the indexes of runs are built on their own, because there may be very many runs.

ALTER TABLE runs ADD COLUMN queue text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN parent_workflow text COLLATE "C";
ALTER TABLE runs ADD COLUMN parent_run uuid;

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
