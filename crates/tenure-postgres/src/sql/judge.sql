-- Names: taking, changing, dropping and reading them.
--
-- Locks are taken in one order: the namespace (only by a bind that has to end a life, or to
-- move the journal on), the caller's member row, the row of names_at, and then the names
-- themselves, for which no bind waits. So binding names waits for no claim, and a name that
-- another transaction holds is answered "busy". What could go wrong, and what prevents
-- it:
--
-- - A takes a name while another ends A. A's bind holds A's member row: a step that ends A
--   finds it locked and leaves it (_expire), or waits and sweeps what A took (_end).
-- - Two take one name. The second waits for the row of names_at, and looks at the name by
--   a statement of its own after that: it sees what the first one wrote.
-- - The owner's ttl has run out, and its heartbeat is under way. It is ended by _expire(),
--   under the namespace's lock and that of its row, as by a claim (M2); if its row is held
--   the answer is "busy".
-- - A join supersedes a life that takes a name at this moment. The join locks the member's
--   row before it looks whether the life owns anything.
-- - Two take many names at once that overlap, in different orders. Neither waits for a name:
--   the second waits for the row of names_at, sees that others were added since it looked,
--   and looks again (_bind_new).
-- - One of many names is dropped, or a void one cleared away, by a transaction that is not
--   over. It is still seen, and is "busy". If it is over, the name is new.
-- - One of many names is there twice, was taken by this very attempt, or is void with its
--   owner's life or ttl: all of them are judged one by one.
-- - The fence's term is given to another meanwhile. Its row is locked FOR KEY SHARE until
--   the names are seen, as by fence(); one that is being won at this moment is not waited
--   for: "busy".

-- Whether an index has at most 8 pairs of texts that can be.
CREATE FUNCTION {schema}._is_index(p_idx jsonb) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF jsonb_typeof(p_idx) <> 'object' THEN RETURN false; END IF;
    RETURN (SELECT count(*) <= 8 AND coalesce(bool_and(jsonb_typeof(p.value) = 'string'
            AND _is_name(p.key) AND _is_name(p.value #>> '{}')), true)
        FROM jsonb_each(p_idx) p);
END $$;

-- Refuses changes of names that can never be right.
CREATE FUNCTION {schema}._check_ops(
    p_life uuid, p_names text[], p_nonces bigint[], p_whats text[], p_tokens bigint[],
    p_endpoints text[], p_indexes jsonb[], p_datas bytea[]
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    v_why text;
    -- One look at all of them is faster than one at each.
    v_plain boolean := array_to_string(p_names, '') ~ '^[!-~]*$';
    v_plain_endpoints boolean := (array_to_string(p_endpoints, '') ~ '^[!-~]*$') IS TRUE;
BEGIN
    SELECT min(CASE
        WHEN CASE WHEN v_plain THEN octet_length(t.name) BETWEEN 1 AND 200
             ELSE _is_name(t.name) END IS NOT TRUE THEN
            'a name has 1 to 200 bytes, no control characters, and no space at either end'
        WHEN t.nonce IS NULL THEN 'each change of a name has a nonce'
        WHEN (t.what IN ('take', 'post', 'change', 'repost', 'drop')) IS NOT TRUE THEN
            'a name is taken by take or post, changed by change or repost, or dropped by drop'
        WHEN t.what IN ('take', 'change') AND p_life IS NULL THEN
            'a name is taken or changed for the life of a member: name it, or post to nobody'
        WHEN t.what IN ('change', 'repost', 'drop') AND t.token IS NULL THEN
            'a change or a drop names the token'
        WHEN octet_length(t.data) > CASE WHEN t.what IN ('take', 'change') THEN 4096
                ELSE 65536 END THEN
            'the data of a name has at most 4096 bytes, or 65536 if nobody owns it'
        -- What is left out is not looked at: NULL AND x looks at x.
        WHEN CASE WHEN t.endpoint IS NULL OR v_plain_endpoints
                AND octet_length(t.endpoint) BETWEEN 1 AND 255 THEN false
             ELSE NOT _are_endpoints(ARRAY[t.endpoint]) END THEN
            'an endpoint has 1 to 255 printable bytes'
        WHEN CASE WHEN t.idx IS NULL OR t.idx = '{}' THEN false ELSE NOT _is_index(t.idx) END THEN
            'an index has at most 8 keys and texts of 1 to 200 printable bytes'
        END) INTO v_why
    FROM unnest(p_names, p_nonces, p_whats, p_tokens, p_endpoints, p_indexes, p_datas)
        AS t(name, nonce, what, token, endpoint, idx, data);
    RETURN v_why IS NULL OR _refuse(v_why);
END $$;

-- Refuses a request that can never be right.
CREATE FUNCTION {schema}._check_bind(
    p_ns text, p_member text, p_life uuid, p_ttl_us bigint, p_names text[], p_election text
) RETURNS boolean LANGUAGE sql AS $$
    SELECT {schema}._check_name('a namespace', p_ns)
       AND (p_ns IS NOT NULL OR {schema}._refuse('a namespace is named'))
       AND ((p_member IS NULL) = (p_life IS NULL)
            OR {schema}._refuse('a member has an id and a life'))
       AND (p_life IS NULL OR {schema}._check_ttl(p_ttl_us))
       AND (p_life IS NOT NULL OR p_election IS NULL
            OR {schema}._refuse('only a member can hold the term of a fence: name it'))
       AND (coalesce(array_ndims(p_names) = 1 AND array_lower(p_names, 1) = 1, true)
            OR {schema}._refuse('names are a plain list'))
$$;

-- What each of these changes comes to, as things stand, with the row that is there:
--
-- - new, free (its owner's life is over), change, drop: it is to be written;
-- - same: this very attempt wrote it (E2);
-- - taken, gone: something else is there; none: nothing is;
-- - expired: taken by a life that has to be ended first.
--
-- Each name is looked up by its whole key: see _items().
CREATE FUNCTION {schema}._judge(
    p_ns text, p_member text, p_life uuid, p_now timestamptz, p_names text[], p_nonces bigint[],
    p_whats text[], p_tokens bigint[], p_expects bigint[]
) RETURNS TABLE (ord bigint, name text, what text, nonce bigint, verdict text, token bigint,
    rev bigint, owner text, life uuid, endpoint text, idx jsonb, data bytea, bound_at timestamptz,
    left_us bigint)
LANGUAGE sql STABLE AS $$
    SELECT t.ord, t.name, t.what, t.nonce, CASE
        WHEN t.what IN ('take', 'post') THEN CASE
            WHEN n.name IS NULL THEN 'new'
            WHEN n.by_life IS NOT DISTINCT FROM p_life AND n.nonce = t.nonce
                 AND (n.owner, n.life) IS NOT DISTINCT FROM (
                    CASE t.what WHEN 'take' THEN p_member END,
                    CASE t.what WHEN 'take' THEN p_life END) THEN 'same'
            WHEN n.life IS NULL THEN 'taken'
            -- No row of that life: the name is void, though it was not cleared away (M5).
            WHEN m.expires_at IS NULL THEN 'free'
            WHEN m.expires_at > p_now THEN 'taken' ELSE 'expired' END
        WHEN n.token = t.token AND (t.what <> 'change' AND n.life IS NULL
             OR t.what <> 'repost' AND n.life = p_life AND n.owner = p_member) THEN CASE
            WHEN t.what = 'drop' THEN 'drop'
            -- The nonce before the revision: a repeat expects the one that it changed itself.
            WHEN n.by_life IS NOT DISTINCT FROM p_life AND n.nonce = t.nonce THEN 'same'
            WHEN n.by_life = p_life AND t.nonce < n.nonce OR t.expect <> n.rev THEN 'gone'
            ELSE 'change' END
        WHEN n.name IS NULL OR n.life IS NOT NULL AND m.expires_at IS NULL THEN 'none'
        ELSE 'gone' END,
        n.token, n.rev, n.owner, n.life, n.endpoint, n.idx, n.data, n.bound_at,
        CASE WHEN n.life IS NULL THEN 0
             WHEN m.expires_at > p_now THEN _us(m.expires_at - p_now) ELSE 500000 END
    FROM unnest(p_names, p_nonces, p_whats, p_tokens, p_expects)
         WITH ORDINALITY AS t(name, nonce, what, token, expect, ord)
    LEFT JOIN LATERAL (
        SELECT * FROM names n WHERE n.ns = p_ns AND n.name = t.name OFFSET 0) n ON true
    LEFT JOIN LATERAL (
        SELECT m.expires_at FROM members m
        WHERE m.ns = p_ns AND m.id = n.owner AND m.life = n.life OFFSET 0) m ON true
    WHERE t.ord <= cardinality(p_names)
$$;

-- Where the names of a namespace stand in the present era. Revisions go by the eras of term
-- numbers, and by their floor: above what a server may have given out before it was started
-- again. What an earlier era changed last may be forgotten, so that no reader is told what
-- changed since then.
CREATE FUNCTION {schema}._names_stand(p_ns text)
RETURNS TABLE (rev bigint, era integer, kept_from bigint)
LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN t.same THEN t.rev ELSE t.reached END, t.era,
           CASE WHEN t.same THEN t.kept_from ELSE t.reached END
    FROM (
        SELECT s.era, coalesce(a.rev, 0) AS rev, coalesce(a.kept_from, 0) AS kept_from,
               coalesce(a.era, 0) = s.era AND coalesce(a.rev, 0) >= s.floor AS same,
               greatest(coalesce(a.rev, 0) + 1 + ((s.era - coalesce(a.era, 0))::bigint << 16),
                   s.floor) AS reached
        FROM settings s LEFT JOIN names_at a ON a.ns = p_ns) t
$$;

-- The caller has seen a revision that the names have not reached: it was forgotten. In the
-- same step, before any token is given out, the era rises above it.
CREATE FUNCTION {schema}._names_rolled_back(p_ns text, p_known bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_ready boolean := p_known < 9007199254740992 OR _refuse('a revision is less than 2^53');
BEGIN
    PERFORM _raise(e.era + 1, p_known,
        format('a member of %s had seen its names up to revision %s', p_ns, p_known))
        FROM _era() e;
END $$;

-- Whether a life holds exactly this term, which no other is given until the caller's
-- transaction ends: "held"; "busy" if it is being given to another at this moment; or
-- "fenced".
CREATE FUNCTION {schema}._hold_term(
    p_ns text, p_member text, p_life uuid, p_now timestamptz, p_election text, p_number bigint,
    OUT outcome text, OUT newest bigint
) LANGUAGE plpgsql AS $$
DECLARE
    v_held boolean;
BEGIN
    PERFORM 1 FROM elections e
        WHERE e.ns = p_ns AND e.name = p_election AND e.number = p_number AND e.holder = p_member
          AND (e.life = p_life) IS TRUE AND (e.heir_until > p_now) IS NOT FALSE
        FOR KEY SHARE SKIP LOCKED;
    IF FOUND THEN
        outcome := 'held';
        RETURN;
    END IF;
    SELECT e.number, e.number = p_number AND e.holder = p_member AND e.life = p_life
            AND (e.heir_until > p_now) IS NOT FALSE INTO newest, v_held
        FROM elections e WHERE e.ns = p_ns AND e.name = p_election;
    newest := coalesce(newest, 0);
    outcome := CASE WHEN v_held THEN 'busy' ELSE 'fenced' END;
END $$;

-- Locks the caller and the names, and says when that was, where the names stand then, and
-- which revision was written down last; or why nothing is to be changed. The namespace is
-- entered already, if p_seen is ahead of it.
CREATE FUNCTION {schema}._open_names(
    p_ns text, p_member text, p_life uuid, p_seen bigint, p_told bigint, p_known bigint,
    p_election text, p_number bigint,
    OUT outcome text, OUT newest bigint, OUT now timestamptz, OUT rev bigint, OUT era integer,
    OUT kept_from bigint, OUT told_at timestamptz, OUT before bigint
) LANGUAGE plpgsql AS $$
DECLARE
    v_until timestamptz;
    v_here boolean;
BEGIN
    IF p_life IS NOT NULL THEN
        SELECT CASE WHEN m.life <> p_life THEN 'superseded' WHEN m.condemned THEN 'ended' END,
               m.expires_at INTO outcome, v_until
            FROM members m WHERE m.ns = p_ns AND m.id = p_member FOR NO KEY UPDATE;
        IF NOT FOUND THEN outcome := 'ended'; END IF;
        IF outcome IS NOT NULL THEN RETURN; END IF;
    END IF;
    SELECT a.told_at, a.rev INTO told_at, before FROM names_at a WHERE a.ns = p_ns FOR UPDATE;
    IF NOT FOUND THEN
        INSERT INTO names_at (ns) VALUES (p_ns) ON CONFLICT DO NOTHING;
        SELECT a.told_at, a.rev INTO told_at, before FROM names_at a WHERE a.ns = p_ns FOR UPDATE;
    END IF;
    now := clock_timestamp();
    IF v_until <= now THEN
        outcome := 'ended';
        RETURN;
    END IF;
    -- No token is given out before it is sure to be above those forgotten.
    IF p_life IS NOT NULL AND p_seen > 0 THEN
        PERFORM 1 FROM namespaces n WHERE n.ns = p_ns AND n.seq >= p_seen;
        IF NOT FOUND THEN PERFORM _rolled_back(p_ns, p_seen, p_told); END IF;
    END IF;
    SELECT t.rev, t.era, t.kept_from, s.started_at = pg_postmaster_start_time()
            AND s.file = pg_relation_filepath(s.tableoid) INTO rev, era, kept_from, v_here
        FROM settings s, _names_stand(p_ns) t;
    IF v_here IS NOT TRUE THEN
        PERFORM _era();
        SELECT t.* INTO rev, era, kept_from FROM _names_stand(p_ns) t;
    END IF;
    IF p_life IS NOT NULL AND rev < p_known THEN
        PERFORM _names_rolled_back(p_ns, p_known);
        SELECT t.* INTO rev, era, kept_from FROM _names_stand(p_ns) t;
    END IF;
    IF p_election IS NOT NULL THEN
        SELECT t.* INTO outcome, newest FROM _hold_term(p_ns, p_member, p_life, now, p_election,
            p_number) t;
        outcome := nullif(outcome, 'held');
    END IF;
END $$;
