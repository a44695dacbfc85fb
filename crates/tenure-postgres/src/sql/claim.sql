-- The verbs of candidates and holders: claim and release.

-- Stands for elections and wins those that are free. A row for each bid, with
-- its place among them: "won" with the term; "held" with the view; "fenced" with the
-- view, where it would have been won but for an open transaction that fenced
-- the last term. One row "ended" or "superseded" if the caller is no member.
CREATE FUNCTION {schema}.claim(
    p_ns text, p_member text, p_life uuid, p_ttl_us bigint,
    p_elections text[], p_priorities integer[], p_nonces bigint[],
    p_grace_us bigint DEFAULT 0, p_wait_ms integer DEFAULT 0
) RETURNS TABLE (bid integer, outcome text, number bigint, elected_ms bigint, view jsonb)
LANGUAGE plpgsql SECURITY DEFINER {planned} AS $$
#variable_conflict use_column
DECLARE
    v_ready boolean := _check_ttl(p_ttl_us)
        AND _check_bids(p_elections, p_priorities, p_nonces);
    v_quiet boolean := _is_quiet(p_ns, p_member, p_life, p_elections, p_priorities);
    v_fenced text[];
    v_won bigint;
    v_over text;
BEGIN
    IF NOT v_quiet THEN
        v_ready := _enter(p_ns, p_wait_ms);
    END IF;
    -- Once it has entered nobody else can end the caller: this is its moment.
    v_over := _over(p_ns, p_member, p_life);
    IF v_over IS NULL AND NOT v_quiet THEN
        v_fenced := _bid(p_ns, p_member, p_life, p_ttl_us, clock_timestamp(), p_elections,
            p_priorities, p_nonces, p_grace_us);
    END IF;
    IF v_over IS NOT NULL THEN
        RETURN QUERY SELECT 0, v_over, NULL::bigint, NULL::bigint, NULL::jsonb;
        RETURN;
    END IF;
    RETURN QUERY
        SELECT t.ord::integer, 'won', e.number, _ms(e.elected_at), NULL::jsonb
        FROM _items(p_elections, NULL, p_nonces) t
        CROSS JOIN LATERAL (
            SELECT * FROM elections e WHERE e.ns = p_ns AND e.name = t.name OFFSET 0) e
        WHERE (e.life = p_life) IS TRUE AND e.holder = p_member AND e.won_nonce = t.number;
    GET DIAGNOSTICS v_won = ROW_COUNT;
    IF v_won < cardinality(p_elections) THEN
        RETURN QUERY
            WITH lost AS (
                SELECT array_agg(t.name ORDER BY t.ord) AS names,
                       array_agg(t.ord ORDER BY t.ord) AS ords
                FROM _items(p_elections, NULL, p_nonces) t
                LEFT JOIN LATERAL (
                    SELECT * FROM elections e
                    WHERE e.ns = p_ns AND e.name = t.name OFFSET 0) e ON true
                WHERE (e.life = p_life AND e.holder = p_member AND e.won_nonce = t.number)
                      IS NOT TRUE
            )
            SELECT l.ords[v.ord]::integer,
                   CASE WHEN l.names[v.ord] = ANY (v_fenced) THEN 'fenced' ELSE 'held' END,
                   NULL::bigint, NULL::bigint, v.view
            FROM lost l, _views(p_ns, l.names, p_member, p_life, false, clock_timestamp()) v;
    END IF;
END $$;

-- Refuses bids that can never be right: each has a priority and a nonce, since
-- a term without one could not be told to whoever won it.
CREATE FUNCTION {schema}._check_bids(
    p_elections text[], p_priorities integer[], p_nonces bigint[]
) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    RETURN (coalesce(cardinality(p_nonces) >= cardinality(p_elections), true)
            AND array_position(p_nonces, NULL) IS NULL
            OR _refuse('each bid has a nonce'))
       AND (coalesce(0 <= ALL (p_priorities) AND 65535 >= ALL (p_priorities), true)
            OR _refuse('a priority is 0 to 65535'));
END $$;

-- Why this life may not act: NULL if it may.
CREATE FUNCTION {schema}._over(p_ns text, p_member text, p_life uuid) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    v_me members%ROWTYPE;
BEGIN
    SELECT * INTO v_me FROM members m WHERE m.ns = p_ns AND m.id = p_member;
    RETURN CASE
        WHEN v_me.life <> p_life THEN 'superseded'
        WHEN v_me.life IS NULL OR v_me.condemned OR v_me.expires_at <= clock_timestamp()
            THEN 'ended'
    END;
END $$;

-- Whether there is nothing to do: the caller stands everywhere already, and
-- another who lives holds each. Then a claim locks nothing and writes nothing.
CREATE FUNCTION {schema}._is_quiet(
    p_ns text, p_member text, p_life uuid, p_elections text[], p_priorities integer[]
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    v_holder text;
    v_life uuid;
BEGIN
    FOR i IN 1 .. coalesce(cardinality(p_elections), 0) LOOP
        SELECT e.holder, e.life INTO v_holder, v_life
            FROM elections e WHERE e.ns = p_ns AND e.name = p_elections[i];
        IF (v_life <> p_life) IS NOT TRUE THEN RETURN false; END IF;
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
    p_ns text, p_member text, p_life uuid, p_now timestamptz,
    p_names text[], p_priorities integer[], p_nonces bigint[],
    OUT v_made bigint[], OUT v_entries {schema}.entry[], OUT v_won integer
) LANGUAGE plpgsql AS $$
DECLARE
    v_era integer := _era();
BEGIN
    WITH new AS MATERIALIZED (
        SELECT DISTINCT ON (t.name) t.name, t.priority, t.number AS nonce, t.ord,
               CASE WHEN t.priority > 0 THEN p_life END AS life
        FROM _items(p_names, p_priorities, p_nonces) t
        LEFT JOIN LATERAL (
            SELECT e.name FROM elections e WHERE e.ns = p_ns AND e.name = t.name OFFSET 0) e ON true
        WHERE e.name IS NULL
        ORDER BY t.name, t.ord
    ), made AS (
        INSERT INTO elections
            (ns, name, number, era, won_by, won_nonce, holder, life, elected_at)
        SELECT p_ns, n.name,
               CASE WHEN n.life IS NULL THEN 0 ELSE 1 + (v_era::bigint << 20) END,
               CASE WHEN n.life IS NULL THEN 0 ELSE v_era END,
               n.life, CASE WHEN n.life IS NOT NULL THEN n.nonce END,
               CASE WHEN n.life IS NOT NULL THEN p_member END, n.life,
               CASE WHEN n.life IS NOT NULL THEN p_now END
        FROM new n WHERE _check_name('an election''s name', n.name)
    ), stood AS (
        INSERT INTO candidates (ns, election, member, life, priority, since)
        SELECT p_ns, n.name, p_member, p_life, n.priority, p_now FROM new n
    )
    SELECT array_agg(n.ord),
           array_agg(ROW('stood', n.name, NULL, p_member, p_life, n.priority, NULL, NULL, NULL,
                         NULL, NULL, NULL)::entry)
           || array_agg(ROW('elected', n.name, 1 + (v_era::bigint << 20), p_member, p_life, NULL,
                            NULL, NULL, NULL, NULL, NULL, NULL)::entry)
              FILTER (WHERE n.life IS NOT NULL),
           count(n.life)
        INTO v_made, v_entries, v_won FROM new n;
END $$;

-- Bids for elections one after the other, and says which are fenced.
CREATE FUNCTION {schema}._bid(
    p_ns text, p_member text, p_life uuid, p_ttl_us bigint, p_now timestamptz,
    p_names text[], p_priorities integer[], p_nonces bigint[], p_grace_us bigint
) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    v_era integer;
    v_made bigint[] := '{}';
    v_e elections%ROWTYPE;
    v_entries entry[];
    v_told bigint;
    v_won integer := 0;
    v_gave_up integer := 0;
    v_again boolean := false;
    v_fenced text[] := '{}';
BEGIN
    IF cardinality(p_names) > 1 THEN
        SELECT coalesce(f.v_made, '{}'), f.v_entries, f.v_won INTO v_made, v_entries, v_won
            FROM _found(p_ns, p_member, p_life, p_now, p_names, p_priorities, p_nonces) f;
    END IF;
    IF cardinality(v_made) < cardinality(p_names) THEN
        FOR i IN 1 .. cardinality(p_names) LOOP
            CONTINUE WHEN i = ANY (v_made);
            SELECT * INTO v_e FROM elections e WHERE e.ns = p_ns AND e.name = p_names[i];
            IF NOT FOUND THEN
                -- A single bid, for what nobody ever stood for; or one that was
                -- forgotten with a member ended just now, who alone stood for it.
                SELECT v_entries || f.entries, v_won + f.won INTO v_entries, v_won
                    FROM _found(p_ns, p_member, p_life, p_now, p_names[i:i], p_priorities[i:i],
                        p_nonces[i:i]) AS f(made, entries, won);
                CONTINUE;
            END IF;

            -- What the nonce tells of a bid by the last winner (rule E2): it is
            -- not news, and answered from what stands.
            IF v_e.won_by = p_life AND p_nonces[i] <= v_e.won_nonce THEN
                v_again := v_again
                    OR (v_e.life = p_life AND p_nonces[i] = v_e.won_nonce) IS TRUE;
                CONTINUE;
            END IF;

            -- The candidacy stands from here on.
            PERFORM 1 FROM candidates c WHERE c.ns = p_ns AND c.election = p_names[i]
                AND c.member = p_member AND (c.life = p_life) IS TRUE
                AND c.priority = p_priorities[i];
            IF NOT FOUND THEN
                INSERT INTO candidates AS c (ns, election, member, life, priority, since)
                    VALUES (p_ns, p_names[i], p_member, p_life, p_priorities[i], p_now)
                    ON CONFLICT (ns, election, member) DO UPDATE
                    SET life = excluded.life, priority = excluded.priority, since = CASE
                        WHEN c.life = excluded.life THEN c.since ELSE excluded.since END;
                v_entries := v_entries || ROW('stood', p_names[i], NULL, p_member, p_life,
                    p_priorities[i], NULL, NULL, NULL, NULL, NULL, NULL)::entry;
            END IF;

            -- Nothing is taken from an expired member before it is ended (M2),
            -- by the ttl it wrote itself (M3).
            IF v_e.life <> p_life AND EXISTS (
                    SELECT FROM members m WHERE m.ns = p_ns AND m.id = v_e.holder
                        AND m.life = v_e.life AND m.expires_at <= clock_timestamp()) THEN
                v_told := _tell(p_ns, p_now, v_entries);
                v_entries := NULL;
                PERFORM _expire(p_ns, ARRAY[v_e.holder], p_grace_us);
                SELECT * INTO v_e FROM elections e WHERE e.ns = p_ns AND e.name = p_names[i];
            END IF;

            -- Whether it may be won: it is vacant, and kept for nobody else who
            -- lives; or it is a term of the caller's own, which it gives up.
            CONTINUE WHEN v_e.paused OR NOT p_priorities[i] > 0;
            IF v_e.life IS NULL THEN
                CONTINUE WHEN v_e.heir <> p_member AND v_e.heir_until > p_now AND EXISTS (
                    SELECT FROM members h
                    WHERE h.ns = p_ns AND h.id = v_e.heir AND h.expires_at > p_now);
            ELSE
                CONTINUE WHEN v_e.life <> p_life OR v_e.holder <> p_member;
            END IF;

            -- A fence holds its row; waiting for it here would hold up the whole
            -- namespace. The client asks again for a bounded time instead (C42).
            PERFORM 1 FROM elections e WHERE e.ns = p_ns AND e.name = p_names[i]
                FOR UPDATE SKIP LOCKED;
            IF NOT FOUND THEN
                v_fenced := v_fenced || p_names[i];
                CONTINUE;
            END IF;
            IF v_e.life IS NOT NULL THEN
                v_entries := v_entries || ROW('released', p_names[i], v_e.number, p_member, p_life,
                    NULL, 'abandoned', NULL, NULL, NULL, NULL, NULL)::entry;
                v_gave_up := v_gave_up + 1;
            END IF;

            -- A new number, never one used before (H5, H6). A reservation is used up.
            v_era := coalesce(v_era, _era());
            UPDATE elections e
                SET number = e.number + 1 + ((v_era - e.era)::bigint << 20), era = v_era,
                    won_by = p_life, won_nonce = p_nonces[i], holder = p_member, life = p_life,
                    elected_at = p_now, heir = NULL, heir_until = NULL,
                    asked = false, asked_reason = NULL, asked_by = NULL, asked_to = NULL
                WHERE e.ns = p_ns AND e.name = p_names[i]
                RETURNING e.number INTO v_e.number;
            v_entries := v_entries || ROW('elected', p_names[i], v_e.number, p_member, p_life,
                NULL, NULL, NULL, NULL, NULL, NULL, NULL)::entry;
            v_won := v_won + 1;
        END LOOP;
    END IF;
    v_told := _tell(p_ns, p_now, v_entries);

    -- A win counts as a heartbeat, also when it repeats an earlier one.
    IF v_won > 0 OR v_again THEN
        UPDATE members m SET ttl = p_ttl_us, expires_at = _after(p_now, p_ttl_us),
                holds = m.holds + v_won - v_gave_up
            WHERE m.ns = p_ns AND m.id = p_member AND m.life = p_life;
    END IF;
    RETURN v_fenced;
END $$;

-- Refuses a cause that is not one of the protocol's.
CREATE FUNCTION {schema}._check_causes(p_causes text[]) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    RETURN coalesce(array_remove(p_causes, NULL) <@ ARRAY['expired', 'proven dead', 'superseded',
            'evicted', 'resigned', 'stepped down', 'abandoned', 'left'], true)
        OR _refuse('a cause is one of the protocol''s');
END $$;

-- Ends candidacies, and terms that are held by exactly this life under exactly
-- this number (rule E1). A NULL number ends the candidacy alone.
CREATE FUNCTION {schema}.release(
    p_ns text, p_member text, p_life uuid, p_elections text[], p_numbers bigint[],
    p_causes text[] DEFAULT NULL, p_successors text[] DEFAULT NULL,
    p_successor_us bigint[] DEFAULT NULL, p_grace_us bigint DEFAULT 0, p_wait_ms integer DEFAULT 0
) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER {planned} AS $$
DECLARE
    v_held boolean;
    v_left text[];
    v_names text[];
    v_causes text[];
    v_successors text[];
    v_successor_us bigint[];
    v_told bigint;
    v_ready boolean := _check_causes(p_causes) AND _enter(p_ns, p_wait_ms);
BEGIN
    FOR i IN 1 .. coalesce(cardinality(p_elections), 0) LOOP
        SELECT (e.number = p_numbers[i] AND e.life = p_life AND e.holder = p_member) IS TRUE
            INTO v_held FROM elections e WHERE e.ns = p_ns AND e.name = p_elections[i];
        CONTINUE WHEN NOT FOUND OR NOT v_held AND p_numbers[i] IS NOT NULL;
        IF NOT v_held THEN
            v_left := v_left || p_elections[i];
        ELSE
            v_names := v_names || p_elections[i];
            v_causes := v_causes || coalesce(p_causes[i], 'resigned');
            v_successors := v_successors || p_successors[i];
            v_successor_us := v_successor_us || p_successor_us[i];
        END IF;
    END LOOP;
    IF v_names IS NOT NULL THEN
        v_told := _vacate(p_ns, clock_timestamp(), p_member, p_life, v_names, v_causes,
            v_successors, v_successor_us, p_grace_us);
    END IF;
    IF v_left IS NOT NULL THEN
        v_ready := _withdraw(p_ns, p_member, p_life, v_left);
        PERFORM _forget(p_ns, v_left);
    END IF;
END $$;
