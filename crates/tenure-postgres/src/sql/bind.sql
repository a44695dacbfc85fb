-- Taking, changing and dropping names: what is written, and the verb. What could go wrong
-- stands in judge.sql.

-- The revision at which none of these names is there, bound or void; NULL if one is. Each is
-- looked up by its whole key: see _items().
CREATE FUNCTION {schema}._none_there(p_ns text, p_names text[]) RETURNS bigint
LANGUAGE sql STABLE AS $$
    SELECT a.rev FROM names_at a WHERE a.ns = p_ns AND NOT EXISTS (
        SELECT FROM unnest(p_names) AS t(name), LATERAL (
            SELECT FROM names n WHERE n.ns = p_ns AND n.name = t.name OFFSET 0) n)
$$;

-- Takes many names, if none of them is there: what is to be written is the same for all,
-- and nothing has to be judged. The caller has locked where they stand (p_rev), which was
-- p_before as it is written down; at p_free none of them was there. Says whether it was done:
-- the n-th then has token and revision p_rev + n. Nothing was done if one of them is there,
-- bound or void, or is named twice.
--
-- No transaction adds a name without that lock and without writing another revision: if p_free
-- is still the last, none came after the look, and if it is not, they are looked for again.
-- One that another transaction is about to delete is seen by that look and leads the longer
-- way, on which it is not waited for (Q10): an INSERT would wait.
CREATE FUNCTION {schema}._bind_new(
    p_ns text, p_member text, p_life uuid, p_now timestamptz, p_before bigint, p_free bigint,
    p_rev bigint, p_names text[], p_nonces bigint[], p_endpoints text[], p_indexes jsonb[],
    p_datas bytea[]
) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF p_free IS DISTINCT FROM p_before AND _none_there(p_ns, p_names) IS NULL THEN
        RETURN false;
    END IF;
    INSERT INTO names (ns, name, token, rev, owner, life, by_life, nonce, endpoint, idx, data,
        bound_at)
    SELECT p_ns, t.name, p_rev + t.ord, p_rev + t.ord, p_member, p_life, p_life, t.nonce,
           t.endpoint, coalesce(t.idx, '{}'), coalesce(t.data, ''), p_now
    FROM unnest(p_names, p_nonces, p_endpoints, p_indexes, p_datas)
        WITH ORDINALITY AS t(name, nonce, endpoint, idx, data, ord);
    RETURN true;
EXCEPTION WHEN unique_violation THEN RETURN false;
END $$;

-- Does what is asked of these names, of which none is there twice. The caller has locked
-- where they stand (p_rev); says where they stand then.
CREATE FUNCTION {schema}._bind_some(
    p_ns text, p_member text, p_life uuid, p_now timestamptz, p_rev bigint, p_names text[],
    p_nonces bigint[], p_whats text[], p_tokens bigint[], p_expects bigint[], p_endpoints text[],
    p_indexes jsonb[], p_datas bytea[],
    OUT answers {schema}.bound[], OUT rev bigint
) LANGUAGE plpgsql AS $$
BEGIN
    -- Judged once, so that all that follows goes by the same verdicts.
    WITH judged AS MATERIALIZED (
        SELECT * FROM _judge(p_ns, p_member, p_life, p_now, p_names, p_nonces, p_whats, p_tokens,
            p_expects)
    ), ours AS MATERIALIZED (
        -- What is to be changed, unless another transaction holds it.
        SELECT n.name FROM names n WHERE n.ns = p_ns AND n.name = ANY (ARRAY(
            SELECT j.name FROM judged j WHERE j.verdict IN ('free', 'change', 'drop')))
        FOR UPDATE SKIP LOCKED
    ), done AS MATERIALIZED (
        SELECT j.*, CASE WHEN j.verdict = 'expired' OR o.name IS NULL
                    AND j.verdict IN ('free', 'change', 'drop') THEN 'busy'
                ELSE j.verdict END AS did,
               -- In the order of the operations; one that changes nothing uses none up.
               p_rev + count(*) FILTER (WHERE j.verdict = 'new' OR o.name IS NOT NULL)
                    OVER (ORDER BY j.ord) AS at
        FROM judged j LEFT JOIN ours o ON o.name = j.name
    ), wanted AS (
        SELECT d.*, v.endpoint AS its_endpoint, coalesce(v.idx, '{}') AS its_idx,
               coalesce(v.data, '') AS its_data
        FROM done d LEFT JOIN unnest(p_endpoints, p_indexes, p_datas)
            WITH ORDINALITY AS v(endpoint, idx, data, ord) ON v.ord = d.ord
        WHERE d.did IN ('new', 'free', 'change')
    ), made AS (
        INSERT INTO names (ns, name, token, rev, owner, life, by_life, nonce, endpoint, idx, data,
            bound_at)
        SELECT p_ns, w.name, w.at, w.at, CASE w.what WHEN 'take' THEN p_member END,
               CASE w.what WHEN 'take' THEN p_life END, p_life, w.nonce, w.its_endpoint, w.its_idx,
               w.its_data, p_now
        FROM wanted w WHERE w.did = 'new'
    ), changed AS (
        UPDATE names n SET rev = w.at, by_life = p_life, nonce = w.nonce,
            token = CASE w.did WHEN 'change' THEN n.token ELSE w.at END,
            owner = CASE WHEN w.did = 'change' THEN n.owner WHEN w.what = 'take' THEN p_member END,
            life = CASE WHEN w.did = 'change' THEN n.life WHEN w.what = 'take' THEN p_life END,
            endpoint = w.its_endpoint, idx = w.its_idx, data = w.its_data,
            bound_at = CASE w.did WHEN 'change' THEN n.bound_at ELSE p_now END
        FROM wanted w WHERE w.did <> 'new' AND n.ns = p_ns AND n.name = w.name
    ), dropped AS (
        DELETE FROM names n WHERE n.ns = p_ns AND n.name = ANY (ARRAY(
            SELECT d.name FROM done d WHERE d.did = 'drop'))
    ), noted AS (
        INSERT INTO names_gone (ns, rev, name)
        SELECT p_ns, d.at, d.name FROM done d WHERE d.did = 'drop'
    )
    SELECT array_agg(CASE
            WHEN d.did IN ('new', 'free') THEN ROW(d.ord, 'bound', d.name, d.at, d.at,
                CASE d.what WHEN 'take' THEN p_member END, CASE d.what WHEN 'take' THEN p_life END,
                NULL, NULL, NULL, 0, _ms(p_now))::bound
            WHEN d.did = 'change' THEN ROW(d.ord, 'bound', d.name, d.token, d.at, d.owner, d.life,
                NULL, NULL, NULL, 0, _ms(d.bound_at))::bound
            WHEN d.did IN ('same', 'taken', 'gone') THEN ROW(d.ord,
                CASE d.did WHEN 'same' THEN 'bound' ELSE d.did END, d.name, d.token, d.rev, d.owner,
                d.life, d.endpoint, d.idx, d.data, d.left_us, _ms(d.bound_at))::bound
            ELSE ROW(d.ord, CASE d.did WHEN 'busy' THEN 'busy' ELSE 'gone' END, d.name, NULL, NULL,
                NULL, NULL, NULL, NULL, NULL, NULL, NULL)::bound END ORDER BY d.ord), max(d.at)
        INTO answers, rev FROM done d;
END $$;

-- The same of names that may be there twice: so many at a time that none is.
CREATE FUNCTION {schema}._bind_all(
    p_ns text, p_member text, p_life uuid, p_now timestamptz, p_rev bigint, p_names text[],
    p_nonces bigint[], p_whats text[], p_tokens bigint[], p_expects bigint[], p_endpoints text[],
    p_indexes jsonb[], p_datas bytea[],
    OUT answers {schema}.bound[], OUT rev bigint
) LANGUAGE plpgsql AS $$
DECLARE
    v_from integer := 1;
    v_some record;
    v_answer bound;
BEGIN
    IF cardinality(p_names) = (SELECT count(DISTINCT t.name) FROM unnest(p_names) AS t(name)) THEN
        SELECT t.* INTO answers, rev FROM _bind_some(p_ns, p_member, p_life, p_now, p_rev,
            p_names, p_nonces, p_whats, p_tokens, p_expects, p_endpoints, p_indexes, p_datas) t;
        RETURN;
    END IF;
    rev := p_rev;
    FOR i IN 2 .. cardinality(p_names) + 1 LOOP
        CONTINUE WHEN i <= cardinality(p_names) AND p_names[i] <> ALL (p_names[v_from:i - 1]);
        v_some := _bind_some(p_ns, p_member, p_life, p_now, rev, p_names[v_from:i - 1],
            p_nonces[v_from:i - 1], p_whats[v_from:i - 1], p_tokens[v_from:i - 1],
            p_expects[v_from:i - 1], p_endpoints[v_from:i - 1], p_indexes[v_from:i - 1],
            p_datas[v_from:i - 1]);
        FOREACH v_answer IN ARRAY v_some.answers LOOP
            v_answer.op := v_answer.op + v_from - 1;
            answers := answers || v_answer;
        END LOOP;
        rev := v_some.rev;
        v_from := i;
    END LOOP;
END $$;

-- Writes where the names stand, tells those who listen, and forgets what was dropped long
-- ago. Says whether it was told.
--
-- A namespace's names are told of every 20 ms at most: each notification makes the commits
-- of the whole server take turns. A caller that changes one sooner is answered that it
-- was not told, and calls tell_names() later; what is never told is found by those who look.
-- Nothing is told from when half of the server's queue is taken: see _write().
CREATE FUNCTION {schema}._names_written(
    p_ns text, p_now timestamptz, p_before bigint, p_rev bigint, p_era integer,
    p_kept_from bigint, p_told_at timestamptz
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    v_tell boolean := (p_told_at > p_now - interval '20 milliseconds') IS NOT TRUE
        AND _queue_usage() < 0.5;
BEGIN
    UPDATE names_at a SET rev = p_rev, era = p_era,
            kept_from = greatest(p_kept_from, p_rev - 16384),
            told_at = CASE WHEN v_tell THEN p_now ELSE a.told_at END,
            told_rev = CASE WHEN v_tell THEN p_rev ELSE a.told_rev END
        WHERE a.ns = p_ns;
    IF v_tell THEN PERFORM _notify_names(p_ns); END IF;
    -- Not each time, and then as many as were dropped since at the most, and some more.
    IF p_rev >> 6 <> p_before >> 6 THEN
        DELETE FROM names_gone g WHERE g.ctid = ANY (ARRAY(
            SELECT o.ctid FROM names_gone o WHERE o.ns = p_ns AND o.rev < p_rev - 16384
            ORDER BY o.rev LIMIT least(p_rev - p_before, 1000) + 128));
    END IF;
    RETURN v_tell;
END $$;

CREATE FUNCTION {schema}._notify_names(p_ns text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify({channel}, p_ns || E'\n'
        || coalesce((SELECT n.seq FROM namespaces n WHERE n.ns = p_ns), 0) || E'\nn');
END $$;

-- Tells sessions that listen of the last changes of names, unless they were told, for a caller
-- that was answered that it was not told. A transaction that has locked the row sees to it itself.
CREATE FUNCTION {schema}.tell_names(p_ns text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER {planned} AS $$
BEGIN
    PERFORM 1 FROM names_at a WHERE a.ns = p_ns AND a.told_rev < a.rev;
    IF NOT FOUND OR _queue_usage() >= 0.5 THEN RETURN; END IF;
    UPDATE names_at a SET told_at = clock_timestamp(), told_rev = a.rev
        WHERE a.ctid = (SELECT o.ctid FROM names_at o
            WHERE o.ns = p_ns AND o.told_rev < o.rev FOR UPDATE SKIP LOCKED);
    IF FOUND THEN PERFORM _notify_names(p_ns); END IF;
END $$;

-- Clears away names of a life that is over, so many at most, and says whether none is left.
-- One that is locked is left for later.
CREATE FUNCTION {schema}._sweep_names(p_ns text, p_life uuid, p_most integer) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM names n WHERE n.ctid = ANY (ARRAY(SELECT o.ctid FROM names o
        WHERE o.life = p_life AND o.ns = p_ns LIMIT p_most FOR UPDATE SKIP LOCKED));
    PERFORM 1 FROM names n WHERE n.life = p_life AND n.ns = p_ns LIMIT 1;
    RETURN NOT FOUND;
END $$;

-- The same for one of the lives that left more behind than their end cleared away, by one
-- who has not entered the namespace.
CREATE FUNCTION {schema}._sweep_some_names(p_ns text, p_most integer) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_life uuid;
BEGIN
    SELECT r.life INTO v_life FROM remains r WHERE r.ns = p_ns LIMIT 1 FOR UPDATE SKIP LOCKED;
    IF NOT FOUND OR NOT _sweep_names(p_ns, v_life, p_most) THEN RETURN; END IF;
    PERFORM 1 FROM candidates c WHERE c.life = v_life AND c.ns = p_ns LIMIT 1;
    IF NOT FOUND THEN DELETE FROM remains r WHERE r.ns = p_ns AND r.life = v_life; END IF;
END $$;

-- Looks at names before anything is locked: whether the namespace has to be entered, to end
-- a life or to move the journal on. If all of them are taken by others that live, that is
-- the answer: the caller waits for no lock to be told, and nothing is written.
CREATE FUNCTION {schema}._look_at_names(
    p_ns text, p_member text, p_life uuid, p_seen bigint, p_known bigint, p_names text[],
    p_nonces bigint[], p_whats text[], p_tokens bigint[], p_expects bigint[],
    OUT enters boolean, OUT answers {schema}.bound[], OUT free bigint
) LANGUAGE plpgsql AS $$
DECLARE
    v_now timestamptz := clock_timestamp();
    v_taken boolean := false;
    v_behind boolean := false;
BEGIN
    enters := false;
    -- Of many, a short look at all of them tells whether there is anything to judge.
    IF cardinality(p_names) > 8 THEN free := _none_there(p_ns, p_names); END IF;
    IF free IS NULL THEN
        SELECT bool_and(j.verdict = 'taken'), coalesce(bool_or(j.verdict = 'expired'), false)
            INTO v_taken, enters FROM _judge(p_ns, p_member, p_life, v_now, p_names, p_nonces,
                p_whats, p_tokens, p_expects) j;
    END IF;
    IF p_life IS NOT NULL AND p_seen > 0 THEN
        PERFORM 1 FROM namespaces n WHERE n.ns = p_ns AND n.seq >= p_seen;
        v_behind := NOT FOUND;
    END IF;
    enters := enters OR v_behind;
    IF v_taken IS NOT TRUE OR v_behind THEN RETURN; END IF;
    IF p_life IS NOT NULL THEN
        PERFORM 1 FROM members m, _names_stand(p_ns) s
            WHERE m.ns = p_ns AND m.id = p_member AND m.life = p_life AND NOT m.condemned
              AND m.expires_at > v_now AND s.rev >= p_known;
        IF NOT FOUND THEN RETURN; END IF;
    END IF;
    -- A second look, of a later moment than the first: it answers only what still holds.
    SELECT array_agg(ROW(j.ord, 'taken', j.name, j.token, j.rev, j.owner, j.life, j.endpoint,
            j.idx, j.data, j.left_us, _ms(j.bound_at))::bound ORDER BY j.ord) INTO answers
        FROM _judge(p_ns, p_member, p_life, v_now, p_names, p_nonces, p_whats, p_tokens,
            p_expects) j
        HAVING bool_and(j.verdict = 'taken');
END $$;

-- What bind() does, once it has entered the namespace if it has to. Whose ttl has run out
-- since it looked is "busy" this time. Of names that were all made anew by one statement it
-- says after which revision, and nothing of each.
CREATE FUNCTION {schema}._bind(
    p_ns text, p_member text, p_life uuid, p_ttl_us bigint, p_names text[], p_nonces bigint[],
    p_whats text[], p_endpoints text[], p_indexes jsonb[], p_datas bytea[], p_tokens bigint[],
    p_expects bigint[], p_election text, p_number bigint, p_seen bigint, p_told bigint,
    p_known bigint, p_entered boolean, p_free bigint,
    OUT outcome text, OUT newest bigint, OUT answers {schema}.bound[], OUT renewed boolean,
    OUT told boolean, OUT made_after bigint, OUT now timestamptz
) LANGUAGE plpgsql AS $$
DECLARE
    v_open record := _open_names(p_ns, p_member, p_life, p_seen, p_told, p_known, p_election,
        p_number);
    v_done record;
    v_rev bigint;
BEGIN
    told := true;
    outcome := v_open.outcome;
    newest := v_open.newest;
    IF outcome = 'busy' THEN
        outcome := NULL;
        answers := ARRAY(SELECT ROW(t.ord, 'busy', t.name, NULL, NULL, NULL, NULL, NULL, NULL,
            NULL, NULL, NULL)::bound FROM unnest(p_names) WITH ORDINALITY AS t(name, ord));
    END IF;
    IF v_open.outcome IS NOT NULL OR cardinality(p_names) = 0 THEN RETURN; END IF;
    -- Only from inside the namespace, which every end of a life takes (M2). In the order of
    -- the operations, so that the journal tells the ends in that order.
    IF p_entered THEN
        PERFORM _expire(p_ns, e.owner) FROM (
            SELECT j.owner FROM _judge(p_ns, p_member, p_life, v_open.now, p_names, p_nonces,
                p_whats, p_tokens, p_expects) j
            WHERE j.verdict = 'expired' GROUP BY j.owner ORDER BY min(j.ord)) e;
    END IF;
    now := v_open.now;
    renewed := cardinality(p_names) > 8 AND 'take' = ALL (p_whats);
    IF renewed THEN
        renewed := _bind_new(p_ns, p_member, p_life, now, v_open.before, p_free, v_open.rev,
            p_names, p_nonces, p_endpoints, p_indexes, p_datas);
    END IF;
    IF renewed THEN
        made_after := v_open.rev;
        v_rev := v_open.rev + cardinality(p_names);
    ELSE
        v_done := _bind_all(p_ns, p_member, p_life, now, v_open.rev, p_names, p_nonces,
            p_whats, p_tokens, p_expects, p_endpoints, p_indexes, p_datas);
        answers := v_done.answers;
        v_rev := v_done.rev;
        PERFORM 1 FROM unnest(answers) a
            WHERE a.outcome = 'bound' AND a.life = p_life AND a.owner = p_member LIMIT 1;
        renewed := FOUND;
    END IF;
    IF v_rev > v_open.rev THEN
        told := _names_written(p_ns, now, v_open.rev, v_rev, v_open.era, v_open.kept_from,
            v_open.told_at);
    END IF;
    IF renewed THEN
        UPDATE members m SET ttl = p_ttl_us, expires_at = _after(now, p_ttl_us)
            WHERE m.ns = p_ns AND m.id = p_member AND m.life = p_life;
    END IF;
    PERFORM _sweep_some_names(p_ns, 64 + cardinality(p_names));
END $$;

-- Takes, changes and drops names, all in one step. For each, p_whats says what: 'take' it
-- for the caller's life or 'post' it without an owner, 'change' what the life owns or 'repost'
-- what has no owner, both under its token and, if p_expects has one, at exactly this revision;
-- 'drop' it under its token. A row for each, with its place among them: "bound"; "taken" by
-- another; "gone", with what is there instead; "busy" if a transaction holds it, to be asked
-- again. One row "ended" or "superseded" if the caller is no member, or "fenced" with the
-- newest number if it does not hold the term p_number of p_election: then nothing changed.
-- A NULL member binds without an owner alone. Being bound counts as a heartbeat. With p_brief many
-- names that were all taken anew are one row "made": the n-th has token and revision rev + n.
CREATE FUNCTION {schema}.bind(
    p_ns text, p_member text, p_life uuid, p_ttl_us bigint, p_names text[], p_nonces bigint[],
    p_whats text[], p_endpoints text[] DEFAULT NULL, p_indexes jsonb[] DEFAULT NULL,
    p_datas bytea[] DEFAULT NULL, p_tokens bigint[] DEFAULT NULL, p_expects bigint[] DEFAULT NULL,
    p_election text DEFAULT NULL, p_number bigint DEFAULT NULL, p_wait_ms integer DEFAULT 0,
    p_seen bigint DEFAULT 0, p_known bigint DEFAULT 0, p_told bigint DEFAULT 0,
    p_brief boolean DEFAULT false
) RETURNS TABLE (op integer, outcome text, name text, token bigint, rev bigint, owner text,
    life uuid, endpoint text, idx jsonb, data bytea, left_us bigint, bound_ms bigint,
    newest bigint, told boolean)
LANGUAGE plpgsql SECURITY DEFINER {planned} AS $$
#variable_conflict use_column
DECLARE
    v_ready boolean := _check_bind(p_ns, p_member, p_life, p_ttl_us, p_names, p_election)
        AND _check_ops(p_life, p_names, p_nonces, p_whats, p_tokens, p_endpoints, p_indexes,
            p_datas) AND _prepare(p_wait_ms);
    v_look record := _look_at_names(p_ns, p_member, p_life, p_seen, p_known, p_names, p_nonces,
        p_whats, p_tokens, p_expects);
    v_all record;
BEGIN
    IF v_look.answers IS NOT NULL AND p_election IS NULL THEN
        RETURN QUERY SELECT a.*, NULL::bigint, true FROM unnest(v_look.answers) a;
        RETURN;
    END IF;
    IF v_look.enters THEN
        v_ready := pg_advisory_xact_lock(_lock(p_ns)) IS NOT NULL;
    END IF;
    v_all := _bind(p_ns, p_member, p_life, p_ttl_us, p_names, p_nonces, p_whats, p_endpoints,
        p_indexes, p_datas, p_tokens, p_expects, p_election, p_number, p_seen, p_told,
        p_known, v_look.enters, v_look.free);
    IF v_all.made_after IS NOT NULL AND p_brief THEN
        RETURN QUERY SELECT 0, 'made', NULL, NULL::bigint, v_all.made_after, p_member, p_life,
            NULL, NULL::jsonb, NULL::bytea, p_ttl_us, _ms(v_all.now), NULL::bigint, v_all.told;
    ELSIF v_all.made_after IS NOT NULL THEN
        RETURN QUERY SELECT t.ord::integer, 'bound', t.name, v_all.made_after + t.ord,
                v_all.made_after + t.ord, p_member, p_life, NULL, NULL::jsonb, NULL::bytea,
                p_ttl_us, _ms(v_all.now), NULL::bigint, v_all.told
            FROM unnest(p_names) WITH ORDINALITY AS t(name, ord);
    ELSIF v_all.outcome IS NULL THEN
        RETURN QUERY SELECT a.op, a.outcome, a.name, a.token, a.rev, a.owner, a.life, a.endpoint,
                a.idx, a.data, CASE WHEN v_all.renewed AND a.life = p_life AND a.owner = p_member
                    THEN p_ttl_us ELSE a.left_us END, a.bound_ms, NULL::bigint, v_all.told
            FROM unnest(v_all.answers) a;
    ELSE
        RETURN QUERY SELECT 0, v_all.outcome, NULL, NULL::bigint, NULL::bigint, NULL, NULL::uuid,
            NULL, NULL::jsonb, NULL::bytea, NULL::bigint, NULL::bigint, v_all.newest, true;
    END IF;
END $$;
