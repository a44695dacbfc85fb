-- Version 1. Instants are nanoseconds of CLOCK_BOOTTIME and mean something only
-- together with the boot they were read in; spans are nanoseconds; wall-clock
-- times are milliseconds of Unix time and are for people only.

-- 'schema' is the version. 'era' rises when the file may have forgotten terms that
-- were given out: the next number of each election jumps by 2^16 for each era gone by.
-- 'floor' is the least number that is given out. 'bindings' counts the steps that changed
-- names, in all namespaces.
CREATE TABLE tenure_meta (
    name  TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Which store this is: drawn once, and the same in every copy of the file. It goes
-- with each leadership, and a fence compares it.
CREATE TABLE tenure_store (
    only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
    id       TEXT NOT NULL
) STRICT;
INSERT INTO tenure_store (only_row, id) VALUES (1, lower(hex(randomblob(16))));

-- The journal's place of each namespace: the newest entry, and the newest one
-- that is no longer kept.
CREATE TABLE tenure_namespaces (
    ns      TEXT PRIMARY KEY,
    seq     INTEGER NOT NULL,
    trimmed INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- One row for each member, and one heartbeat, whatever it holds. `beat` changes
-- with every heartbeat, so that a process of another boot sees life in it.
-- `lock` is the inode of its lock file: a file of that name with another one is
-- not the lock that proves its life.
CREATE TABLE tenure_members (
    ns          TEXT NOT NULL,
    id          TEXT NOT NULL,
    incarnation TEXT NOT NULL,
    boot        TEXT NOT NULL,
    lock        INTEGER NOT NULL,
    beat        INTEGER NOT NULL,
    beat_at     INTEGER NOT NULL,
    ttl         INTEGER NOT NULL,
    holds       INTEGER NOT NULL,
    attention   INTEGER NOT NULL,
    condemned   INTEGER NOT NULL,
    joined_at   INTEGER NOT NULL,
    endpoints   TEXT NOT NULL,
    metadata    BLOB NOT NULL,
    -- Whether a term may be handed to it.
    takes_over  INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (ns, id)
) STRICT;
CREATE UNIQUE INDEX tenure_members_incarnation ON tenure_members (incarnation, ns);

-- Lives that are over, for as long as the journal remembers them: a late join
-- does not bring one back.
CREATE TABLE tenure_ended (
    ns          TEXT NOT NULL,
    incarnation TEXT NOT NULL,
    seq         INTEGER NOT NULL,
    PRIMARY KEY (ns, incarnation)
) STRICT, WITHOUT ROWID;
CREATE INDEX tenure_ended_seq ON tenure_ended (ns, seq);

-- Lives that are over and left more candidacies or names behind than one step clears away.
CREATE TABLE tenure_remains (
    ns          TEXT NOT NULL,
    incarnation TEXT NOT NULL,
    id          TEXT NOT NULL,
    PRIMARY KEY (ns, incarnation)
) STRICT, WITHOUT ROWID;

-- `number` must not go back: a row that has one is deleted only by a purge, which leaves
-- the highest in `tenure_forgotten`. A term whose `incarnation` is
-- no member's any more ended with that life.
CREATE TABLE tenure_elections (
    ns           TEXT NOT NULL,
    name         TEXT NOT NULL,
    number       INTEGER NOT NULL DEFAULT 0,
    holder       TEXT,
    incarnation  TEXT,
    elected_at   INTEGER NOT NULL DEFAULT 0,
    winner       TEXT,
    nonce        INTEGER NOT NULL DEFAULT 0,
    pause_reason TEXT,
    pause_by     TEXT,
    step_reason  TEXT,
    step_by      TEXT,
    step_to      TEXT,
    heir         TEXT,
    heir_boot    TEXT,
    heir_from    INTEGER,
    heir_span    INTEGER,
    -- In which era the number was given: see `tenure_meta`.
    era          INTEGER NOT NULL DEFAULT 0,
    -- Whether the term was handed over and won by no bid; and, until its holder has
    -- confirmed it, for how long it stands.
    handed       INTEGER NOT NULL DEFAULT 0,
    lapse_boot   TEXT,
    lapse_from   INTEGER,
    lapse_span   INTEGER,
    -- When a term of it last began or ended. Only a purge goes by it.
    changed_at   INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (ns, name)
) STRICT;
CREATE INDEX tenure_elections_held ON tenure_elections (ns, incarnation)
    WHERE incarnation IS NOT NULL;

-- Of the elections that were purged: no number of theirs is above this one, in the era in
-- which it was written.
CREATE TABLE tenure_forgotten (
    ns     TEXT PRIMARY KEY,
    number INTEGER NOT NULL,
    era    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- `stood` is the journal's place of the candidacy's beginning: it orders those
-- who wait without comparing clocks.
CREATE TABLE tenure_candidates (
    ns          TEXT NOT NULL,
    election    TEXT NOT NULL,
    id          TEXT NOT NULL,
    incarnation TEXT NOT NULL,
    priority    INTEGER NOT NULL,
    stood       INTEGER NOT NULL,
    boot        TEXT NOT NULL,
    since       INTEGER NOT NULL,
    PRIMARY KEY (ns, election, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX tenure_candidates_life ON tenure_candidates (ns, id, incarnation);

-- `details` has what no statement goes by: a line `word=text` each.
CREATE TABLE tenure_journal (
    ns          TEXT NOT NULL,
    seq         INTEGER NOT NULL,
    at          INTEGER NOT NULL,
    kind        TEXT NOT NULL,
    election    TEXT,
    number      INTEGER,
    member      TEXT,
    incarnation TEXT,
    priority    INTEGER,
    cause       TEXT,
    heir        TEXT,
    endpoints   TEXT,
    metadata    BLOB,
    details     TEXT,
    PRIMARY KEY (ns, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX tenure_journal_election ON tenure_journal (ns, election, seq)
    WHERE election IS NOT NULL;

-- Where the names of each namespace stand: the revision of the newest change, the era in
-- which it was given, and from which revision on the drops are remembered.
CREATE TABLE tenure_revisions (
    ns        TEXT PRIMARY KEY,
    rev       INTEGER NOT NULL,
    era       INTEGER NOT NULL,
    kept_from INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- A name whose `incarnation` is no member's any more is free: the end of a life is not
-- written to its names. `writer` and `nonce` are those of the last change. `pairs` has
-- keys and texts, a line each.
CREATE TABLE tenure_names (
    ns          TEXT NOT NULL,
    name        TEXT NOT NULL,
    token       INTEGER NOT NULL,
    rev         INTEGER NOT NULL,
    id          TEXT,
    incarnation TEXT,
    writer      TEXT,
    nonce       INTEGER NOT NULL,
    endpoint    TEXT,
    pairs       TEXT NOT NULL,
    data        BLOB NOT NULL,
    bound_at    INTEGER NOT NULL,
    PRIMARY KEY (ns, name)
) STRICT;
CREATE UNIQUE INDEX tenure_names_rev ON tenure_names (ns, rev);
CREATE INDEX tenure_names_life ON tenure_names (ns, id, incarnation, name)
    WHERE incarnation IS NOT NULL;

-- Names that were dropped, for those who ask what changed since a revision.
CREATE TABLE tenure_dropped (
    ns   TEXT NOT NULL,
    rev  INTEGER NOT NULL,
    name TEXT NOT NULL,
    PRIMARY KEY (ns, rev)
) STRICT, WITHOUT ROWID;

INSERT INTO tenure_meta (name, value)
VALUES ('schema', 1), ('era', 0), ('floor', 0), ('bindings', 0);
