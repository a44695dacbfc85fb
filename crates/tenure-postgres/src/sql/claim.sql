-- The verbs of candidates and holders: claim and release.

-- Stands for elections and wins those that are free. A row for each bid, in
-- their order: "won" with the term; "held" with the view; "fenced" with the
-- view, where it would have been won but for an open transaction that fenced
-- the last term. One row "ended" or "superseded" if the caller is no member.
CREATE FUNCTION {schema}.claim(
    p_ns text, p_member text, p_life uuid, p_ttl_us bigint,
    p_elections text[], p_priorities integer[], p_nonces bigint[],
    p_grace_us bigint DEFAULT 0, p_wait_ms integer DEFAULT 0
) RETURNS TABLE (bid integer, outcome text, number bigint, elected_ms bigint, view jsonb)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = {schema}, pg_temp AS $$
#variable_conflict use_column
DECLARE
    v_fenced text[] := '{}';
    v_rounds integer;
    v_now timestamptz;
    v_over text;
BEGIN
    PERFORM _check(p_ns, p_member, p_ttl_us);
    PERFORM _prepare(p_wait_ms);
    PERFORM _plan(p_elections);
    v_over := _over(p_ns, p_member, p_life);
    IF v_over IS NULL AND NOT _is_quiet(p_ns, p_member, p_life, p_elections, p_priorities) THEN
        PERFORM _enter(p_ns);
        -- From here on nobody else can end the caller: this is its moment.
        v_over := _over(p_ns, p_member, p_life);
        v_now := clock_timestamp();
        IF v_over IS NULL THEN
            -- An election that is named twice is bid for in two rounds.
            SELECT max(t.count) INTO v_rounds FROM (
                SELECT count(*)::integer FROM unnest(p_elections) AS u(name) GROUP BY u.name) t;
            FOR v_round IN 1 .. coalesce(v_rounds, 0) LOOP
                v_fenced := v_fenced || (
                    SELECT _bid(p_ns, p_member, p_life, p_ttl_us, v_now,
                        array_agg(t.name ORDER BY t.ord), array_agg(t.priority ORDER BY t.ord),
                        array_agg(t.nonce ORDER BY t.ord), p_grace_us)
                    FROM (
                        SELECT u.*, row_number() OVER (PARTITION BY u.name ORDER BY u.ord) AS round
                        FROM unnest(p_elections, p_priorities, p_nonces)
                             WITH ORDINALITY AS u(name, priority, nonce, ord)) t
                    WHERE t.round = v_round);
            END LOOP;
        END IF;
    END IF;
    IF v_over IS NOT NULL THEN
        RETURN QUERY SELECT 0, v_over, NULL::bigint, NULL::bigint, NULL::jsonb;
        RETURN;
    END IF;
    RETURN QUERY
        WITH answered AS (
            SELECT t.ord, t.name, e.number, e.elected_at,
                   coalesce(e.life = p_life AND e.holder = p_member AND e.won_nonce = t.nonce,
                            false) AS won
            FROM unnest(p_elections, p_nonces) WITH ORDINALITY AS t(name, nonce, ord)
            LEFT JOIN elections e ON e.ns = p_ns AND e.name = t.name
        ), lost AS (
            SELECT array_agg(a.name ORDER BY a.ord) AS names, array_agg(a.ord ORDER BY a.ord) AS ords
            FROM answered a WHERE NOT a.won
        )
        SELECT a.ord::integer, 'won', a.number, _ms(a.elected_at), NULL::jsonb
        FROM answered a WHERE a.won
        UNION ALL
        SELECT l.ords[v.ord]::integer,
               CASE WHEN l.names[v.ord] = ANY (v_fenced) THEN 'fenced' ELSE 'held' END,
               NULL, NULL, v.view
        FROM lost l, _views(p_ns, l.names, p_member, p_life, false, clock_timestamp()) v
        ORDER BY 1;
END $$;

-- Why this life may not act: NULL if it may.
CREATE FUNCTION {schema}._over(p_ns text, p_member text, p_life uuid) RETURNS text
LANGUAGE plpgsql SET search_path = {schema}, pg_temp AS $$
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
) RETURNS boolean LANGUAGE sql SET search_path = {schema}, pg_temp AS $$
    SELECT NOT EXISTS (
        SELECT FROM unnest(p_elections, p_priorities) AS t(name, priority)
        LEFT JOIN elections e ON e.ns = p_ns AND e.name = t.name
        LEFT JOIN candidates c ON c.ns = p_ns AND c.election = t.name AND c.member = p_member
             AND c.life = p_life AND c.priority = t.priority
        LEFT JOIN members m ON m.ns = p_ns AND m.id = e.holder AND m.life = e.life
             AND m.life <> p_life AND m.expires_at > clock_timestamp()
        WHERE c.member IS NULL OR m.id IS NULL)
$$;

-- Bids for elections that are all different, and says which are fenced.
CREATE FUNCTION {schema}._bid(
    p_ns text, p_member text, p_life uuid, p_ttl_us bigint, p_now timestamptz,
    p_names text[], p_priorities integer[], p_nonces bigint[], p_grace_us bigint
) RETURNS text[] LANGUAGE plpgsql SET search_path = {schema}, pg_temp AS $$
DECLARE
    v_fresh text[];
    v_stood entry[];
    v_dead text[];
    v_open text[];
    v_won text[];
    v_era integer;
    v_given_up entry[];
    v_elected entry[];
BEGIN
    -- Step 1: what the nonce tells of a bid by the last winner (rule E2). What
    -- is not news is answered at the end, from what stands.
    SELECT array_agg(t.name) INTO v_fresh FROM unnest(p_names, p_nonces) AS t(name, nonce)
        LEFT JOIN elections e ON e.ns = p_ns AND e.name = t.name
        WHERE NOT coalesce(e.won_by = p_life AND t.nonce <= e.won_nonce, false);

    -- Step 2: the candidacies stand from here on.
    INSERT INTO elections (ns, name) SELECT p_ns, t.name FROM unnest(v_fresh) AS t(name)
        ON CONFLICT DO NOTHING;
    WITH put AS (
        INSERT INTO candidates AS c (ns, election, member, life, priority, since)
        SELECT p_ns, t.name, p_member, p_life, t.priority, p_now
        FROM unnest(p_names, p_priorities) AS t(name, priority) WHERE t.name = ANY (v_fresh)
        ON CONFLICT (ns, election, member) DO UPDATE
            SET life = excluded.life, priority = excluded.priority,
                since = CASE WHEN c.life = excluded.life THEN c.since ELSE excluded.since END
            WHERE c.life <> excluded.life OR c.priority <> excluded.priority
        RETURNING c.election, c.priority
    )
    SELECT array_agg(ROW('stood', p.election, NULL, p_member, p_life, p.priority, NULL, NULL,
                         NULL, NULL, NULL, NULL)::entry ORDER BY array_position(p_names, p.election))
    INTO v_stood FROM put p;
    PERFORM _tell(p_ns, p_now, v_stood);

    -- Step 3: nothing is taken from an expired member before it is ended (M2),
    -- by the ttl it wrote itself (M3).
    SELECT array_agg(DISTINCT e.holder) INTO v_dead FROM elections e
        JOIN members m ON m.ns = p_ns AND m.id = e.holder AND m.life = e.life
        WHERE e.ns = p_ns AND e.name = ANY (v_fresh) AND e.life <> p_life
          AND m.expires_at <= clock_timestamp();
    IF v_dead IS NOT NULL THEN
        PERFORM _expire(p_ns, v_dead, p_grace_us);
    END IF;

    -- Step 4: what may be won, and of that what no open transaction fences.
    SELECT array_agg(e.name) INTO v_open
        FROM unnest(p_names, p_priorities) AS t(name, priority)
        JOIN elections e ON e.ns = p_ns AND e.name = t.name
        LEFT JOIN members h ON h.ns = p_ns AND h.id = e.heir AND h.expires_at > p_now
        WHERE t.name = ANY (v_fresh) AND NOT e.paused AND t.priority > 0
          AND CASE WHEN e.life IS NULL
                   THEN h.id IS NULL OR e.heir_until <= p_now OR e.heir = p_member
                   ELSE e.life = p_life AND e.holder = p_member END;
    IF v_open IS NOT NULL THEN
        -- A fence holds the row; waiting for it here would hold up the whole
        -- namespace. The client asks again for a bounded time instead (C42).
        SELECT array_agg(t.name) INTO v_won FROM (
            SELECT e.name FROM elections e WHERE e.ns = p_ns AND e.name = ANY (v_open)
            FOR UPDATE SKIP LOCKED) t;
    END IF;
    IF v_won IS NOT NULL THEN
        v_era := _era();
        -- An older term of the caller's own is given up first.
        SELECT array_agg(ROW('released', e.name, e.number, e.holder, e.life, NULL, 'abandoned',
                             NULL, NULL, NULL, NULL, NULL)::entry)
            INTO v_given_up FROM elections e
            WHERE e.ns = p_ns AND e.name = ANY (v_won) AND e.life IS NOT NULL;
        -- A new number, never one used before (H5, H6). A reservation is used up.
        WITH won AS (
            UPDATE elections e
            SET number = e.number + 1 + ((v_era - e.era)::bigint << 20), era = v_era,
                won_by = p_life, won_nonce = t.nonce, holder = p_member, life = p_life,
                elected_at = p_now, heir = NULL, heir_until = NULL,
                asked = false, asked_reason = NULL, asked_by = NULL, asked_to = NULL
            FROM unnest(p_names, p_nonces) WITH ORDINALITY AS t(name, nonce, ord)
            WHERE e.ns = p_ns AND e.name = t.name AND t.name = ANY (v_won)
            RETURNING e.name, e.number, t.ord
        )
        SELECT array_agg(ROW('elected', w.name, w.number, p_member, p_life, NULL, NULL, NULL,
                             NULL, NULL, NULL, NULL)::entry ORDER BY w.ord)
            INTO v_elected FROM won w;
        PERFORM _tell(p_ns, p_now, v_given_up || v_elected);
    END IF;
    -- A win counts as a heartbeat, also when it repeats an earlier one.
    UPDATE members m SET ttl = p_ttl_us, expires_at = _after(p_now, p_ttl_us),
            holds = m.holds + coalesce(cardinality(v_won), 0) - coalesce(cardinality(v_given_up), 0)
        WHERE m.ns = p_ns AND m.id = p_member AND m.life = p_life AND EXISTS (
            SELECT FROM unnest(p_names, p_nonces) AS t(name, nonce)
            JOIN elections e ON e.ns = p_ns AND e.name = t.name
            WHERE e.life = p_life AND e.won_nonce = t.nonce);
    RETURN ARRAY(SELECT unnest(v_open) EXCEPT SELECT unnest(v_won));
END $$;

-- Ends candidacies, and terms that are held by exactly this life under exactly
-- this number (rule E1). A NULL number ends the candidacy alone.
CREATE FUNCTION {schema}.release(
    p_ns text, p_member text, p_life uuid, p_elections text[], p_numbers bigint[],
    p_causes text[] DEFAULT NULL, p_successors text[] DEFAULT NULL,
    p_successor_us bigint[] DEFAULT NULL, p_grace_us bigint DEFAULT 0, p_wait_ms integer DEFAULT 0
) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = {schema}, pg_temp AS $$
DECLARE
    v_exact text[];
    v_names text[];
    v_causes text[];
    v_successors text[];
    v_successor_us bigint[];
BEGIN
    PERFORM _prepare(p_wait_ms);
    PERFORM _plan(p_elections);
    PERFORM _enter(p_ns);
    WITH exact AS (
        SELECT DISTINCT ON (t.name) t.*, e.life IS NOT NULL AND t.number IS NOT NULL AS term
        FROM unnest(p_elections, p_numbers, p_causes, p_successors, p_successor_us)
             WITH ORDINALITY AS t(name, number, cause, successor, successor_us, ord)
        JOIN elections e ON e.ns = p_ns AND e.name = t.name
        WHERE t.number IS NULL
           OR (t.number = e.number AND e.life = p_life AND e.holder = p_member)
        ORDER BY t.name, t.number NULLS LAST
    )
    SELECT array_agg(x.name),
           array_agg(x.name ORDER BY x.ord) FILTER (WHERE x.term),
           array_agg(coalesce(x.cause, 'resigned') ORDER BY x.ord) FILTER (WHERE x.term),
           array_agg(x.successor ORDER BY x.ord) FILTER (WHERE x.term),
           array_agg(x.successor_us ORDER BY x.ord) FILTER (WHERE x.term)
    INTO v_exact, v_names, v_causes, v_successors, v_successor_us FROM exact x;
    IF v_exact IS NULL THEN RETURN; END IF;
    PERFORM _withdraw(p_ns, p_member, p_life, v_exact);
    IF v_names IS NOT NULL THEN
        PERFORM _vacate(p_ns, clock_timestamp(), v_names, v_causes, v_successors, v_successor_us,
            p_grace_us);
    END IF;
    PERFORM _forget(p_ns, v_exact);
END $$;
