-- Numbers that survive what the database forgets (rule M6): by the database it can
-- tell by itself, by what a live member has seen, and by an operator's word.

-- The timeline this server writes; NULL where it does not say.
CREATE FUNCTION {schema}._timeline() RETURNS integer
LANGUAGE plpgsql AS $$
BEGIN
    -- The first eight digits of the log file's name, in hexadecimal.
    RETURN ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::integer;
EXCEPTION WHEN OTHERS THEN RETURN NULL;
END $$;

-- Which cluster this is; '?' where the server does not say.
CREATE FUNCTION {schema}._cluster() RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT system_identifier FROM pg_control_system());
EXCEPTION WHEN OTHERS THEN RETURN '?';
END $$;

-- The microseconds since 2026-01-01 by the server's wall clock. No election has had as
-- many terms, so that numbers which begin at the clock stay behind it. They are below
-- 2^53 until 2311.
CREATE FUNCTION {schema}._clock() RETURNS bigint
LANGUAGE sql AS $$
    SELECT greatest(0, floor(extract(epoch FROM
        clock_timestamp() - '2026-01-01 00:00:00+00'::timestamptz) * 1000000))::bigint
$$;

-- The present era, and the least number that is given out in it.
--
-- A step that gives out a number compares two things: since when the server runs, and
-- which file of which database the table of the settings is. Both stay as they are
-- for as long as one server runs on one database: a server is one cluster and writes
-- one timeline, it comes out of recovery once, if at all, and goes back only by a
-- restart; a table that is restored, or copied with its database, is another file.
-- When one of the two differs this is called, and looks at what it means:
--
-- - Another cluster, timeline, database or table begins a new era. It is no less than
--   the timelines gone by since the first, so that a copy which missed a promotion but
--   knows of its timeline does not repeat that one's jump.
-- - A server that was started again may have been given an older copy of its files,
--   and nothing in them says so: a counter is put back with the files. The clock is
--   not. So no number is below the clock from then on.
-- - The same is done in a new era: one backup may be restored twice.
CREATE FUNCTION {schema}._era(OUT era integer, OUT floor bigint)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_timeline integer := _timeline();
    v_cluster text := _cluster();
    v_database oid := (SELECT d.oid FROM pg_database d WHERE d.datname = current_database());
    v_old settings%ROWTYPE;
    v_same boolean;
BEGIN
    SELECT * INTO v_old FROM settings s FOR UPDATE;
    v_same := v_old.cluster = v_cluster AND v_old.database = v_database
        AND v_old.relation = 'settings'::regclass
        AND coalesce(v_timeline = v_old.timeline, true);
    UPDATE settings s SET
        started_at = pg_postmaster_start_time(), file = pg_relation_filepath(s.tableoid),
        cluster = v_cluster, database = v_database, relation = s.tableoid,
        timeline = coalesce(v_timeline, s.timeline),
        first_timeline = coalesce(s.first_timeline, v_timeline),
        floor = CASE
            WHEN s.cluster IS NULL OR v_same AND s.started_at = pg_postmaster_start_time()
            THEN s.floor ELSE greatest(s.floor, _clock()) END;
    IF v_old.cluster IS NOT NULL AND NOT v_same THEN
        PERFORM _raise(greatest(v_old.era + 1, v_timeline - v_old.first_timeline),
            0, 'the database was promoted, restored or copied');
    END IF;
    SELECT s.era, s.floor INTO era, floor FROM settings s;
END $$;

-- Makes every member look at what it leads and owns: a term or a name of it may be among
-- what was forgotten, and its heartbeat compares neither. Its attention goes by the floor, as
-- numbers do: one backup that is restored twice calls twice, and not the same.
--
-- A row that is locked is not waited for, since its transaction may wait for this one. A
-- heartbeat or a bind holds it for milliseconds, so the attempt is repeated for a while. One that
-- is held for longer is passed over; that member looks when its connection was lost, or at
-- the next change.
CREATE FUNCTION {schema}._call_all() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_floor bigint := (SELECT s.floor FROM settings s);
    v_left bigint[] := ARRAY(SELECT m.handle FROM members m);
    v_called bigint[];
BEGIN
    FOR i IN 1 .. 20 LOOP
        WITH called AS (
            UPDATE members m SET attention = greatest(m.attention + 1048576, v_floor)
            WHERE m.ctid = ANY (ARRAY(
                SELECT o.ctid FROM members o WHERE o.handle = ANY (v_left)
                FOR NO KEY UPDATE SKIP LOCKED))
            RETURNING m.handle)
        SELECT array_agg(c.handle) INTO v_called FROM called c;
        v_left := ARRAY(SELECT m.handle FROM members m WHERE m.handle = ANY (v_left)
            EXCEPT SELECT unnest(v_called));
        EXIT WHEN cardinality(v_left) = 0;
        PERFORM pg_sleep(0.01);
    END LOOP;
END $$;

-- Begins an era, and calls every member.
--
-- Each era lifts the numbers by 2^16: a clock may be behind. That is worth 65.5 ms of
-- the clock, and this waits as long, so that no number is given out which the clock has
-- not reached. Otherwise: the files are put back and the server starts, a member raises
-- the era and wins above the clock, the same files are put back, and the server starts
-- before its clock has reached that number; era and number went back with the files,
-- so that the number is given out again.
--
-- A member may tell a number that was given out, which the clock has not reached here and
-- which this era then begins above (p_told). One that is mistaken, or means harm, must not
-- use the numbers up: what is 2^52 or more, which a clock shows in 2168, counts for nothing,
-- so that no floor rises to it by what is told, and above it an era rises by 2^16 in 65 ms.
CREATE FUNCTION {schema}._raise(p_era integer, p_told bigint, p_why text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_sleep(0.0656);
    UPDATE settings s SET era = p_era,
        floor = greatest(s.floor + ((p_era - s.era)::bigint << 16), _clock(),
            CASE WHEN p_told < 4503599627370496 THEN p_told + 1 END),
        raised_at = clock_timestamp(), raised_for = p_why;
    -- That a term was taken on which was handed over, or was given back, may be among
    -- what is forgotten.
    UPDATE elections e SET heir_until = NULL, handed = false
        WHERE e.handed AND e.life IS NOT NULL AND e.era < p_era;
    PERFORM _call_all();
END $$;

-- A member has seen more of a namespace's journal than there is: what it saw was
-- forgotten. The journal goes on after what was seen, which is told as entries that
-- are no longer kept. Numbers go on above what was told of them. The caller has entered.
CREATE FUNCTION {schema}._rolled_back(p_ns text, p_seen bigint, p_told bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_ready boolean := p_seen < 9007199254740992
        OR _refuse('a place in the journal is less than 2^53');
    v_found bigint;
BEGIN
    SELECT n.seq INTO v_found FROM namespaces n WHERE n.ns = p_ns;
    INSERT INTO namespaces AS n (ns, seq, trimmed) VALUES (p_ns, p_seen, p_seen)
        ON CONFLICT (ns) DO UPDATE SET seq = excluded.seq, trimmed = excluded.trimmed;
    PERFORM _raise(e.era + 1, p_told,
        format('a member of %s had seen the journal up to %s; it ended at %s', p_ns, p_seen,
            coalesce(v_found, 0))) FROM _era() e;
END $$;

-- An operator's word that the database was restored, rolled back or copied: the era
-- rises, so that no number which was forgotten is given out again. Harmless whenever it
-- is called: numbers jump, and leaders go on leading.
CREATE FUNCTION {schema}.restored(
    p_by text DEFAULT '', p_wait_ms integer DEFAULT 0,
    OUT era_before integer, OUT era_after integer
) LANGUAGE plpgsql SECURITY DEFINER {planned} AS $$
DECLARE
    v_ready boolean := _prepare(p_wait_ms);
BEGIN
    SELECT s.era INTO era_before FROM settings s;
    PERFORM _raise(e.era + 1, 0, 'it was said to be restored, by ' || _note(p_by)) FROM _era() e;
    SELECT s.era INTO era_after FROM settings s;
END $$;

-- Where the term numbers stand: the era, when and why it began, the highest number given
-- out in any namespace, and where the clock stands on their scale.
CREATE FUNCTION {schema}.numbers(
    OUT era integer, OUT floor bigint, OUT raised_at timestamptz, OUT raised_for text,
    OUT highest bigint, OUT clock bigint
) LANGUAGE sql STABLE SECURITY DEFINER SET search_path = {schema}, pg_temp AS $$
    SELECT s.era, s.floor, s.raised_at, s.raised_for,
        coalesce((SELECT max(e.number) FROM elections e), 0), _clock()
    FROM settings s
$$;

-- From its installation on the schema knows on which server and timeline it is. A copy that
-- is promoted before any number was given out on it would take itself for a new one, and
-- give the first numbers out again.
DO $$ BEGIN PERFORM {schema}._era(); END $$;
