-- Numbers that outlive rows. `newest` and `claims` are the last given out, `compacted` is the floor;
-- `version` is that of these tables, `oldest` the oldest version that programs must know to use them.
CREATE TABLE meta (name text PRIMARY KEY, value bigint NOT NULL);
INSERT INTO meta VALUES ('newest', 0), ('compacted', 0), ('claims', 0), ('version', 0), ('oldest', 0);

-- Where the newest log row of each key is, freed keys included. Bytes are compared, not words.
CREATE TABLE objects (
    kind text COLLATE "C" NOT NULL,
    namespace text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    revision bigint NOT NULL,
    is_free boolean NOT NULL,
    PRIMARY KEY (kind, namespace, name)
);

-- One row per write: whose, what it did (0 created, 1 updated, 2 removed), the row before, who, why, when.
CREATE TABLE log (
    revision bigint PRIMARY KEY,
    kind text COLLATE "C" NOT NULL,
    namespace text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    act bigint NOT NULL,
    previous bigint,
    at bigint NOT NULL,
    actor text NOT NULL,
    reason text NOT NULL,
    manager text NOT NULL,
    head bytea NOT NULL
);

-- The sealed payload of a log row; dropped by compaction. Nothing is gained by compressing what is sealed.
CREATE TABLE bodies (revision bigint PRIMARY KEY, payload bytea NOT NULL);
ALTER TABLE bodies ALTER COLUMN payload SET STORAGE EXTERNAL;

CREATE TABLE work (
    controller bytea NOT NULL,
    item bytea NOT NULL,
    fence bigint NOT NULL UNIQUE,
    body bytea NOT NULL,
    PRIMARY KEY (controller, item)
);

CREATE TABLE attempts (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    controller bytea NOT NULL,
    item bytea NOT NULL,
    at bigint NOT NULL,
    body bytea NOT NULL
);
CREATE INDEX attempts_of_item ON attempts (controller, item, id);

-- The last batch that each process committed, for one that lost its connection and wants to know.
CREATE TABLE writers (id bigint PRIMARY KEY, batch bigint NOT NULL, at timestamptz NOT NULL);
