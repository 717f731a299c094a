-- The number of a log row is a column. Numbers that SQLite gives to the rows of a table without such a
-- column are its own: VACUUM may change them, and a copy by SQL does. The mark beside the file counts by
-- them. Only the table's description changes, as https://www.sqlite.org/lang_altertable.html#otheralter
-- allows where the stored form stays the same: the column stands for the number that each row has
-- already, and the unique key has the index of the former primary key. So a large log is not rewritten.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = 'CREATE TABLE log (
    run BLOB NOT NULL,
    shard INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    first_event INTEGER NOT NULL,
    events BLOB NOT NULL,
    notes BLOB NOT NULL,
    number INTEGER PRIMARY KEY,
    UNIQUE (run, shard, sequence)
) STRICT' WHERE type = 'table' AND name = 'log';
PRAGMA writable_schema = RESET;
