CREATE TABLE kinds (
    id INTEGER PRIMARY KEY,
    group_name TEXT NOT NULL,
    kind TEXT NOT NULL,
    UNIQUE (group_name, kind)
) STRICT;

-- Where the newest log row of each key is. A freed key stays until its history is forgotten, so that
-- lists of the past find it and history outlives the object.
CREATE TABLE objects (
    kind INTEGER NOT NULL,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    revision INTEGER NOT NULL,
    is_free INTEGER NOT NULL,
    PRIMARY KEY (kind, namespace, name)
) STRICT, WITHOUT ROWID;

-- act: 0 created, 1 updated, 2 removed. previous: the row before of the same key, of any incarnation.
-- at: microseconds since 1970.
CREATE TABLE log (
    revision INTEGER PRIMARY KEY,
    kind INTEGER NOT NULL,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    act INTEGER NOT NULL,
    previous INTEGER,
    at INTEGER NOT NULL,
    actor TEXT NOT NULL,
    reason TEXT NOT NULL,
    manager TEXT NOT NULL,
    head BLOB NOT NULL
) STRICT;

-- Apart from the log, so that the pages of dropped payloads become free as a whole.
CREATE TABLE bodies (
    revision INTEGER PRIMARY KEY,
    payload BLOB NOT NULL
) STRICT;

CREATE TABLE work (
    id INTEGER PRIMARY KEY,
    controller TEXT NOT NULL,
    item TEXT NOT NULL,
    fence INTEGER NOT NULL,
    body BLOB NOT NULL,
    UNIQUE (controller, item)
) STRICT;

CREATE TABLE attempts (
    id INTEGER PRIMARY KEY,
    controller TEXT NOT NULL,
    item TEXT NOT NULL,
    at INTEGER NOT NULL,
    body BLOB NOT NULL
) STRICT;
CREATE INDEX attempts_by_item ON attempts (controller, item);

CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO meta VALUES ('compacted', 0), ('claims', 0), ('newest', 0);
