-- The verbs of candidates and holders: claim and release.

-- Stands for elections and wins those that are free. A row for each bid, with
-- its place among them: "won" with the term; "held" with the view; "fenced" with the
-- view, where it would have been won but for an open transaction that fenced
-- the last term. One row "ended" or "superseded" if the caller is no member.
CREATE FUNCTION {schema}.claim(
    p_ns text, p_member text, p_life uuid, p_ttl_us bigint,
    p_elections text[], p_priorities integer[], p_nonces bigint[],
    p_grace_us bigint DEFAULT 0, p_wait_ms integer DEFAULT 0, p_seen bigint DEFAULT 0
) RETURNS TABLE (bid integer, outcome text, number bigint, elected_ms bigint, view jsonb)
LANGUAGE plpgsql SECURITY DEFINER {planned} AS $$
#variable_conflict use_column
DECLARE
    v_all record := claims(p_ns, p_member, p_life, p_ttl_us, p_elections, p_priorities, p_nonces,
        p_grace_us, p_wait_ms, p_seen);
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
-- bids; and the names of what is fenced. Of one who is no member only the outcome.
CREATE FUNCTION {schema}.claims(
    p_ns text, p_member text, p_life uuid, p_ttl_us bigint,
    p_elections text[], p_priorities integer[], p_nonces bigint[],
    p_grace_us bigint DEFAULT 0, p_wait_ms integer DEFAULT 0, p_seen bigint DEFAULT 0,
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
    -- Nobody waits just to hear that nothing changed.
    IF NOT v_in AND NOT _is_quiet(p_ns, p_member, p_life, p_elections, p_priorities) THEN
        v_in := pg_advisory_xact_lock(_lock(p_ns)) IS NOT NULL;
    END IF;
    -- Once it has entered nobody else can end the caller: this is its moment.
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
        IF v_behind THEN PERFORM _rolled_back(p_ns, p_seen); END IF;
        IF v_era IS NULL OR v_behind THEN
            SELECT e.era, e.floor INTO v_era, v_floor FROM _era() e;
        END IF;
        v_bids := _bid(p_ns, p_member, p_life, p_ttl_us, clock_timestamp(), v_era, v_floor,
            p_elections, p_priorities, p_nonces, p_grace_us);
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
-- a term without one could not be told to whoever won it.
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

-- Makes what nobody ever stood for: the candidacies and, since nothing can be in
-- the way, the terms, ten thousand in one statement. Says which bids these were,
-- by their places, and what to tell.
CREATE FUNCTION {schema}._found(
    p_ns text, p_member text, p_life uuid, p_now timestamptz, p_era integer, p_floor bigint,
    p_names text[], p_priorities integer[], p_nonces bigint[],
    OUT made bigint[], OUT entries {schema}.entry[], OUT number bigint
) LANGUAGE plpgsql AS $$
BEGIN
    number := greatest(1 + (p_era::bigint << 16), p_floor);
    WITH new AS MATERIALIZED (
        SELECT DISTINCT ON (t.name) t.name, t.priority, t.number AS nonce, t.ord,
               CASE WHEN t.priority > 0 THEN p_life END AS life
        FROM _items(p_names, p_priorities, p_nonces) t
        LEFT JOIN LATERAL (
            SELECT e.name FROM elections e WHERE e.ns = p_ns AND e.name = t.name OFFSET 0) e ON true
        WHERE e.name IS NULL AND _check_name('an election''s name', t.name)
        ORDER BY t.name, t.ord
    ), made AS (
        INSERT INTO elections
            (ns, name, number, era, won_by, won_nonce, holder, life, elected_at, priority)
        SELECT p_ns, n.name,
               CASE WHEN n.life IS NULL THEN 0 ELSE _found.number END,
               CASE WHEN n.life IS NULL THEN 0 ELSE p_era END,
               n.life, CASE WHEN n.life IS NOT NULL THEN n.nonce END,
               CASE WHEN n.life IS NOT NULL THEN p_member END, n.life,
               CASE WHEN n.life IS NOT NULL THEN p_now END,
               CASE WHEN n.life IS NOT NULL THEN n.priority END
        FROM new n
    ), stood AS (
        INSERT INTO candidates (ns, election, member, life, priority, since)
        SELECT p_ns, n.name, p_member, p_life, n.priority, p_now FROM new n WHERE n.life IS NULL
    )
    SELECT array_agg(n.ord),
           array_agg(ROW('stood', n.name, NULL, p_member, p_life, n.priority, NULL, NULL, NULL,
                         NULL, NULL, NULL)::entry)
           || array_agg(ROW('elected', n.name, _found.number, p_member, p_life, NULL,
                            NULL, NULL, NULL, NULL, NULL, NULL)::entry)
              FILTER (WHERE n.life IS NOT NULL)
        INTO made, entries FROM new n;
END $$;

-- The same of many at one priority, if nobody ever stood for any of them: they are
-- not looked up one by one, and what is told of all is written once. Says their
-- number; or NULL, with nothing done, if one of them is there or is named twice.
CREATE FUNCTION {schema}._found_all(
    p_ns text, p_member text, p_life uuid, p_now timestamptz, p_era integer, p_floor bigint,
    p_names text[], p_priority integer, p_nonces bigint[]
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    v_number bigint := greatest(1 + (p_era::bigint << 16), p_floor);
    -- One look at all of them is faster than one at each.
    v_plain boolean := array_to_string(p_names, '') ~ '^[!-~]*$';
    v_told bigint;
BEGIN
    -- A claim that is made again and again must not write, to undo it each time.
    PERFORM 1 FROM elections e WHERE e.ns = p_ns AND e.name = p_names[1];
    IF FOUND THEN RETURN NULL; END IF;
    BEGIN
        INSERT INTO elections
            (ns, name, number, era, won_by, won_nonce, holder, life, elected_at, priority)
        SELECT p_ns, t.name, v_number, p_era, p_life, t.number, p_member, p_life, p_now, p_priority
        FROM _items(p_names, NULL, p_nonces) t
        WHERE v_plain AND octet_length(t.name) BETWEEN 1 AND 200
           OR _check_name('an election''s name', t.name);
    EXCEPTION WHEN unique_violation THEN RETURN NULL;
    END;
    v_told := _tell(p_ns, p_now, ARRAY[
        ROW('stood', NULL, NULL, p_member, p_life, p_priority, NULL, NULL, NULL, NULL, NULL, NULL),
        ROW('elected', NULL, v_number, p_member, p_life, NULL, NULL, NULL, NULL, NULL, NULL, NULL)
        ]::entry[], ARRAY(SELECT t.name FROM unnest(p_names) AS t(name) ORDER BY t.name));
    RETURN v_number;
END $$;

-- Bids for elections one after the other. Says the numbers of what the caller
-- holds by these bids and when it was elected, by their places, and what is fenced.
CREATE FUNCTION {schema}._bid(
    p_ns text, p_member text, p_life uuid, p_ttl_us bigint, p_now timestamptz, p_era integer,
    p_floor bigint, p_names text[], p_priorities integer[], p_nonces bigint[], p_grace_us bigint,
    OUT numbers bigint[], OUT elected bigint[], OUT fenced text[]
) LANGUAGE plpgsql AS $$
DECLARE
    v_now_ms bigint := _ms(p_now);
    v_count integer := coalesce(cardinality(p_names), 0);
    v_found record;
    v_made bigint[];
    v_new integer := 0;
    v_e record;
    v_entries entry[];
    v_told bigint;
    v_number bigint;
    v_won integer := 0;
    v_gave_up integer := 0;
    v_again boolean := false;
    v_expired boolean;
    v_void boolean;
    v_settled entry;
    v_heirs text[];
    v_handed boolean;
BEGIN
    numbers := array_fill(NULL::bigint, ARRAY[v_count]);
    elected := array_fill(v_now_ms, ARRAY[v_count]);
    IF v_count > 1 THEN
        -- So many that they are told without a hint for each.
        IF v_count > 8 AND cardinality(p_priorities) = v_count AND cardinality(p_nonces) = v_count
           AND p_priorities[1] > 0 AND p_priorities[1] = ALL (p_priorities) THEN
            v_number := _found_all(p_ns, p_member, p_life, p_now, p_era, p_floor, p_names,
                p_priorities[1], p_nonces);
        END IF;
        IF v_number IS NOT NULL THEN
            v_new := v_count;
        ELSE
            v_found := _found(p_ns, p_member, p_life, p_now, p_era, p_floor, p_names,
                p_priorities, p_nonces);
            v_made := v_found.made;
            v_new := coalesce(cardinality(v_made), 0);
            v_entries := v_found.entries;
            v_number := v_found.number;
        END IF;
        IF v_new = v_count AND 0 < ALL (p_priorities) THEN
            numbers := array_fill(v_number, ARRAY[v_count]);
            v_won := v_count;
        ELSE
            FOR i IN 1 .. v_new LOOP
                IF p_priorities[v_made[i]] > 0 THEN
                    numbers[v_made[i]] := v_number;
                    v_won := v_won + 1;
                END IF;
            END LOOP;
        END IF;
    END IF;
    IF v_new < v_count THEN
        FOR i IN 1 .. v_count LOOP
            CONTINUE WHEN i = ANY (v_made);
            SELECT e.*, coalesce(c.priority, CASE WHEN e.life = p_life THEN e.priority END) AS stands
                INTO v_e FROM elections e
                LEFT JOIN candidates c ON c.ns = p_ns AND c.election = p_names[i]
                    AND c.member = p_member AND (c.life = p_life) IS TRUE
                WHERE e.ns = p_ns AND e.name = p_names[i];
            IF NOT FOUND THEN
                -- A single bid, for what nobody ever stood for; or one that was
                -- forgotten with a member ended just now, who alone stood for it.
                v_found := _found(p_ns, p_member, p_life, p_now, p_era, p_floor, p_names[i:i],
                    p_priorities[i:i], p_nonces[i:i]);
                v_entries := v_entries || v_found.entries;
                IF p_priorities[i] > 0 THEN
                    numbers[i] := v_found.number;
                    v_won := v_won + 1;
                END IF;
                CONTINUE;
            END IF;

            -- What was handed over to the caller is taken on. It was won by no bid, so
            -- that any is answered with it, however late it comes.
            v_handed := v_e.handed AND v_e.life = p_life AND v_e.holder = p_member
                AND (v_e.heir_until > p_now) IS NOT FALSE AND p_priorities[i] > 0;

            -- What the nonce tells of a bid by the last winner (rule E2): it is
            -- not news, and answered from what stands.
            IF v_handed IS NOT TRUE AND v_e.won_by = p_life AND p_nonces[i] <= v_e.won_nonce THEN
                IF v_e.life = p_life AND v_e.holder = p_member AND p_nonces[i] = v_e.won_nonce
                   AND (v_e.heir_until > p_now) IS NOT FALSE THEN
                    numbers[i] := v_e.number;
                    elected[i] := _ms(v_e.elected_at);
                    v_again := true;
                    IF v_e.heir_until IS NOT NULL THEN
                        UPDATE elections e SET heir_until = NULL
                            WHERE e.ns = p_ns AND e.name = p_names[i];
                    END IF;
                END IF;
                CONTINUE;
            END IF;

            -- The candidacy stands from here on.
            IF v_e.stands IS DISTINCT FROM p_priorities[i] THEN
                IF v_e.life = p_life AND v_e.priority IS NOT NULL THEN
                    UPDATE elections e SET priority = p_priorities[i]
                        WHERE e.ns = p_ns AND e.name = p_names[i];
                ELSE
                    INSERT INTO candidates AS c (ns, election, member, life, priority, since)
                        VALUES (p_ns, p_names[i], p_member, p_life, p_priorities[i], p_now)
                        ON CONFLICT (ns, election, member) DO UPDATE
                        SET life = excluded.life, priority = excluded.priority, since = CASE
                            WHEN c.life = excluded.life THEN c.since ELSE excluded.since END;
                END IF;
                v_entries := v_entries || ROW('stood', p_names[i], NULL, p_member, p_life,
                    p_priorities[i], NULL, NULL, NULL, NULL, NULL, NULL)::entry;
            END IF;

            -- Nothing is taken from an expired member before it is ended (M2),
            -- by the ttl it wrote itself (M3). A term whose holder's life is over is
            -- written off, now that somebody asks for it (M5). What was handed over and
            -- not taken on in time is free although its holder lives.
            IF v_e.life <> p_life THEN
                SELECT m.expires_at <= clock_timestamp() INTO v_expired FROM members m
                    WHERE m.ns = p_ns AND m.id = v_e.holder AND m.life = v_e.life;
                v_void := NOT FOUND;
                IF v_void OR v_expired THEN
                    IF NOT v_void THEN
                        v_told := _tell(p_ns, p_now, v_entries);
                        v_entries := NULL;
                        IF NOT _expire(p_ns, v_e.holder) THEN
                            -- Another transaction has its row: a heartbeat, perhaps.
                            fenced := fenced || p_names[i];
                            CONTINUE;
                        END IF;
                    END IF;
                    v_settled := _settle(p_ns, p_now, v_e.name, v_e.number, v_e.holder, v_e.life,
                        p_grace_us);
                    v_entries := v_entries || v_settled;
                    IF v_settled.heir IS NOT NULL THEN
                        v_heirs := v_heirs || v_settled.heir;
                    END IF;
                ELSE
                    CONTINUE WHEN (v_e.heir_until <= p_now) IS NOT TRUE;
                    v_told := _tell(p_ns, p_now, v_entries);
                    v_entries := NULL;
                    v_told := _vacate(p_ns, p_now, v_e.holder, v_e.life, ARRAY[v_e.name],
                        ARRAY[v_e.number], ARRAY['abandoned'], NULL, NULL, p_grace_us);
                END IF;
                SELECT * INTO v_e FROM elections e WHERE e.ns = p_ns AND e.name = p_names[i];
            END IF;

            IF v_handed THEN
                UPDATE elections e
                    SET heir_until = NULL, won_nonce = greatest(e.won_nonce, p_nonces[i])
                    WHERE e.ns = p_ns AND e.name = p_names[i]
                      AND (e.heir_until IS NOT NULL OR e.won_nonce < p_nonces[i]);
                numbers[i] := v_e.number;
                elected[i] := _ms(v_e.elected_at);
                v_again := true;
                CONTINUE;
            END IF;

            -- Whether it may be won: it is vacant, and kept for nobody else who
            -- lives; or it is a term of the caller's own, which it gives up.
            CONTINUE WHEN v_e.paused OR NOT p_priorities[i] > 0;
            CONTINUE WHEN v_e.life <> p_life OR v_e.holder <> p_member;
            IF v_e.life IS NULL AND v_e.heir <> p_member AND v_e.heir_until > p_now THEN
                PERFORM 1 FROM members h
                    WHERE h.ns = p_ns AND h.id = v_e.heir AND h.expires_at > p_now;
                CONTINUE WHEN FOUND;
            END IF;

            -- A new number, never one used before (H5, H6). A reservation is used
            -- up. A fence holds its row; waiting for it here would hold up the
            -- whole namespace. The client asks again for a bounded time instead
            -- (C42).
            UPDATE elections e
                SET number = greatest(e.number + 1 + ((p_era - e.era)::bigint << 16), p_floor),
                    era = p_era, won_by = p_life, won_nonce = p_nonces[i], holder = p_member, life = p_life,
                    elected_at = p_now, priority = CASE WHEN e.life = p_life THEN e.priority END,
                    handed = false, heir = NULL, heir_until = NULL,
                    asked = false, asked_reason = NULL, asked_by = NULL, asked_to = NULL
                WHERE e.ctid = (SELECT f.ctid FROM elections f
                    WHERE f.ns = p_ns AND f.name = p_names[i] FOR UPDATE SKIP LOCKED)
                RETURNING e.number INTO v_number;
            IF NOT FOUND THEN
                fenced := fenced || p_names[i];
                CONTINUE;
            END IF;
            numbers[i] := v_number;
            v_won := v_won + 1;
            IF v_e.life IS NOT NULL THEN
                v_entries := v_entries || ROW('released', p_names[i], v_e.number, p_member, p_life,
                    NULL, 'abandoned', NULL, NULL, NULL, NULL, NULL)::entry;
                v_gave_up := v_gave_up + 1;
                -- By an earlier bid of this claim, perhaps.
                FOR j IN 1 .. i - 1 LOOP
                    IF p_names[j] = p_names[i] THEN numbers[j] := NULL; END IF;
                END LOOP;
            END IF;
            v_entries := v_entries || ROW('elected', p_names[i], v_number, p_member, p_life,
                NULL, NULL, NULL, NULL, NULL, NULL, NULL)::entry;
        END LOOP;
    END IF;
    v_told := _tell(p_ns, p_now, v_entries);
    IF v_heirs IS NOT NULL THEN
        PERFORM _tell_heirs(p_ns, v_heirs);
    END IF;
    -- Those who bid for many clear as many away.
    IF v_count > 8 THEN
        PERFORM _sweep_remains(p_ns, v_count);
    END IF;

    -- A win counts as a heartbeat, also when it repeats an earlier one.
    IF v_won > 0 OR v_again THEN
        UPDATE members m SET ttl = p_ttl_us, expires_at = _after(p_now, p_ttl_us),
                holds = m.holds + v_won - v_gave_up
            WHERE m.ns = p_ns AND m.id = p_member AND m.life = p_life;
    END IF;
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
    p_wait_ms integer, p_hand_over_us bigint
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    v_given integer := 0;
    v_left text[];
    v_told bigint;
    v_ready boolean := _enter(p_ns, p_wait_ms);
BEGIN
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
    RETURN v_ready;
END $$;

-- Ends candidacies, and terms that are held by exactly this life under exactly
-- this number (rule E1). A NULL number ends the candidacy alone. With
-- p_hand_over_us, whoever is next and joined with p_takes_over is elected at once:
-- it has the term for so long, and for good once it names it in a heartbeat or
-- claims it.
CREATE FUNCTION {schema}.release(
    p_ns text, p_member text, p_life uuid, p_elections text[], p_numbers bigint[],
    p_causes text[] DEFAULT NULL, p_successors text[] DEFAULT NULL,
    p_successor_us bigint[] DEFAULT NULL, p_grace_us bigint DEFAULT 0,
    p_wait_ms integer DEFAULT 0, p_hand_over_us bigint DEFAULT 0
) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER {planned} AS $$
DECLARE
    v_done boolean := _check_causes(p_causes) AND _release(p_ns, p_member, p_life, p_elections, p_numbers, p_causes,
        p_successors, p_successor_us, p_grace_us, p_wait_ms, p_hand_over_us);
BEGIN
END $$;
