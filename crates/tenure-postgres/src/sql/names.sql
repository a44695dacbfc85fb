-- Names: who owns one, under which token, with which value. As for elections, the
-- functions refuse what could never be right, and no CHECK does: see tables.sql.

CREATE TABLE {schema}.names (
    ns       text COLLATE "C" NOT NULL,
    name     text COLLATE "C" NOT NULL,
    -- The revision at which it was taken, and that of its last change.
    token    bigint NOT NULL,
    rev      bigint NOT NULL,
    -- Which life owns it. NULL: it has no owner, and stays until it is dropped. A name whose
    -- life is no member's any more is void.
    owner    text COLLATE "C",
    life     uuid,
    -- Which life wrote it last, and by which attempt.
    by_life  uuid,
    nonce    bigint NOT NULL,
    endpoint text,
    idx      jsonb  NOT NULL,
    data     bytea  NOT NULL,
    bound_at timestamptz NOT NULL,
    PRIMARY KEY (ns, name)
);

-- What a life owns: to clear it away, and to tell who owns anything.
CREATE INDEX names_life ON {schema}.names (life) WHERE life IS NOT NULL;

-- What changed since a revision. Every row has one: a statement that looks for a name does
-- not say so, and cannot be planned by this index, which would find all of the namespace.
CREATE INDEX names_rev ON {schema}.names (ns, rev) WHERE rev > 0;

-- Names that were dropped, so that those who ask what changed are told.
CREATE TABLE {schema}.names_gone (
    ns   text COLLATE "C" NOT NULL,
    rev  bigint NOT NULL,
    name text COLLATE "C" NOT NULL,
    PRIMARY KEY (ns, rev)
);

-- Where the names of a namespace stand. One row for each, and not that of the journal:
-- names and terms do not wait for each other.
CREATE TABLE {schema}.names_at (
    ns        text COLLATE "C" PRIMARY KEY,
    rev       bigint  NOT NULL DEFAULT 0,
    era       integer NOT NULL DEFAULT 0,
    -- Since which revision it can be told what changed.
    kept_from bigint  NOT NULL DEFAULT 0,
    -- When those who listen were told last, and of which revision.
    told_at   timestamptz,
    told_rev  bigint  NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

-- The names that are bound at this moment.
CREATE VIEW {schema}.live_names AS
    SELECT n.ns, n.name, n.token, n.rev, n.owner, n.life, n.endpoint, n.idx, n.data, n.bound_at
    FROM {schema}.names n
    LEFT JOIN {schema}.members m ON m.ns = n.ns AND m.id = n.owner AND m.life = n.life
    WHERE n.life IS NULL OR m.expires_at > clock_timestamp();

-- The answer to one change of one name. Of what was written just now the value is left
-- out: it is the caller's own.
CREATE TYPE {schema}.bound AS (
    op       integer,
    outcome  text,
    name     text,
    token    bigint,
    rev      bigint,
    owner    text,
    life     uuid,
    endpoint text,
    idx      jsonb,
    data     bytea,
    left_us  bigint,
    bound_ms bigint
);
