-- The tables. Plain and durable, never unlogged: a term number must survive a
-- crash of the server (H18). Names compare by their bytes, whatever the
-- database's collation is.
--
-- What could never be right is refused, whatever language it comes from: one
-- name that is not allowed, and no program could read the others any more. The
-- functions refuse it where they make a row. A CHECK is only on what is written
-- once in a member's life: each statement that changes a row reads and plans the
-- text of its table's CHECKs anew, which takes longer than the change.

-- No control characters, and no space at either end, in all of Unicode. Most
-- names are plain, and told by the first expression. What is not is looked at as
-- the bytes of its UTF-8, in hexadecimal, which are the same whatever encoding the
-- database has; one that does not know its own (SQL_ASCII) must hold UTF-8.
CREATE FUNCTION {schema}._is_printable(p_text text) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT p_text ~ '^[!-~]+$'
        OR encode(convert_to(p_text, 'UTF8'), 'hex') !~ '^(..)*(0.|1.|7f|c2[89].)'
       AND encode(convert_to(p_text, 'UTF8'), 'hex')
           !~ '^(20|c2a0|e19a80|e2808[0-9a]|e280a[89f]|e2819f|e38080)'
       AND encode(convert_to(p_text, 'UTF8'), 'hex')
           !~ '(20|c2a0|e19a80|e2808[0-9a]|e280a[89f]|e2819f|e38080)$'
$$;

-- As long as a namespace, an election's name and a member's id may be.
CREATE FUNCTION {schema}._is_name(p_name text) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT octet_length(p_name) BETWEEN 1 AND 200 AND (p_name ~ '^[!-~]+$'
        OR {schema}._is_printable(p_name) AND octet_length(convert_to(p_name, 'UTF8')) <= 200)
$$;

CREATE FUNCTION {schema}._are_endpoints(p_endpoints text[]) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT cardinality(p_endpoints) <= 16 AND coalesce(array_ndims(p_endpoints), 1) = 1
       AND NOT EXISTS (SELECT FROM unnest(p_endpoints) AS t(endpoint) WHERE
           (octet_length(t.endpoint) BETWEEN 1 AND 255
            AND octet_length(convert_to(t.endpoint, 'UTF8')) <= 255
            AND {schema}._is_printable(t.endpoint)) IS NOT TRUE)
$$;

-- Short free text that goes with an operator's request, as every program makes it:
-- without blanks at either end, control characters as spaces, cut at 500 bytes of
-- UTF-8. It is never a reason to refuse a request, and never long.
CREATE FUNCTION {schema}._note(p_text text) RETURNS text
LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_control text := '^(0.|1.|7f|c2[89].)$';
    v_space text := '20|c2a0|e19a80|e2808[0-9a]|e280a[89f]|e2819f|e38080';
    -- More than is kept, of what may be very long.
    v_text text := left(ltrim(p_text, E' \x01\x02\x03\x04\x05\x06\x07\x08\t\n\x0b\f\r\x0e\x0f'
        || E'\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f\x7f'), 4000);
    v_hex text;
BEGIN
    BEGIN
        v_hex := encode(convert_to(v_text, 'UTF8'), 'hex');
    EXCEPTION WHEN character_not_in_repertoire OR untranslatable_character THEN
        v_text := regexp_replace(v_text, '[^\x01-\x7f]', '?', 'g');
        v_hex := encode(convert_to(v_text, 'UTF8'), 'hex');
    END;
    v_hex := regexp_replace(v_hex, '^(0.|1.|7f|c2[89].|' || v_space || ')+', '');
    v_hex := regexp_replace(v_hex, '(0.|1.|7f|c2[89].|' || v_space || ')+$', '');
    -- Character by character, for as long as they fit.
    SELECT string_agg(c.kept, '' ORDER BY c.ord) INTO v_hex FROM (
        SELECT t.ord, t.kept, length(t.whole) - length(t.kept)
               + sum(length(t.kept)) OVER (ORDER BY t.ord) AS upto FROM (
            SELECT m.ord, m.found[1] AS whole,
                   CASE WHEN m.found[1] ~ v_control THEN '20' ELSE m.found[1] END AS kept
            FROM regexp_matches(v_hex, '([0-7].|[c-f].(?:[89ab].)+)', 'g')
                 WITH ORDINALITY AS m(found, ord)) t) c
        WHERE c.upto <= 2 * 500;
    v_hex := regexp_replace(v_hex, '(' || v_space || ')+$', '');
    RETURN coalesce(convert_from(decode(v_hex, 'hex'), 'UTF8'), '');
END $$;

-- One row: the version of all this, and what an operator may change.
CREATE TABLE {schema}.settings (
    only_row     boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    version      integer NOT NULL,
    -- Which store this is: drawn once, and the same in every copy. It goes with each
    -- leadership, and a fence compares it.
    store        uuid    NOT NULL DEFAULT gen_random_uuid(),
    -- How many journal entries of each namespace are kept, at least.
    journal_keep bigint  NOT NULL DEFAULT 10000 CHECK (journal_keep > 0),
    -- Where this row was written last: the cluster, the timeline, the database and
    -- the table. When one of them changes, the database was promoted, restored or
    -- copied and may have forgotten terms that were given out: the era rises, and
    -- the numbers of every election jump: see _era().
    cluster        text,
    timeline       integer,
    first_timeline integer,
    database       oid,
    relation       oid,
    era            integer NOT NULL DEFAULT 0,
    -- The least number that is given out: see _era().
    floor          bigint  NOT NULL DEFAULT 0,
    -- Compared whenever a number is given out: if either differs, the rest is too.
    started_at     timestamptz,
    file           text,
    -- When the era rose last, and why, for people.
    raised_at      timestamptz,
    raised_for     text
);

-- One row for each namespace. It counts the journal: since transitions happen
-- one after the other, numbers follow the order of commits and have no gaps.
CREATE TABLE {schema}.namespaces (
    ns      text COLLATE "C" PRIMARY KEY,
    seq     bigint NOT NULL,
    -- What is no longer kept, and when to look at that again.
    trimmed bigint NOT NULL DEFAULT 0,
    trim_at bigint NOT NULL DEFAULT 0,
    -- From which place on no notifications are sent, because the server's queue of
    -- notifications is filling. Those who follow look instead.
    quiet_from bigint
) WITH (fillfactor = 50);

-- One row for each living process. A heartbeat updates it and nothing else.
-- There is no index on expires_at and there is room in the page, so that the
-- update stays in its page and touches no index (HOT).
CREATE TABLE {schema}.members (
    ns         text COLLATE "C" NOT NULL,
    id         text COLLATE "C" NOT NULL,
    life       uuid        NOT NULL,
    -- All three in one number, which a heartbeat finds sooner.
    handle     bigint      NOT NULL UNIQUE,
    expires_at timestamptz NOT NULL,
    ttl        bigint      NOT NULL, -- microseconds
    attention  bigint      NOT NULL DEFAULT 0,
    holds      integer     NOT NULL DEFAULT 0,
    condemned  boolean     NOT NULL DEFAULT false,
    -- Whether it looks at once when it is told, so that a term may be handed to it.
    takes_over boolean     NOT NULL DEFAULT false,
    joined_at  timestamptz NOT NULL,
    PRIMARY KEY (ns, id)
) WITH (fillfactor = 50);

-- What a member publishes: apart, so that heartbeats do not carry it along.
CREATE TABLE {schema}.profiles (
    ns        text COLLATE "C" NOT NULL,
    id        text COLLATE "C" NOT NULL,
    endpoints text[] NOT NULL,
    metadata  bytea  NOT NULL,
    PRIMARY KEY (ns, id),
    CONSTRAINT there_are_at_most_16_endpoints_of_1_to_255_printable_bytes
        CHECK ({schema}._are_endpoints(endpoints)),
    CONSTRAINT metadata_has_at_most_4096_bytes CHECK (octet_length(metadata) <= 4096)
);

-- Kept for as long as they have a number, so that numbers never go back. A purge that removes
-- one keeps the number: see purge.sql.
CREATE TABLE {schema}.elections (
    ns           text COLLATE "C" NOT NULL,
    name         text COLLATE "C" NOT NULL,
    number       bigint  NOT NULL DEFAULT 0,
    era          integer NOT NULL DEFAULT 0,
    -- Who won last, and by which attempt, whether or not the term still stands.
    won_by       uuid,
    won_nonce    bigint,
    -- Whether the last term was handed over, and won by no bid.
    handed       boolean NOT NULL DEFAULT false,
    -- A term whose life is no member's any more ended with that life.
    holder       text COLLATE "C",
    life         uuid,
    elected_at   timestamptz,
    -- With which the holder stands, if it won before it had a row among the
    -- candidates: then it needs none.
    priority     integer,
    paused       boolean NOT NULL DEFAULT false,
    pause_reason text,
    pause_by     text,
    -- A step-down asked of the present term.
    asked        boolean NOT NULL DEFAULT false,
    asked_reason text,
    asked_by     text,
    asked_to     text COLLATE "C",
    -- For whom a vacancy is kept, and until when. A term that was handed over and
    -- not yet taken on has the time alone: nothing revives it once that has passed.
    heir         text COLLATE "C",
    heir_until   timestamptz,
    -- When a term of it last began or ended. Only a purge goes by it.
    changed_at   timestamptz NOT NULL DEFAULT 'epoch',
    PRIMARY KEY (ns, name),
    -- Makes the number a key column. A fence locks the row FOR KEY SHARE, which
    -- keeps others from changing a key, and from nothing else: a new term waits
    -- for the fenced transaction, while ending a holder, asking it to step down
    -- or pausing the election do not. The name is first because most rows differ
    -- there: that is compared the fastest.
    UNIQUE (name, ns, number)
);

-- By life only what a life holds is looked up. A statement that names the
-- election too compares the life as `(life = x) IS TRUE`, which no index answers.
CREATE INDEX elections_held ON {schema}.elections (life) WHERE life IS NOT NULL;

CREATE TABLE {schema}.candidates (
    ns       text COLLATE "C" NOT NULL,
    election text COLLATE "C" NOT NULL,
    member   text COLLATE "C" NOT NULL,
    life     uuid        NOT NULL,
    priority integer     NOT NULL,
    since    timestamptz NOT NULL,
    PRIMARY KEY (ns, election, member)
);

CREATE INDEX candidates_life ON {schema}.candidates (life);

-- In the order in which candidates are preferred, so that the first few are found
-- whatever number of them there is.
CREATE INDEX candidates_ranked ON {schema}.candidates (ns, election, (-priority), since, member);

-- Lives that are over and left more candidacies or names behind than their end cleared
-- away.
CREATE TABLE {schema}.remains (
    ns     text COLLATE "C" NOT NULL,
    life   uuid NOT NULL,
    member text COLLATE "C" NOT NULL,
    PRIMARY KEY (ns, life)
);

-- An entry of the journal, without its place.
CREATE TYPE {schema}.entry AS (
    kind      text,
    election  text,
    number    bigint,
    member    text,
    life      uuid,
    priority  integer,
    cause     text,
    heir      text,
    endpoints text[],
    metadata  bytea,
    -- What no condition goes by, each as a text under a word.
    details   jsonb
);

-- An entry of which only what it tells is named. The server puts the expression in the
-- place of the call.
CREATE FUNCTION {schema}._new_entry(
    kind text, election text DEFAULT NULL, number bigint DEFAULT NULL, member text DEFAULT NULL,
    life uuid DEFAULT NULL, priority integer DEFAULT NULL, cause text DEFAULT NULL,
    heir text DEFAULT NULL, endpoints text[] DEFAULT NULL, metadata bytea DEFAULT NULL,
    details jsonb DEFAULT NULL
) RETURNS {schema}.entry LANGUAGE sql IMMUTABLE AS $$
    SELECT ROW(kind, election, number, member, life, priority, cause, heir, endpoints, metadata,
        details)::{schema}.entry
$$;

-- What was told at once: a claim of a thousand elections is one row.
CREATE TABLE {schema}.told (
    ns      text COLLATE "C" NOT NULL,
    -- The place of the last of the entries.
    seq     bigint      NOT NULL,
    count   integer     NOT NULL,
    at      timestamptz NOT NULL,
    -- The life that ended or left, which is told alone.
    over    uuid,
    entries {schema}.entry[] NOT NULL,
    -- The elections of which each entry tells the same, if it names none itself.
    elections text[],
    PRIMARY KEY (ns, seq)
);

-- Thousands of entries are written faster than they are compressed.
ALTER TABLE {schema}.told ALTER entries SET STORAGE EXTERNAL,
    ALTER elections SET STORAGE EXTERNAL;

-- Whether a life has ended, as far back as the journal goes.
CREATE INDEX told_over ON {schema}.told (ns, over) WHERE over IS NOT NULL;

-- What is told in few words, in all of them: each entry for each of the elections.
-- Every role that may read the journal may call this.
CREATE FUNCTION {schema}._spread(p_entries {schema}.entry[], p_elections text[])
RETURNS {schema}.entry[] LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    v_e {schema}.entry;
    v_name text;
    v_all {schema}.entry[];
BEGIN
    FOREACH v_e IN ARRAY p_entries LOOP
        FOREACH v_name IN ARRAY p_elections LOOP
            v_e.election := v_name;
            v_all := v_all || v_e;
        END LOOP;
    END LOOP;
    RETURN v_all;
END $$;

-- The journal, entry by entry.
CREATE VIEW {schema}.journal AS
    SELECT t.ns, t.seq - t.count + e.ordinality AS seq, t.at, e.kind, e.election, e.number,
           e.member, e.life, e.priority, e.cause, e.heir, e.endpoints, e.metadata, e.details
    FROM {schema}.told t CROSS JOIN LATERAL unnest(CASE WHEN t.elections IS NULL THEN t.entries
         ELSE {schema}._spread(t.entries, t.elections) END) WITH ORDINALITY AS e;

INSERT INTO {schema}.settings (version) VALUES (1);
