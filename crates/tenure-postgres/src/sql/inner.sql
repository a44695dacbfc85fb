-- What the verbs are made of. Only the owner calls these, and always from
-- a verb, whose search_path and planner settings hold here too: a setting of
-- their own would be made and unmade at each call. Those in SQL are single
-- expressions that the server puts in the place of the call, for which they must
-- be as STABLE as what they are made of; all else is plpgsql, which keeps its
-- plans, while a function in SQL that is called is planned at each call. A
-- condition with a query in it costs a whole statement each time, whatever its
-- other half says, so that queries stand by themselves.
--
-- The clock is clock_timestamp(), never now(): it is read after the locks are
-- held. Instants stay on the server; durations cross in microseconds.

-- How long this transaction waits for locks, for how long it may stay open with nothing
-- to do while others wait for it, and that it is as durable as the server can make it,
-- whatever the session or the role is set to: on disk, and on the standbys that the
-- server waits for. If that wait is cancelled the commit stands and the server
-- warns, so that warnings have to arrive. Transaction-local, so that it works behind a
-- pooler; each is set only where it has to be.
CREATE FUNCTION {schema}._prepare(p_wait_ms integer) RETURNS boolean
LANGUAGE sql AS $$
    SELECT (p_wait_ms <= 0 OR set_config('lock_timeout', p_wait_ms::text, true) IS NOT NULL)
       AND (current_setting('idle_in_transaction_session_timeout') <> '0'
            OR set_config('idle_in_transaction_session_timeout', '5s', true) IS NOT NULL)
       AND (current_setting('synchronous_commit') IN ('on', 'remote_apply')
            OR set_config('synchronous_commit', 'on', true) IS NOT NULL)
       AND (current_setting('client_min_messages') <> 'error'
            OR set_config('client_min_messages', 'warning', true) IS NOT NULL)
$$;

-- Lets a transaction that changed nothing wait for the disk and the standbys as one that
-- did: what it found may be what an earlier attempt wrote whose wait was cancelled. An
-- empty message in the log is enough for that; the number of a transaction is not.
CREATE FUNCTION {schema}._wait_as_a_write() RETURNS boolean
LANGUAGE sql AS $$
    SELECT pg_logical_emit_message(true, 'tenure', '') IS NOT NULL
$$;

-- Refuses what could never be right, in words.
CREATE FUNCTION {schema}._refuse(p_why text) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '%', p_why USING ERRCODE = '22023';
END $$;

-- Refuses a name that is not allowed. One that is missing is refused by its
-- column.
CREATE FUNCTION {schema}._check_name(p_what text, p_name text) RETURNS boolean
LANGUAGE sql AS $$
    SELECT coalesce({schema}._is_name(p_name), true) OR {schema}._refuse(p_what
        || ' has 1 to 200 bytes, no control characters, and no space at either end')
$$;

CREATE FUNCTION {schema}._check_ttl(p_ttl_us bigint) RETURNS boolean
LANGUAGE sql AS $$
    SELECT coalesce(p_ttl_us > 0, false)
        OR {schema}._refuse('the ttl is a positive number of microseconds')
$$;

-- The elections at hand, each with up to two figures and its place: for what is
-- done to all of them by one statement.
--
-- What is joined to them is looked up in a LATERAL query that OFFSET 0 keeps as
-- it is written: for each item, by the whole key. A plan made while the table is
-- empty would take reading all of the namespace for each item to cost the same,
-- and the session would go on to do so with ten thousand elections in it.
CREATE FUNCTION {schema}._items(
    p_names text[], p_priorities integer[] DEFAULT NULL, p_numbers bigint[] DEFAULT NULL
) RETURNS TABLE (name text, priority integer, number bigint, ord bigint)
LANGUAGE sql STABLE AS $$
    SELECT t.* FROM unnest(p_names, p_priorities, p_numbers)
        WITH ORDINALITY AS t(name, priority, number, ord)
$$;

-- What is locked to change anything in a namespace. Locks of this kind are of
-- the whole database: the schema is part of it.
CREATE FUNCTION {schema}._lock(p_ns text) RETURNS bigint
LANGUAGE sql STABLE AS $$
    SELECT hashtextextended({channel} || E'\t' || p_ns, 0)
$$;

-- Transitions of one namespace happen one after the other from here on, so that
-- nothing below can deadlock. The lock is let go when what was written is seen.
CREATE FUNCTION {schema}._enter(p_ns text, p_wait_ms integer) RETURNS boolean
LANGUAGE sql AS $$
    SELECT CASE WHEN {schema}._prepare(p_wait_ms)
        THEN pg_advisory_xact_lock({schema}._lock(p_ns)) IS NOT NULL END
$$;

CREATE FUNCTION {schema}._ms(p_at timestamptz) RETURNS bigint
LANGUAGE sql STABLE AS $$
    SELECT floor(date_part('epoch', p_at) * 1000)::bigint
$$;

CREATE FUNCTION {schema}._us(p_span interval) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT greatest(0, floor(date_part('epoch', p_span) * 1000000))::bigint
$$;

CREATE FUNCTION {schema}._after(p_at timestamptz, p_us bigint) RETURNS timestamptz
LANGUAGE sql STABLE AS $$
    SELECT p_at + p_us * interval '1 microsecond'
$$;

-- The hints that entries amount to, for listeners, a line for each: a letter and
-- its words, with tabs between, which no name can hold. An election that is won anew
-- by its last holder, as the next entry tells, is not vacant.
CREATE FUNCTION {schema}._hints(p_entries {schema}.entry[]) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    v_e entry;
    v_before entry;
    v_hint text;
    v_hints text := '';
BEGIN
    FOREACH v_e IN ARRAY p_entries LOOP
        IF v_e.kind = 'elected' AND v_before.kind = 'released'
           AND v_e.election = v_before.election THEN
            v_hint := NULL;
        END IF;
        v_hints := v_hints || coalesce(v_hint, '');
        v_hint := CASE
            WHEN v_e.kind = 'released'
                THEN E'\nv\t' || v_e.election || coalesce(E'\t' || v_e.heir, '')
            WHEN v_e.kind IN ('elected', 'step-down asked', 'paused', 'resumed')
                THEN E'\ne\t' || v_e.election
            WHEN v_e.kind IN ('left', 'ended') THEN E'\ng\t' || v_e.life END;
        v_before := v_e;
    END LOOP;
    RETURN v_hints || coalesce(v_hint, '');
END $$;

-- Writes entries, tells those who listen, forgets what is too old, and says
-- where the journal stands. The caller has entered. Entries that name no election
-- tell the same of each given apart, which are more than hints are given for.
CREATE FUNCTION {schema}._tell(
    p_ns text, p_at timestamptz, p_entries {schema}.entry[], p_elections text[] DEFAULT NULL
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    v_count integer := cardinality(p_entries) * coalesce(cardinality(p_elections), 1);
BEGIN
    IF coalesce(v_count, 0) = 0 THEN RETURN NULL; END IF;
    -- One that might be too long (8,000 bytes, when each name has 200) says "look".
    RETURN _write(p_ns, p_at, v_count, p_entries, p_elections,
        CASE WHEN v_count > 16 THEN E'\na' ELSE _hints(p_entries) END);
END $$;

-- How full the server's queue of notifications is, from 0 to 1. Asking also lets the
-- server forget what every listener has read, which nothing else does once it is full.
-- It costs less than a microsecond, so that each transition asks.
CREATE FUNCTION {schema}._queue_usage() RETURNS double precision
LANGUAGE sql AS $$
    SELECT pg_notification_queue_usage()
$$;

-- The same, for a caller that knows how many entries these are and what they hint at.
--
-- One session that listens to anything and is idle in a transaction keeps the queue from
-- being emptied, and a commit that finds it full fails: with it the election. So no
-- notification is sent from when half of it is taken. The first transition that is silent says so
-- to those who listen, if there is room to be sure of; all others find out when they look.
CREATE FUNCTION {schema}._write(
    p_ns text, p_at timestamptz, p_count integer, p_entries {schema}.entry[],
    p_elections text[], p_hints text
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    v_usage double precision := _queue_usage();
    v_last bigint;
    v_trim_at bigint;
    v_quiet_from bigint;
    v_told boolean;
    v_keep bigint;
BEGIN
    UPDATE namespaces n SET seq = n.seq + p_count,
            quiet_from = CASE WHEN v_usage >= 0.5
                THEN coalesce(n.quiet_from, n.seq + p_count) END
        WHERE n.ns = p_ns
        RETURNING n.seq, n.trim_at, n.quiet_from INTO v_last, v_trim_at, v_quiet_from;
    IF NOT FOUND THEN
        INSERT INTO namespaces (ns, seq, quiet_from)
            VALUES (p_ns, p_count, CASE WHEN v_usage >= 0.5 THEN p_count END)
            RETURNING seq, trim_at, quiet_from INTO v_last, v_trim_at, v_quiet_from;
    END IF;
    INSERT INTO told (ns, seq, count, at, over, entries, elections)
        VALUES (p_ns, v_last, p_count, p_at,
            CASE WHEN p_entries[1].kind IN ('left', 'ended') THEN p_entries[1].life END,
            p_entries, p_elections);

    v_told := CASE WHEN v_quiet_from IS NULL OR (v_quiet_from = v_last AND v_usage < 0.9)
        THEN pg_notify({channel}, p_ns || E'\n' || v_last || p_hints
            || CASE WHEN v_quiet_from IS NULL THEN '' ELSE E'\nq' END) IS NOT NULL END;

    -- What is no longer kept is cut off a tenth late, so that not every transition
    -- pays for it.
    IF v_last >= v_trim_at THEN
        SELECT s.journal_keep INTO v_keep FROM settings s;
        UPDATE namespaces n
            SET trimmed = greatest(n.trimmed, v_last - v_keep), trim_at = v_last + 1 + v_keep / 10
            WHERE n.ns = p_ns;
        DELETE FROM told t WHERE t.ns = p_ns AND t.seq <= v_last - v_keep;
    END IF;
    RETURN v_last;
END $$;

-- Who is next in an election: the successor named if it is there to take over, or
-- else the preferred candidate; never the life that holds it. And for how long that is so:
-- as long as the successor is waited for, or p_us.
CREATE FUNCTION {schema}._heir(
    p_ns text, p_now timestamptz, p_election text, p_life uuid,
    p_successor text, p_successor_us bigint, p_us bigint
) RETURNS TABLE (member text, life uuid, takes_over boolean, us bigint)
LANGUAGE sql STABLE AS $$
    SELECT c.member, c.life, m.takes_over,
           CASE WHEN c.member = p_successor THEN p_successor_us ELSE p_us END
    FROM {schema}.candidates c
    JOIN {schema}.members m ON m.ns = c.ns AND m.id = c.member AND m.life = c.life
    WHERE c.ns = p_ns AND c.election = p_election AND c.priority > 0
      AND c.life <> p_life AND m.expires_at > p_now AND NOT m.condemned
    ORDER BY coalesce(c.member = p_successor, false) DESC, -c.priority, c.since, c.member
    LIMIT 1
$$;

-- Makes an election vacant that a life holds under exactly this number, and keeps it for
-- an heir if there is one. Says whether it did. With p_lives, only if the life is not over:
-- what a life held that was ended is no longer its own to give back.
CREATE FUNCTION {schema}._empty(
    p_ns text, p_now timestamptz, p_name text, p_number bigint, p_member text, p_life uuid,
    p_lives boolean, p_heir text, p_us bigint
) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    UPDATE elections e
        SET holder = NULL, life = NULL, elected_at = NULL, priority = NULL, changed_at = p_now,
            asked = false, asked_reason = NULL, asked_by = NULL, asked_to = NULL,
            heir = p_heir,
            heir_until = CASE WHEN p_heir IS NOT NULL THEN _after(p_now, p_us) END
        WHERE e.ns = p_ns AND e.name = p_name AND (e.life = p_life) IS TRUE
          AND e.holder = p_member AND e.number = p_number
          AND (NOT p_lives OR EXISTS (SELECT FROM members o
               WHERE o.ns = p_ns AND o.id = p_member AND o.life = p_life));
    RETURN FOUND;
END $$;

-- Makes elections vacant that a life holds under exactly these numbers, ends its
-- candidacies there, and keeps each vacancy for its heir. Says where the journal
-- stands.
CREATE FUNCTION {schema}._vacate(
    p_ns text, p_now timestamptz, p_member text, p_life uuid, p_names text[], p_numbers bigint[],
    p_causes text[], p_successors text[], p_successor_us bigint[], p_grace_us bigint
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    v_heir text;
    v_us bigint;
    v_heirs text[];
    v_given integer := 0;
    v_entries entry[];
BEGIN
    FOR i IN 1 .. coalesce(cardinality(p_names), 0) LOOP
        CONTINUE WHEN p_numbers[i] IS NULL;
        SELECT h.member, h.us INTO v_heir, v_us FROM _heir(p_ns, p_now, p_names[i], p_life,
            p_successors[i], p_successor_us[i], p_grace_us) h;
        IF (v_us > 0) IS NOT TRUE THEN
            v_heir := NULL;
        END IF;
        CONTINUE WHEN NOT _empty(p_ns, p_now, p_names[i], p_numbers[i], p_member, p_life, true,
            v_heir, v_us);
        DELETE FROM candidates c WHERE c.ns = p_ns AND c.election = p_names[i]
            AND c.member = p_member AND (c.life = p_life) IS TRUE;
        v_given := v_given + 1;
        IF v_heir IS NOT NULL THEN
            v_heirs := v_heirs || v_heir;
        END IF;
        v_entries := v_entries || _new_entry('released', p_names[i], p_numbers[i], p_member,
            p_life, cause => coalesce(p_causes[i], 'resigned'), heir => v_heir);
    END LOOP;
    IF v_entries IS NULL THEN RETURN NULL; END IF;

    UPDATE members m SET holds = m.holds - v_given
        WHERE m.ns = p_ns AND m.id = p_member AND m.life = p_life;
    PERFORM _tell_heirs(p_ns, v_heirs);
    RETURN _tell(p_ns, p_now, v_entries);
END $$;

-- Elects the heir of a term in the same step in which the term is given up, and says
-- whether it did. Not if there is none, or it is not one to look at once, or the
-- election is paused, or a fence holds the row: then the vacancy is to be kept for it.
-- The heir has the term for p_us, or for as long as a successor who was named is waited
-- for.
--
-- One function for one term, without a list in it: this is what all candidates wait for.
CREATE FUNCTION {schema}._hand_over(
    p_ns text, p_now timestamptz, p_member text, p_life uuid, p_name text, p_number bigint,
    p_cause text, p_successor text, p_successor_us bigint, p_us bigint
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    v_heir text;
    v_heir_life uuid;
    v_number bigint;
    v_ours boolean := false;
    v_here boolean;
    v_told bigint;
BEGIN
    LOOP
        -- A row that was never locked is changed at once. Any other may be fenced:
        -- that is found out without waiting for it. (It may be locked between these
        -- two, and then this waits as long as it may.)
        UPDATE elections e
            SET number = greatest(e.number + 1 + ((s.era - e.era)::bigint << 16), s.floor),
                era = s.era, won_by = h.life, won_nonce = 0, handed = true,
                holder = h.member, life = h.life, elected_at = p_now, priority = NULL,
                changed_at = p_now, heir = NULL, heir_until = _after(p_now, h.us),
                asked = false, asked_reason = NULL, asked_by = NULL, asked_to = NULL
            FROM settings s, members o,
                 _heir(p_ns, p_now, p_name, p_life, p_successor, p_successor_us, p_us) h
            WHERE e.ns = p_ns AND e.name = p_name AND (e.life = p_life) IS TRUE
              AND e.holder = p_member AND e.number = p_number AND NOT e.paused
              AND (e.xmax = 0 OR v_ours)
              AND o.ns = p_ns AND o.id = p_member AND o.life = p_life
              AND s.only_row AND s.started_at = pg_postmaster_start_time()
              AND s.file = pg_relation_filepath(s.tableoid)
              AND h.takes_over AND h.us > 0
            RETURNING e.number, h.member, h.life INTO v_number, v_heir, v_heir_life;
        EXIT WHEN v_number IS NOT NULL OR v_ours;
        SELECT true, s.started_at = pg_postmaster_start_time()
               AND s.file = pg_relation_filepath(s.tableoid) INTO v_ours, v_here
            FROM elections f, settings s
            WHERE f.ns = p_ns AND f.name = p_name AND (f.life = p_life) IS TRUE
              AND f.holder = p_member AND f.number = p_number AND NOT f.paused
              AND s.only_row
            FOR UPDATE OF f SKIP LOCKED;
        EXIT WHEN v_ours IS NULL;
        IF v_here IS NOT TRUE THEN PERFORM _era(); END IF;
    END LOOP;
    IF v_number IS NULL THEN RETURN false; END IF;

    DELETE FROM candidates c WHERE c.ns = p_ns AND c.election = p_name
        AND c.member = p_member AND (c.life = p_life) IS TRUE;
    UPDATE members m SET holds = m.holds - 1
        WHERE m.ns = p_ns AND m.id = p_member AND m.life = p_life;
    UPDATE members m SET holds = m.holds + 1 WHERE m.ns = p_ns AND m.id = v_heir;
    v_told := _write(p_ns, p_now, 2, ARRAY[
            _new_entry('released', p_name, p_number, p_member, p_life,
                cause => coalesce(p_cause, 'resigned')),
            _new_entry('elected', p_name, v_number, v_heir, v_heir_life)], NULL,
        E'\nh\t' || p_name || E'\t' || v_heir || E'\ne\t' || p_name);
    RETURN true;
END $$;

-- Ends a candidacy in each of these elections, and what was kept for it.
CREATE FUNCTION {schema}._withdraw(p_ns text, p_member text, p_life uuid, p_names text[])
RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    FOR i IN 1 .. cardinality(p_names) LOOP
        DELETE FROM candidates c WHERE c.ns = p_ns AND c.election = p_names[i]
            AND c.member = p_member AND (c.life = p_life) IS TRUE;
        IF FOUND THEN
            UPDATE elections e SET heir = NULL, heir_until = NULL
                WHERE e.ns = p_ns AND e.name = p_names[i] AND e.heir = p_member;
        ELSE
            UPDATE elections e SET priority = NULL
                WHERE e.ns = p_ns AND e.name = p_names[i] AND (e.life = p_life) IS TRUE;
        END IF;
    END LOOP;
    RETURN true;
END $$;

-- Drops elections that were never won, have no candidate and are not paused (H27).
CREATE FUNCTION {schema}._forget(p_ns text, p_names text[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM elections e
    WHERE e.ns = p_ns AND e.name = ANY (p_names) AND e.number = 0 AND NOT e.paused
      AND NOT EXISTS (SELECT FROM candidates c WHERE c.ns = e.ns AND c.election = e.name);
END $$;

-- Clears away candidacies and names of a life that is over, so many of each at most, and
-- says whether none is left.
CREATE FUNCTION {schema}._sweep(p_ns text, p_member text, p_life uuid, p_most integer)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    v_stood text[] := ARRAY(SELECT c.election FROM candidates c
        WHERE c.life = p_life AND c.ns = p_ns LIMIT p_most);
    v_done boolean := _sweep_names(p_ns, p_life, p_most);
    v_withdrawn boolean;
BEGIN
    IF cardinality(v_stood) > 0 THEN
        v_withdrawn := _withdraw(p_ns, p_member, p_life, v_stood);
        PERFORM _forget(p_ns, v_stood);
    END IF;
    RETURN v_done AND cardinality(v_stood) < p_most;
END $$;

-- The same for one of the lives that left more behind than their end cleared away.
CREATE FUNCTION {schema}._sweep_remains(p_ns text, p_most integer) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_old remains%ROWTYPE;
BEGIN
    SELECT * INTO v_old FROM remains r WHERE r.ns = p_ns LIMIT 1;
    IF NOT FOUND OR NOT _sweep(p_ns, v_old.member, v_old.life, p_most) THEN RETURN; END IF;
    DELETE FROM remains r WHERE r.ns = p_ns AND r.life = v_old.life;
END $$;

-- Ends a member whose row is gone already, at the same cost whatever it held (rule
-- M5). Its terms, candidacies and names are void with its life: no answer shows them any
-- more. A term is written off by _settle() when a member bids for it; candidacies and
-- names are cleared away a few at a time.
CREATE FUNCTION {schema}._end(
    p_ns text, p_now timestamptz, p_member text, p_life uuid, p_cause text
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_kind text := CASE p_cause WHEN 'left' THEN 'left' ELSE 'ended' END;
BEGIN
    PERFORM _tell(p_ns, p_now, ARRAY[_new_entry(v_kind, member => p_member, life => p_life,
        cause => CASE v_kind WHEN 'ended' THEN p_cause END)]);
    DELETE FROM profiles p WHERE p.ns = p_ns AND p.id = p_member;
    IF NOT _sweep(p_ns, p_member, p_life, 16) THEN
        INSERT INTO remains (ns, life, member) VALUES (p_ns, p_life, p_member);
    END IF;
END $$;

-- Ends a member whose ttl has run out, and says whether it did.
--
-- The rule that closes the race with a heartbeat in flight (M2): whether the ttl has
-- run out is judged while the row's lock is held, and the row is deleted under that
-- lock. A heartbeat that comes later finds no row and is answered "ended". A row that
-- another transaction holds is left alone: its heartbeat may yet be committed, and
-- waiting for it here would hold up the whole namespace.
CREATE FUNCTION {schema}._expire(p_ns text, p_member text) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    v_life uuid;
    v_condemned boolean;
BEGIN
    SELECT m.life, m.condemned INTO v_life, v_condemned FROM members m
        WHERE m.ns = p_ns AND m.id = p_member AND m.expires_at <= clock_timestamp()
        FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN RETURN false; END IF;
    DELETE FROM members m WHERE m.ns = p_ns AND m.id = p_member;
    PERFORM _end(p_ns, clock_timestamp(), p_member, v_life,
        CASE WHEN v_condemned THEN 'evicted' ELSE 'expired' END);
    RETURN true;
END $$;

-- Clears away a holder that is no longer in the way, and keeps the vacancy for its heir.
-- Its ttl has run out (p_expired): nothing is taken from an expired member before it is
-- ended (M2), by the ttl it wrote itself (M3). Its life is over (NULL): the term is written
-- off, now that a member bids for it (M5). Or it lives (false) and did not take on in time
-- what was handed over to it. Returns what is to be told; nothing if another transaction
-- has the member's row. The cause is the life's, for as long as the journal has it.
CREATE FUNCTION {schema}._settle(
    p_ns text, p_now timestamptz, p_name text, p_number bigint, p_holder text, p_life uuid,
    p_expired boolean, p_grace_us bigint
) RETURNS {schema}.entry LANGUAGE plpgsql AS $$
DECLARE
    v_cause text;
    v_heir text;
    v_done boolean;
BEGIN
    IF NOT p_expired THEN
        v_cause := 'abandoned';
        DELETE FROM candidates c WHERE c.ns = p_ns AND c.election = p_name
            AND c.member = p_holder AND (c.life = p_life) IS TRUE;
        UPDATE members m SET holds = m.holds - 1
            WHERE m.ns = p_ns AND m.id = p_holder AND m.life = p_life;
    ELSE
        -- Not in one condition: of a life that is over, NULL AND x looks at x, which would
        -- end a newer life of the same id.
        IF p_expired THEN
            IF NOT _expire(p_ns, p_holder) THEN RETURN NULL; END IF;
        END IF;
        SELECT CASE t.entries[1].kind WHEN 'left' THEN 'left' ELSE t.entries[1].cause END
            INTO v_cause FROM told t WHERE t.ns = p_ns AND t.over = p_life;
    END IF;
    IF p_grace_us > 0 THEN
        SELECT h.member INTO v_heir
            FROM _heir(p_ns, p_now, p_name, p_life, NULL, NULL, p_grace_us) h;
    END IF;
    v_done := _empty(p_ns, p_now, p_name, p_number, p_holder, p_life, false, v_heir, p_grace_us);
    RETURN _new_entry('released', p_name, p_number, p_holder, p_life,
        cause => coalesce(v_cause, 'expired'), heir => v_heir);
END $$;

-- Tells members that something is kept for them: the heirs named by these entries.
CREATE FUNCTION {schema}._tell_heirs(p_ns text, p_heirs text[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_heir text;
    v_kept bigint;
BEGIN
    FOR v_heir, v_kept IN SELECT h.id, count(*) FROM unnest(p_heirs) AS h(id) GROUP BY 1 LOOP
        UPDATE members m SET attention = m.attention + v_kept WHERE m.ns = p_ns AND m.id = v_heir;
    END LOOP;
END $$;
