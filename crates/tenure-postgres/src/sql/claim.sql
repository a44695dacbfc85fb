-- The verbs of candidates and holders: claim and release.

-- Stands for elections and wins those that are free. A row for each bid, with
-- its place among them: "won" with the term; "held" with the view; "fenced" with the
-- view, where it would have been won but for an open transaction that fenced
-- the last term. One row "ended" or "superseded" if the caller is no member.
CREATE FUNCTION {schema}.claim(
    p_ns text, p_member text, p_life uuid, p_ttl_us bigint,
    p_elections text[], p_priorities integer[], p_nonces bigint[],
    p_grace_us bigint DEFAULT 0, p_wait_ms integer DEFAULT 0, p_seen bigint DEFAULT 0,
    p_told bigint DEFAULT 0
) RETURNS TABLE (bid integer, outcome text, number bigint, elected_ms bigint, view jsonb)
LANGUAGE plpgsql SECURITY DEFINER {planned} AS $$
#variable_conflict use_column
DECLARE
    v_all record := claims(p_ns, p_member, p_life, p_ttl_us, p_elections, p_priorities, p_nonces,
        p_grace_us, p_wait_ms, p_seen, p_told);
BEGIN
    IF v_all.outcome IS NOT NULL THEN
        RETURN QUERY SELECT 0, v_all.outcome, NULL::bigint, NULL::bigint, NULL::jsonb;
    ELSE
        RETURN QUERY SELECT t.ord::integer,
                CASE WHEN t.number IS NOT NULL THEN 'won'
                     WHEN t.name = ANY (v_all.fenced) THEN 'fenced' ELSE 'held' END,
                t.number, CASE WHEN t.number IS NOT NULL THEN t.elected END, v_all.views[t.ord]
            FROM unnest(p_elections, v_all.numbers, v_all.elected)
                 WITH ORDINALITY AS t(name, number, elected, ord);
    END IF;
END $$;

-- The same in one row, for programs that claim thousands: the numbers of what was
-- won and when it was, and the views of what was not, each by the places of the
-- bids; and the names of what is fenced. Of a caller that is no member only the outcome.
CREATE FUNCTION {schema}.claims(
    p_ns text, p_member text, p_life uuid, p_ttl_us bigint,
    p_elections text[], p_priorities integer[], p_nonces bigint[],
    p_grace_us bigint DEFAULT 0, p_wait_ms integer DEFAULT 0, p_seen bigint DEFAULT 0,
    p_told bigint DEFAULT 0,
    OUT outcome text, OUT numbers bigint[], OUT elected bigint[], OUT fenced text[],
    OUT views jsonb[]
) LANGUAGE plpgsql SECURITY DEFINER {planned} AS $$
DECLARE
    v_in boolean := CASE WHEN _check_ttl(p_ttl_us) AND _prepare(p_wait_ms)
            AND _check_bids(p_elections, p_priorities, p_nonces)
        THEN pg_try_advisory_xact_lock(_lock(p_ns)) END;
    v_era integer;
    v_floor bigint;
    v_behind boolean;
    v_bids record;
    v_lost integer[];
    v_names text[];
    v_seen record;
BEGIN
    -- No caller waits for a lock to be told that nothing changed.
    IF NOT v_in AND NOT _is_quiet(p_ns, p_member, p_life, p_elections, p_priorities) THEN
        v_in := pg_advisory_xact_lock(_lock(p_ns)) IS NOT NULL;
    END IF;
    -- Once it has entered no other can end the caller: this is its moment.
    -- By clock_timestamp(), since the wait for the lock may have outlasted its ttl (M1). The
    -- era is known only to this start of the server and this file of the table: after another
    -- start, or a restore, _era() looks closer.
    SELECT CASE WHEN m.life IS DISTINCT FROM p_life THEN 'superseded'
                WHEN m.condemned OR m.expires_at <= clock_timestamp() THEN 'ended' END,
           CASE WHEN s.started_at = pg_postmaster_start_time()
                 AND s.file = pg_relation_filepath(s.tableoid) THEN s.era END,
           s.floor, n.seq < p_seen
        INTO outcome, v_era, v_floor, v_behind FROM members m, settings s, namespaces n
        WHERE m.ns = p_ns AND m.id = p_member AND n.ns = p_ns;
    IF NOT FOUND OR outcome IS NOT NULL THEN
        outcome := coalesce(outcome, 'ended');
        RETURN;
    END IF;
    IF v_in THEN
        -- No number is given out before it is sure to be above those forgotten.
        IF v_behind THEN PERFORM _rolled_back(p_ns, p_seen, p_told); END IF;
        IF v_era IS NULL OR v_behind THEN
            SELECT e.era, e.floor INTO v_era, v_floor FROM _era() e;
        END IF;
        IF cardinality(p_elections) > 1 THEN
            v_bids := _bid_many(p_ns, p_member, p_life, p_ttl_us, clock_timestamp(), v_era,
                v_floor, p_elections, p_priorities, p_nonces, p_grace_us);
        ELSE
            v_bids := _bid(p_ns, p_member, p_life, p_ttl_us, clock_timestamp(), v_era, v_floor,
                p_elections, p_priorities, p_nonces, p_grace_us, NULL, NULL, 0, NULL);
        END IF;
        numbers := v_bids.numbers;
        elected := v_bids.elected;
        fenced := v_bids.fenced;
    END IF;
    FOR i IN 1 .. coalesce(cardinality(p_elections), 0) LOOP
        IF numbers[i] IS NULL THEN
            v_lost := v_lost || i;
            v_names := v_names || p_elections[i];
        END IF;
    END LOOP;
    IF v_lost IS NOT NULL THEN
        views := array_fill(NULL::jsonb, ARRAY[cardinality(p_elections)]);
        FOR v_seen IN SELECT v.ord, v.view
            FROM _views(p_ns, v_names, p_member, p_life, false, clock_timestamp()) v
        LOOP
            views[v_lost[v_seen.ord]] := v_seen.view;
        END LOOP;
    END IF;
END $$;

-- Refuses bids that can never be right: each has a priority and a nonce, since
-- a term without one could not be told to its winner.
CREATE FUNCTION {schema}._check_bids(
    p_elections text[], p_priorities integer[], p_nonces bigint[]
) RETURNS boolean LANGUAGE sql AS $$
    SELECT (coalesce(cardinality(p_nonces), 0) >= coalesce(cardinality(p_elections), 0)
            AND array_position(p_nonces, NULL) IS NULL
            OR {schema}._refuse('each bid has a nonce'))
       AND (coalesce(0 <= ALL (p_priorities) AND 65535 >= ALL (p_priorities), true)
            OR {schema}._refuse('a priority is 0 to 65535'))
$$;

-- Whether there is nothing to do: the caller stands everywhere already, and
-- another who lives holds each. Then a claim locks nothing and writes nothing.
CREATE FUNCTION {schema}._is_quiet(
    p_ns text, p_member text, p_life uuid, p_elections text[], p_priorities integer[]
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    v_holder text;
    v_life uuid;
    v_until timestamptz;
BEGIN
    FOR i IN 1 .. coalesce(cardinality(p_elections), 0) LOOP
        SELECT e.holder, e.life, e.heir_until INTO v_holder, v_life, v_until
            FROM elections e WHERE e.ns = p_ns AND e.name = p_elections[i];
        IF (v_life <> p_life) IS NOT TRUE OR v_until <= clock_timestamp() THEN
            RETURN false;
        END IF;
        PERFORM 1 FROM members m
            JOIN candidates c ON c.ns = p_ns AND c.election = p_elections[i]
                AND c.member = p_member AND (c.life = p_life) IS TRUE
                AND c.priority = p_priorities[i]
            WHERE m.ns = p_ns AND m.id = v_holder AND m.life = v_life
              AND m.expires_at > clock_timestamp();
        IF NOT FOUND THEN RETURN false; END IF;
    END LOOP;
    RETURN true;
END $$;

-- Refuses a cause that is not one of the protocol's.
CREATE FUNCTION {schema}._check_causes(p_causes text[]) RETURNS boolean
LANGUAGE sql AS $$
    SELECT coalesce(array_remove(p_causes, NULL) <@ ARRAY['expired', 'proven dead', 'superseded',
            'evicted', 'resigned', 'stepped down', 'abandoned', 'left'], true)
        OR {schema}._refuse('a cause is one of the protocol''s')
$$;

-- What release() does. The owner calls this itself, from a session that is set up as
-- a verb is, which spares making and unmaking the settings.
CREATE FUNCTION {schema}._release(
    p_ns text, p_member text, p_life uuid, p_elections text[], p_numbers bigint[],
    p_causes text[], p_successors text[], p_successor_us bigint[], p_grace_us bigint,
    p_wait_ms integer, p_hand_over_us bigint, p_seen bigint, p_told bigint
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    v_given integer := 0;
    v_left text[];
    v_told bigint;
    v_ready boolean := _enter(p_ns, p_wait_ms);
BEGIN
    -- A member that has seen more than the journal has says so before a number is given
    -- out (rule M6).
    IF p_hand_over_us > 0 AND EXISTS (SELECT FROM namespaces n, members o
            WHERE n.ns = p_ns AND n.seq < p_seen
              AND o.ns = p_ns AND o.id = p_member AND o.life = p_life) THEN
        PERFORM _rolled_back(p_ns, p_seen, p_told);
    END IF;
    -- What is handed over is told term by term: no more than hints are given for.
    IF p_hand_over_us > 0 AND cardinality(p_elections) <= 8 THEN
        FOR i IN 1 .. cardinality(p_elections) LOOP
            v_given := v_given + CASE WHEN p_numbers[i] IS NOT NULL AND _hand_over(p_ns,
                clock_timestamp(), p_member, p_life, p_elections[i], p_numbers[i], p_causes[i],
                p_successors[i], p_successor_us[i], p_hand_over_us) THEN 1 ELSE 0 END;
        END LOOP;
        IF v_given = cardinality(p_elections) THEN RETURN v_ready; END IF;
    END IF;
    v_told := _vacate(p_ns, clock_timestamp(), p_member, p_life, p_elections, p_numbers, p_causes,
        p_successors, p_successor_us, p_grace_us);
    IF array_position(p_numbers, NULL) IS NOT NULL
       OR coalesce(cardinality(p_numbers), 0) < cardinality(p_elections) THEN
        SELECT array_agg(t.name) INTO v_left FROM _items(p_elections, NULL, p_numbers) t
            WHERE t.number IS NULL;
        v_ready := _withdraw(p_ns, p_member, p_life, v_left);
        PERFORM _forget(p_ns, v_left);
    END IF;
    RETURN CASE WHEN v_told IS NULL AND v_given = 0 THEN _wait_as_a_write() ELSE v_ready END;
END $$;

-- Ends candidacies, and terms that are held by exactly this life under exactly
-- this number (rule E1). A NULL number ends the candidacy alone. With
-- p_hand_over_us, the next candidate that joined with p_takes_over is elected at once:
-- it has the term for so long, and for good once it names it in a heartbeat or
-- claims it.
CREATE FUNCTION {schema}.release(
    p_ns text, p_member text, p_life uuid, p_elections text[], p_numbers bigint[],
    p_causes text[] DEFAULT NULL, p_successors text[] DEFAULT NULL,
    p_successor_us bigint[] DEFAULT NULL, p_grace_us bigint DEFAULT 0,
    p_wait_ms integer DEFAULT 0, p_hand_over_us bigint DEFAULT 0, p_seen bigint DEFAULT 0,
    p_told bigint DEFAULT 0
) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER {planned} AS $$
DECLARE
    v_done boolean := _check_causes(p_causes) AND _release(p_ns, p_member, p_life, p_elections,
        p_numbers, p_causes, p_successors, p_successor_us, p_grace_us, p_wait_ms, p_hand_over_us,
        p_seen, p_told);
BEGIN
END $$;
