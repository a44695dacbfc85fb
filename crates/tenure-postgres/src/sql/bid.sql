-- What a claim is made of, in the order of its steps.

-- Makes what never had a candidate: the candidacies and, since nothing can be in
-- the way, the terms, ten thousand in one statement. Says which bids these were,
-- by their places, and what to tell.
CREATE FUNCTION {schema}._found(
    p_ns text, p_member text, p_life uuid, p_now timestamptz, p_era integer, p_floor bigint,
    p_names text[], p_priorities integer[], p_nonces bigint[],
    OUT made bigint[], OUT entries {schema}.entry[], OUT number bigint
) LANGUAGE plpgsql AS $$
BEGIN
    number := greatest(1 + (p_era::bigint << 16), p_floor, _first_number(p_ns, p_era));
    -- Of two bids for one name the first makes the election; the second is then a bid like
    -- any other. OFFSET 0 has each name looked up by its key, however many there are.
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
            (ns, name, number, era, won_by, won_nonce, holder, life, elected_at, priority,
             changed_at)
        SELECT p_ns, n.name,
               CASE WHEN n.life IS NULL THEN 0 ELSE _found.number END,
               CASE WHEN n.life IS NULL THEN 0 ELSE p_era END,
               n.life, CASE WHEN n.life IS NOT NULL THEN n.nonce END,
               CASE WHEN n.life IS NOT NULL THEN p_member END, n.life,
               CASE WHEN n.life IS NOT NULL THEN p_now END,
               CASE WHEN n.life IS NOT NULL THEN n.priority END,
               CASE WHEN n.life IS NOT NULL THEN p_now ELSE 'epoch' END
        FROM new n
    ), stood AS (
        INSERT INTO candidates (ns, election, member, life, priority, since)
        SELECT p_ns, n.name, p_member, p_life, n.priority, p_now FROM new n WHERE n.life IS NULL
    )
    SELECT array_agg(n.ord),
           array_agg(_new_entry('stood', n.name, member => p_member, life => p_life,
                                priority => n.priority))
           || array_agg(_new_entry('elected', n.name, _found.number, p_member, p_life))
              FILTER (WHERE n.life IS NOT NULL)
        INTO made, entries FROM new n;
END $$;

-- The same of many at one priority, if none of them ever had a candidate: they are
-- not looked up one by one, and what is told of all is written once. Says their
-- number; or NULL, with nothing done, if one of them is there or is named twice.
CREATE FUNCTION {schema}._found_all(
    p_ns text, p_member text, p_life uuid, p_now timestamptz, p_era integer, p_floor bigint,
    p_names text[], p_priority integer, p_nonces bigint[]
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    v_number bigint := greatest(1 + (p_era::bigint << 16), p_floor, _first_number(p_ns, p_era));
    -- One look at all of them is faster than one at each.
    v_plain boolean := array_to_string(p_names, '') ~ '^[!-~]*$';
    v_told bigint;
BEGIN
    -- A claim that is made again and again must not write, to undo it each time.
    PERFORM 1 FROM elections e WHERE e.ns = p_ns AND e.name = p_names[1];
    IF FOUND THEN RETURN NULL; END IF;
    BEGIN
        INSERT INTO elections
            (ns, name, number, era, won_by, won_nonce, holder, life, elected_at, priority,
             changed_at)
        SELECT p_ns, t.name, v_number, p_era, p_life, t.number, p_member, p_life, p_now,
               p_priority, p_now
        FROM _items(p_names, NULL, p_nonces) t
        WHERE v_plain AND octet_length(t.name) BETWEEN 1 AND 200
           OR _check_name('an election''s name', t.name);
    -- Takes back the whole insert: one of them was there, or is named twice.
    EXCEPTION WHEN unique_violation THEN RETURN NULL;
    END;
    v_told := _tell(p_ns, p_now, ARRAY[
            _new_entry('stood', member => p_member, life => p_life, priority => p_priority),
            _new_entry('elected', number => v_number, member => p_member, life => p_life)],
        ARRAY(SELECT t.name FROM unnest(p_names) AS t(name) ORDER BY t.name));
    RETURN v_number;
END $$;

-- Makes a candidacy stand, or changes its priority, and returns what is to be told. A
-- holder that won before it had a row among the candidates (p_in_term) needs none.
CREATE FUNCTION {schema}._stand(
    p_ns text, p_now timestamptz, p_member text, p_life uuid, p_name text, p_priority integer,
    p_in_term boolean
) RETURNS {schema}.entry LANGUAGE plpgsql AS $$
BEGIN
    IF p_in_term THEN
        UPDATE elections e SET priority = p_priority WHERE e.ns = p_ns AND e.name = p_name;
    ELSE
        -- The same life keeps its place in the line, another of the same id begins anew.
        INSERT INTO candidates AS c (ns, election, member, life, priority, since)
            VALUES (p_ns, p_name, p_member, p_life, p_priority, p_now)
            ON CONFLICT (ns, election, member) DO UPDATE
            SET life = excluded.life, priority = excluded.priority, since = CASE
                WHEN c.life = excluded.life THEN c.since ELSE excluded.since END;
    END IF;
    RETURN _new_entry('stood', p_name, member => p_member, life => p_life,
        priority => p_priority);
END $$;

-- Bids for an election that no live member is known to hold, or that the caller holds and
-- gives up for a new term. A holder whose life or ttl is over, or who did not take on in
-- time what was handed over, is cleared away in any case. The caller wins only if p_may (the
-- election is not paused, E6, and its priority allows it), and if the vacancy is not kept
-- for another that lives.
--
-- Returns what is to be told: with "elected" last if the caller won. NULL if a fence or a
-- heartbeat holds a row: waiting for it here would hold up the whole namespace. The client
-- asks again for a bounded time instead (C42).
CREATE FUNCTION {schema}._contend(
    p_ns text, p_now timestamptz, p_member text, p_life uuid, p_era integer, p_floor bigint,
    p_grace_us bigint, p_name text, p_nonce bigint, p_may boolean, p_number bigint,
    p_holder text, p_holder_life uuid, p_expired boolean, p_heir text, p_heir_until timestamptz
) RETURNS {schema}.entry[] LANGUAGE plpgsql AS $$
DECLARE
    v_heir text := p_heir;
    v_until timestamptz := p_heir_until;
    v_settled entry;
    v_entries entry[];
    v_first bigint := CASE WHEN p_number = 0 THEN _first_number(p_ns, p_era) END;
    v_number bigint;
BEGIN
    -- NULL, and so passed over, where the election is vacant.
    IF p_holder_life <> p_life THEN
        v_settled := _settle(p_ns, p_now, p_name, p_number, p_holder, p_holder_life, p_expired,
            p_grace_us);
        IF v_settled.kind IS NULL THEN RETURN NULL; END IF;
        v_entries := ARRAY[v_settled];
        v_heir := v_settled.heir;
        v_until := _after(p_now, p_grace_us);
    END IF;
    -- An incarnation belongs to one id: what it holds under another is not the caller's.
    IF p_may IS NOT TRUE OR p_holder_life = p_life AND p_holder <> p_member THEN
        RETURN coalesce(v_entries, '{}');
    END IF;
    -- A reservation is worth as much as its heir: it lapses with that life.
    IF v_heir <> p_member AND v_until > p_now THEN
        PERFORM 1 FROM members h WHERE h.ns = p_ns AND h.id = v_heir AND h.expires_at > p_now;
        IF FOUND THEN RETURN coalesce(v_entries, '{}'); END IF;
    END IF;
    -- A new number, never one used before (H5, H6). A reservation is used up.
    UPDATE elections e
        SET number = greatest(e.number + 1 + ((p_era - e.era)::bigint << 16), p_floor, v_first),
            era = p_era, changed_at = p_now, won_by = p_life, won_nonce = p_nonce,
            holder = p_member, life = p_life, elected_at = p_now,
            priority = CASE WHEN e.life = p_life THEN e.priority END,
            handed = false, heir = NULL, heir_until = NULL,
            asked = false, asked_reason = NULL, asked_by = NULL, asked_to = NULL
        WHERE e.ctid = (SELECT f.ctid FROM elections f
            WHERE f.ns = p_ns AND f.name = p_name FOR UPDATE SKIP LOCKED)
        RETURNING e.number INTO v_number;
    IF NOT FOUND THEN RETURN NULL; END IF;
    IF p_holder_life = p_life THEN
        v_entries := ARRAY[_new_entry('released', p_name, p_number, p_member, p_life,
            cause => 'abandoned')];
    END IF;
    IF p_holder_life IS NULL THEN
        RETURN ARRAY[_new_entry('elected', p_name, v_number, p_member, p_life)];
    END IF;
    RETURN v_entries || _new_entry('elected', p_name, v_number, p_member, p_life);
END $$;

-- What follows on a claim's bids: it is told, heirs look, and a win counts as a heartbeat.
CREATE FUNCTION {schema}._conclude(
    p_ns text, p_member text, p_life uuid, p_ttl_us bigint, p_now timestamptz, p_count integer,
    p_entries {schema}.entry[], p_heirs text[], p_holds boolean, p_gained integer
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    v_told bigint := _tell(p_ns, p_now, p_entries);
BEGIN
    IF p_heirs IS NOT NULL THEN
        PERFORM _tell_heirs(p_ns, p_heirs);
    END IF;
    -- Those who bid for many clear as many away.
    IF p_count > 8 THEN
        PERFORM _sweep_remains(p_ns, p_count);
    END IF;
    IF p_holds THEN
        UPDATE members m SET ttl = p_ttl_us, expires_at = _after(p_now, p_ttl_us),
                holds = m.holds + p_gained
            WHERE m.ns = p_ns AND m.id = p_member AND m.life = p_life;
    END IF;
    RETURN p_holds;
END $$;

-- Bids for elections, one after the other, except for those made already (p_made, of which
-- p_entries tell, and with p_won terms in them). Says the numbers of what the caller holds by
-- these bids and when it was elected, by their places, what is fenced, and how many terms of
-- its own the caller gave up.
--
-- What was handed over to the caller was won by no bid, so that any takes it on, however
-- late it comes. Of all else the nonce tells what a bid by the last winner is (E2): one that
-- is not new (v_old) is answered from what stands.
CREATE FUNCTION {schema}._bid(
    p_ns text, p_member text, p_life uuid, p_ttl_us bigint, p_now timestamptz, p_era integer,
    p_floor bigint, p_names text[], p_priorities integer[], p_nonces bigint[], p_grace_us bigint,
    p_made bigint[], p_entries {schema}.entry[], p_won integer,
    INOUT numbers bigint[], OUT elected bigint[], OUT fenced text[], OUT gave_up integer
) LANGUAGE plpgsql AS $$
DECLARE
    v_count integer := coalesce(cardinality(p_names), 0);
    v_won integer := p_won;
    v_again boolean := false;
    v_entries entry[] := p_entries;
    v_heirs text[];
    v_e record;
    v_expired boolean;
    v_ours boolean;
    v_handed boolean;
    v_old boolean;
    v_new entry[];
    v_entry entry;
    v_done boolean;
BEGIN
    elected := array_fill(_ms(p_now), ARRAY[v_count]);
    gave_up := 0;
    FOR i IN 1 .. v_count LOOP
        EXIT WHEN v_won = v_count;
        CONTINUE WHEN i = ANY (p_made);
        SELECT e.*, coalesce(c.priority, CASE WHEN e.life = p_life THEN e.priority END) AS stands
            INTO v_e FROM elections e
            LEFT JOIN candidates c ON c.ns = p_ns AND c.election = p_names[i]
                AND c.member = p_member AND (c.life = p_life) IS TRUE
            WHERE e.ns = p_ns AND e.name = p_names[i];
        IF NOT FOUND THEN
            -- A single bid, for what never had a candidate; or one that was forgotten
            -- with a member ended just now, who alone stood for it.
            v_new := (_found(p_ns, p_member, p_life, p_now, p_era, p_floor, p_names[i:i],
                p_priorities[i:i], p_nonces[i:i])).entries;
        ELSE
            v_ours := v_e.life = p_life AND v_e.holder = p_member
                AND (v_e.heir_until > p_now) IS NOT FALSE;
            v_handed := (v_ours AND v_e.handed AND p_priorities[i] > 0) IS TRUE;
            v_old := NOT v_handed AND v_e.won_by = p_life AND p_nonces[i] <= v_e.won_nonce;
            IF v_old IS NOT TRUE AND v_e.stands IS DISTINCT FROM p_priorities[i] THEN
                v_entries := v_entries || _stand(p_ns, p_now, p_member, p_life, p_names[i],
                    p_priorities[i], v_e.life = p_life AND v_e.priority IS NOT NULL);
            END IF;
            IF v_handed OR v_old AND v_ours AND p_nonces[i] = v_e.won_nonce THEN
                IF v_e.heir_until IS NOT NULL OR p_nonces[i] > v_e.won_nonce THEN
                    UPDATE elections e
                        SET heir_until = NULL, won_nonce = greatest(e.won_nonce, p_nonces[i])
                        WHERE e.ns = p_ns AND e.name = p_names[i];
                END IF;
                numbers[i] := v_e.number;
                elected[i] := _ms(v_e.elected_at);
                v_again := true;
            END IF;
            CONTINUE WHEN v_handed OR v_old;
            -- An incumbent that lives is never preempted (E3).
            IF v_e.life <> p_life THEN
                SELECT m.expires_at <= clock_timestamp() INTO v_expired FROM members m
                    WHERE m.ns = p_ns AND m.id = v_e.holder AND m.life = v_e.life;
                CONTINUE WHEN NOT v_expired AND (v_e.heir_until <= p_now) IS NOT TRUE;
                -- The end of a life is told by itself, after what came before.
                IF v_expired THEN
                    PERFORM _tell(p_ns, p_now, v_entries);
                    v_entries := NULL;
                END IF;
            END IF;
            v_new := _contend(p_ns, p_now, p_member, p_life, p_era, p_floor, p_grace_us,
                p_names[i], p_nonces[i], NOT v_e.paused AND p_priorities[i] > 0, v_e.number,
                v_e.holder, v_e.life, v_expired, v_e.heir, v_e.heir_until);
        END IF;
        IF v_new IS NULL THEN fenced := fenced || p_names[i]; END IF;
        FOREACH v_entry IN ARRAY coalesce(v_new, '{}') LOOP
            v_entries := v_entries || v_entry;
            IF v_entry.kind = 'elected' THEN
                numbers[i] := v_entry.number;
                v_won := v_won + 1;
            ELSIF v_entry.kind = 'released' AND v_entry.life = p_life THEN
                gave_up := gave_up + 1;
            ELSIF v_entry.heir IS NOT NULL THEN
                v_heirs := v_heirs || v_entry.heir;
            END IF;
        END LOOP;
    END LOOP;
    v_done := _conclude(p_ns, p_member, p_life, p_ttl_us, p_now, v_count, v_entries, v_heirs,
        v_again OR v_won > 0, v_won - gave_up);
END $$;

-- The same of those among many elections that never had a candidate. Says the numbers of
-- what was won, by the places of the bids, how many those are, and the places of all that
-- were made.
CREATE FUNCTION {schema}._found_among(
    p_ns text, p_member text, p_life uuid, p_now timestamptz, p_era integer, p_floor bigint,
    p_names text[], p_priorities integer[], p_nonces bigint[],
    OUT numbers bigint[], OUT won integer, OUT made bigint[], OUT entries {schema}.entry[]
) LANGUAGE plpgsql AS $$
DECLARE
    v_count integer := cardinality(p_names);
    v_number bigint;
    v_found record;
BEGIN
    -- So many that they are told without a hint for each.
    IF v_count > 8 AND cardinality(p_priorities) = v_count AND cardinality(p_nonces) = v_count
       AND p_priorities[1] > 0 AND p_priorities[1] = ALL (p_priorities) THEN
        v_number := _found_all(p_ns, p_member, p_life, p_now, p_era, p_floor, p_names,
            p_priorities[1], p_nonces);
        IF v_number IS NOT NULL THEN
            numbers := array_fill(v_number, ARRAY[v_count]);
            won := v_count;
            RETURN;
        END IF;
    END IF;
    v_found := _found(p_ns, p_member, p_life, p_now, p_era, p_floor, p_names, p_priorities,
        p_nonces);
    numbers := array_fill(NULL::bigint, ARRAY[v_count]);
    won := 0;
    made := v_found.made;
    entries := v_found.entries;
    FOR i IN 1 .. coalesce(cardinality(made), 0) LOOP
        IF p_priorities[made[i]] > 0 THEN
            numbers[made[i]] := v_found.number;
            won := won + 1;
        END IF;
    END LOOP;
END $$;

-- The numbers of a claim, each for the newest term of its election alone.
CREATE FUNCTION {schema}._newest(p_names text[], p_numbers bigint[]) RETURNS bigint[]
LANGUAGE plpgsql AS $$
BEGIN
    RETURN ARRAY(
        SELECT CASE WHEN t.number = max(t.number) OVER (PARTITION BY t.name) THEN t.number END
        FROM _items(p_names, NULL, p_numbers) t ORDER BY t.ord);
END $$;

-- Bids for many elections: first for those that never had a candidate, all at once, then
-- for the others.
CREATE FUNCTION {schema}._bid_many(
    p_ns text, p_member text, p_life uuid, p_ttl_us bigint, p_now timestamptz, p_era integer,
    p_floor bigint, p_names text[], p_priorities integer[], p_nonces bigint[], p_grace_us bigint,
    OUT numbers bigint[], OUT elected bigint[], OUT fenced text[]
) LANGUAGE plpgsql AS $$
DECLARE
    v_made record := _found_among(p_ns, p_member, p_life, p_now, p_era, p_floor, p_names,
        p_priorities, p_nonces);
    v_bids record := _bid(p_ns, p_member, p_life, p_ttl_us, p_now, p_era, p_floor, p_names,
        p_priorities, p_nonces, p_grace_us, v_made.made, v_made.entries, v_made.won,
        v_made.numbers);
BEGIN
    -- A term that a later bid of the same claim gave up is not the answer to any.
    numbers := CASE WHEN v_bids.gave_up = 0 THEN v_bids.numbers
        ELSE _newest(p_names, v_bids.numbers) END;
    elected := v_bids.elected;
    fenced := v_bids.fenced;
END $$;
