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
    v_fenced text[] := '{}';
    v_rounds integer;
    v_won bigint;
    v_now timestamptz;
    v_over text;
BEGIN
    PERFORM _check(p_ns, p_member, p_ttl_us);
    PERFORM _prepare(p_wait_ms);
    v_over := _over(p_ns, p_member, p_life);
    IF v_over IS NULL AND NOT _is_quiet(p_ns, p_member, p_life, p_elections, p_priorities) THEN
        PERFORM _enter(p_ns);
        -- From here on nobody else can end the caller: this is its moment.
        v_over := _over(p_ns, p_member, p_life);
        v_now := clock_timestamp();
        IF v_over IS NULL THEN
            v_rounds := 1;
            IF cardinality(p_elections) > 1 THEN
                SELECT max(t.count) INTO v_rounds FROM (
                    SELECT count(*)::integer FROM unnest(p_elections) AS u(name)
                    GROUP BY u.name) t;
            END IF;
            IF v_rounds = 1 THEN
                v_fenced := _bid(p_ns, p_member, p_life, p_ttl_us, v_now, p_elections,
                    p_priorities, p_nonces, p_grace_us);
            ELSE
                v_fenced := _bid_in_rounds(p_ns, p_member, p_life, p_ttl_us, v_now, p_elections,
                    p_priorities, p_nonces, p_grace_us, v_rounds);
            END IF;
        END IF;
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
BEGIN
    RETURN NOT EXISTS (
        SELECT FROM _items(p_elections, p_priorities) t
        LEFT JOIN LATERAL (
            SELECT * FROM elections e WHERE e.ns = p_ns AND e.name = t.name OFFSET 0) e ON true
        LEFT JOIN LATERAL (
            SELECT c.member FROM candidates c
            WHERE c.ns = p_ns AND c.election = t.name AND c.member = p_member
              AND (c.life = p_life) IS TRUE AND c.priority = t.priority OFFSET 0) c ON true
        LEFT JOIN members m ON m.ns = p_ns AND m.id = e.holder AND m.life = e.life
             AND m.life <> p_life AND m.expires_at > clock_timestamp()
        WHERE c.member IS NULL OR m.id IS NULL);
END $$;

-- An election that is named twice is bid for in two rounds.
CREATE FUNCTION {schema}._bid_in_rounds(
    p_ns text, p_member text, p_life uuid, p_ttl_us bigint, p_now timestamptz,
    p_names text[], p_priorities integer[], p_nonces bigint[], p_grace_us bigint,
    p_rounds integer
) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    v_fenced text[];
    v_all text[] := '{}';
BEGIN
    FOR v_round IN 1 .. coalesce(p_rounds, 0) LOOP
        SELECT _bid(p_ns, p_member, p_life, p_ttl_us, p_now, array_agg(t.name ORDER BY t.ord),
                array_agg(t.priority ORDER BY t.ord), array_agg(t.nonce ORDER BY t.ord), p_grace_us)
            INTO v_fenced
            FROM (
                SELECT u.*, row_number() OVER (PARTITION BY u.name ORDER BY u.ord) AS round
                FROM unnest(p_names, p_priorities, p_nonces)
                     WITH ORDINALITY AS u(name, priority, nonce, ord)) t
            WHERE t.round = v_round;
        v_all := v_all || v_fenced;
    END LOOP;
    RETURN v_all;
END $$;

-- Bids for elections that are all different, and says which are fenced.
--
-- Each step is one statement over all of them, found by their keys, and a step
-- with nothing to do is left out: a single bid is as much in a hurry as a
-- thousand are. See `_items` for how they are found.
CREATE FUNCTION {schema}._bid(
    p_ns text, p_member text, p_life uuid, p_ttl_us bigint, p_now timestamptz,
    p_names text[], p_priorities integer[], p_nonces bigint[], p_grace_us bigint
) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    v_era integer;
    v_names text[];
    v_priorities integer[];
    v_nonces bigint[];
    v_new integer;
    v_dead text[];
    v_entries entry[];
    v_open text[];
    v_open_nonces bigint[];
    v_won text[];
    v_won_nonces bigint[];
    v_own integer := 0;
    v_count integer := 0;
    v_elected entry[];
    v_fenced text[] := '{}';
BEGIN
    -- Step 1: what the nonce tells of a bid by the last winner (rule E2). What
    -- is not news is answered at the end, from what stands.
    SELECT array_agg(t.name), array_agg(t.priority), array_agg(t.number),
           count(*) FILTER (WHERE e.name IS NULL),
           array_agg(DISTINCT m.id) FILTER (WHERE m.id IS NOT NULL)
        INTO v_names, v_priorities, v_nonces, v_new, v_dead
        FROM _items(p_names, p_priorities, p_nonces) t
        LEFT JOIN LATERAL (
            SELECT * FROM elections e WHERE e.ns = p_ns AND e.name = t.name OFFSET 0) e ON true
        LEFT JOIN members m ON m.ns = p_ns AND m.id = e.holder AND m.life = e.life
             AND e.life <> p_life AND m.expires_at <= clock_timestamp()
        WHERE NOT coalesce(e.won_by = p_life AND t.number <= e.won_nonce, false);

    -- Step 2: the candidacies stand from here on. An election that nobody ever
    -- stood for is won as it is made: nothing can be in the way.
    IF v_new > 0 THEN
        v_era := _era();
        WITH made AS (
            INSERT INTO elections AS e (ns, name, number, era, won_by, won_nonce, holder, life,
                                        elected_at)
            SELECT p_ns, t.name,
                   CASE WHEN t.priority > 0 THEN 1 + (v_era::bigint << 20) ELSE 0 END,
                   CASE WHEN t.priority > 0 THEN v_era ELSE 0 END,
                   CASE WHEN t.priority > 0 THEN p_life END,
                   CASE WHEN t.priority > 0 THEN t.number END,
                   CASE WHEN t.priority > 0 THEN p_member END,
                   CASE WHEN t.priority > 0 THEN p_life END,
                   CASE WHEN t.priority > 0 THEN p_now END
            FROM _items(v_names, v_priorities, v_nonces) t
            ON CONFLICT DO NOTHING
            RETURNING e.name, e.number
        )
        SELECT array_agg(ROW('elected', w.name, w.number, p_member, p_life, NULL, NULL, NULL,
                             NULL, NULL, NULL, NULL)::entry) FILTER (WHERE w.number > 0),
               count(*) FILTER (WHERE w.number > 0)
            INTO v_elected, v_count FROM made w;
    END IF;
    WITH put AS (
        INSERT INTO candidates AS c (ns, election, member, life, priority, since)
        SELECT p_ns, t.name, p_member, p_life, t.priority, p_now
        FROM _items(v_names, v_priorities) t
        ON CONFLICT (ns, election, member) DO UPDATE
            SET life = excluded.life, priority = excluded.priority,
                since = CASE WHEN c.life = excluded.life THEN c.since ELSE excluded.since END
            WHERE c.life <> excluded.life OR c.priority <> excluded.priority
        RETURNING c.election, c.priority
    )
    SELECT array_agg(ROW('stood', p.election, NULL, p_member, p_life, p.priority, NULL, NULL,
                         NULL, NULL, NULL, NULL)::entry)
        INTO v_entries FROM put p;

    -- Step 3: nothing is taken from an expired member before it is ended (M2),
    -- by the ttl it wrote itself (M3).
    IF v_dead IS NOT NULL THEN
        PERFORM _tell(p_ns, p_now, v_entries);
        v_entries := NULL;
        PERFORM _expire(p_ns, v_dead, p_grace_us);
    END IF;

    -- Step 4: what may be won, and of that what no open transaction fences. A
    -- fence holds its row; waiting for it here would hold up the whole
    -- namespace. The client asks again for a bounded time instead (C42).
    IF v_count < cardinality(v_names) THEN
        SELECT array_agg(e.name), array_agg(t.number), count(e.life)
            INTO v_open, v_open_nonces, v_own
            FROM _items(v_names, v_priorities, v_nonces) t
            CROSS JOIN LATERAL (
                SELECT * FROM elections e WHERE e.ns = p_ns AND e.name = t.name OFFSET 0) e
            LEFT JOIN members h ON h.ns = p_ns AND h.id = e.heir AND h.expires_at > p_now
            WHERE NOT e.paused AND t.priority > 0 AND CASE
                WHEN e.life IS NULL
                    THEN h.id IS NULL OR e.heir_until <= p_now OR e.heir = p_member
                ELSE e.life = p_life AND e.holder = p_member AND e.won_nonce < t.number END;
    END IF;
    IF v_open IS NOT NULL THEN
        SELECT array_agg(l.name), array_agg(l.nonce) INTO v_won, v_won_nonces FROM (
            SELECT e.name, t.number AS nonce FROM _items(v_open, NULL, v_open_nonces) t
            CROSS JOIN LATERAL (
                SELECT e.ctid FROM elections e
                WHERE e.ns = p_ns AND e.name = t.name OFFSET 0) f
            JOIN elections e ON e.ctid = f.ctid
            FOR UPDATE OF e SKIP LOCKED) l;
        IF coalesce(cardinality(v_won), 0) < cardinality(v_open) THEN
            v_fenced := ARRAY(SELECT unnest(v_open) EXCEPT SELECT unnest(v_won));
            v_own := (SELECT count(e.life) FROM elections e
                WHERE e.ns = p_ns AND e.name = ANY (v_won));
        END IF;
    END IF;
    IF v_won IS NOT NULL THEN
        v_era := _era();
        -- An older term of the caller's own is given up first.
        IF v_own > 0 THEN
            v_entries := v_entries || (
                SELECT array_agg(ROW('released', e.name, e.number, e.holder, e.life, NULL,
                                     'abandoned', NULL, NULL, NULL, NULL, NULL)::entry)
                FROM elections e
                WHERE e.ns = p_ns AND e.name = ANY (v_won) AND e.life IS NOT NULL);
        END IF;
        -- A new number, never one used before (H5, H6). A reservation is used up.
        WITH won AS (
            UPDATE elections e
            SET number = e.number + 1 + ((v_era - e.era)::bigint << 20), era = v_era,
                won_by = p_life, won_nonce = t.number, holder = p_member, life = p_life,
                elected_at = p_now, heir = NULL, heir_until = NULL,
                asked = false, asked_reason = NULL, asked_by = NULL, asked_to = NULL
            FROM _items(v_won, NULL, v_won_nonces) t
            CROSS JOIN LATERAL (
                SELECT x.ctid FROM elections x
                WHERE x.ns = p_ns AND x.name = t.name OFFSET 0) f
            WHERE e.ctid = f.ctid
            RETURNING e.name, e.number
        )
        SELECT v_elected || array_agg(ROW('elected', w.name, w.number, p_member, p_life, NULL,
                                          NULL, NULL, NULL, NULL, NULL, NULL)::entry)
            INTO v_elected FROM won w;
        v_count := v_count + cardinality(v_won);
    END IF;
    PERFORM _tell(p_ns, p_now, v_entries || v_elected);

    -- A win counts as a heartbeat, also when it repeats an earlier one.
    IF v_count > 0 OR EXISTS (
            SELECT FROM _items(p_names, NULL, p_nonces) t
            JOIN elections e ON e.ns = p_ns AND e.name = t.name
            WHERE (e.life = p_life) IS TRUE AND e.won_nonce = t.number) THEN
        UPDATE members m SET ttl = p_ttl_us, expires_at = _after(p_now, p_ttl_us),
                holds = m.holds + v_count - v_own
            WHERE m.ns = p_ns AND m.id = p_member AND m.life = p_life;
    END IF;
    RETURN v_fenced;
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
    v_exact text[];
    v_unwon text[];
    v_names text[];
    v_causes text[];
    v_successors text[];
    v_successor_us bigint[];
BEGIN
    PERFORM _prepare(p_wait_ms);
    PERFORM _enter(p_ns);
    WITH exact AS (
        SELECT DISTINCT ON (t.name) t.name, t.ord, p_causes[t.ord] AS cause,
               p_successors[t.ord] AS successor, p_successor_us[t.ord] AS successor_us,
               e.number AS newest, e.life IS NOT NULL AND t.number IS NOT NULL AS term
        FROM _items(p_elections, NULL, p_numbers) t
        CROSS JOIN LATERAL (
            SELECT * FROM elections e WHERE e.ns = p_ns AND e.name = t.name OFFSET 0) e
        WHERE t.number IS NULL
           OR (t.number = e.number AND e.life = p_life AND e.holder = p_member)
        ORDER BY t.name, t.number NULLS LAST
    )
    SELECT array_agg(x.name), array_agg(x.name) FILTER (WHERE x.newest = 0),
           array_agg(x.name ORDER BY x.ord) FILTER (WHERE x.term),
           array_agg(coalesce(x.cause, 'resigned') ORDER BY x.ord) FILTER (WHERE x.term),
           array_agg(x.successor ORDER BY x.ord) FILTER (WHERE x.term),
           array_agg(x.successor_us ORDER BY x.ord) FILTER (WHERE x.term)
    INTO v_exact, v_unwon, v_names, v_causes, v_successors, v_successor_us FROM exact x;
    IF v_exact IS NULL THEN RETURN; END IF;
    PERFORM _withdraw(p_ns, p_member, p_life, v_exact);
    IF v_names IS NOT NULL THEN
        PERFORM _vacate(p_ns, clock_timestamp(), v_names, v_causes, v_successors, v_successor_us,
            p_grace_us);
    END IF;
    IF v_unwon IS NOT NULL THEN
        PERFORM _forget(p_ns, v_unwon);
    END IF;
END $$;
