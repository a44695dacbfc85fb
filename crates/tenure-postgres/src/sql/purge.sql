-- Forgetting what is no longer used, in bounded steps: see tenure-rules/src/purge.rs, which
-- lists what could bring a number back or remove an election that is in use. What is
-- peculiar to this store:
--
-- - A step enters the namespace, as everything does that changes an election. So no claim is
--   under way meanwhile, and one that comes later finds the row gone and the number written.
-- - A fence holds its election's row in a transaction that may be open for long, also when
--   its holder is ended meanwhile. Rows that are locked are passed over.
-- - Binding names does not enter the namespace. Names are removed only with a life that has
--   no row, by which no request can bind, or as any drop is; the drops of names under the lock of
--   names_at.

-- What is kept of the elections that were purged: no number of theirs is above this one, in
-- the era in which it was written.
CREATE TABLE {schema}.forgotten (
    ns     text COLLATE "C" PRIMARY KEY,
    number bigint  NOT NULL,
    era    integer NOT NULL
);

-- The least number that an election may begin with that has none yet; NULL if nothing was
-- ever purged here.
CREATE FUNCTION {schema}._first_number(p_ns text, p_era integer) RETURNS bigint
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT f.number + 1 + ((p_era - f.era)::bigint << 16)
        FROM forgotten f WHERE f.ns = p_ns);
END $$;

-- The elections after p_from and up to p_upto that are unused: no member stands for them, their
-- last winner is no member any more, and they are not paused. And since when; NULL if the
-- journal has forgotten the end of the last holder's life. With p_foretold as it would be if
-- every member whose ttl has run out were ended now.
CREATE FUNCTION {schema}._unused(p_ns text, p_from text, p_upto text, p_foretold boolean)
RETURNS TABLE (name text, since timestamptz)
LANGUAGE sql STABLE AS $$
    WITH lives AS MATERIALIZED (
        SELECT m.life FROM {schema}.members m
        WHERE m.ns = p_ns AND NOT (p_foretold AND m.expires_at <= clock_timestamp())
    )
    SELECT e.name, CASE
        WHEN e.life IS NULL THEN e.changed_at
        WHEN h.life IS NOT NULL THEN clock_timestamp()
        WHEN t.at IS NOT NULL THEN greatest(e.changed_at, t.at) END
    FROM {schema}.elections e
    LEFT JOIN {schema}.members h ON h.ns = p_ns AND h.id = e.holder AND h.life = e.life
    LEFT JOIN LATERAL (
        SELECT t.at FROM {schema}.told t WHERE t.ns = p_ns AND t.over = e.life LIMIT 1) t ON true
    WHERE e.ns = p_ns AND e.name > p_from AND e.name <= p_upto AND NOT e.paused
      AND (e.won_by IN (SELECT l.life FROM lives l)) IS NOT TRUE
      AND (e.life IN (SELECT l.life FROM lives l)) IS NOT TRUE
      AND NOT EXISTS (SELECT FROM {schema}.candidates c
            WHERE c.ns = p_ns AND c.election = e.name
              AND (NOT p_foretold OR c.life IN (SELECT l.life FROM lives l)))
$$;

-- The names under which leaders of these elections left something to successors.
CREATE FUNCTION {schema}._left_in(p_ns text, p_elections text[])
RETURNS TABLE (name text, token bigint)
LANGUAGE sql STABLE AS $$
    SELECT n.name, n.token FROM {schema}.names n
    WHERE n.ns = p_ns AND n.life IS NULL AND n.name = ANY (ARRAY(
        SELECT 'tenure-left:' || e.name FROM unnest(p_elections) AS e(name)))
$$;

-- Drops them, since their elections are gone: no successor asks for them.
CREATE FUNCTION {schema}._drop_left(p_ns text, p_elections text[]) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_names text[];
    v_tokens bigint[];
    v_nonces bigint[];
    v_whats text[];
BEGIN
    SELECT array_agg(l.name), array_agg(l.token), array_agg(0::bigint), array_agg('drop'::text)
        INTO v_names, v_tokens, v_nonces, v_whats FROM _left_in(p_ns, p_elections) l;
    IF v_names IS NULL THEN RETURN 0; END IF;
    PERFORM _bind(p_ns, NULL, NULL, 0, v_names, v_nonces, v_whats, NULL, NULL, NULL, v_tokens,
        NULL, NULL, NULL, 0, 0, 0, true, NULL);
    RETURN cardinality(v_names);
END $$;

-- Removes those of these elections that were not used since p_before, with what their
-- leaders left, and keeps the highest of their numbers. Those of which it is no longer known
-- age from now on.
CREATE FUNCTION {schema}._remove_unused(
    p_ns text, p_from text, p_upto text, p_before timestamptz,
    OUT elections bigint, OUT names bigint
) LANGUAGE plpgsql AS $$
DECLARE
    v_gone text[];
    v_highest bigint;
BEGIN
    UPDATE elections e
        SET holder = NULL, life = NULL, elected_at = NULL, priority = NULL,
            asked = false, asked_reason = NULL, asked_by = NULL, asked_to = NULL,
            heir = NULL, heir_until = NULL, changed_at = clock_timestamp()
        WHERE e.ns = p_ns AND e.name = ANY (ARRAY(
            SELECT u.name FROM _unused(p_ns, p_from, p_upto, false) u WHERE u.since IS NULL));
    WITH removed AS (
        DELETE FROM elections e WHERE e.ctid = ANY (ARRAY(
            SELECT f.ctid FROM elections f
            WHERE f.ns = p_ns AND f.name = ANY (ARRAY(
                SELECT u.name FROM _unused(p_ns, p_from, p_upto, false) u
                WHERE u.since <= p_before))
            FOR UPDATE SKIP LOCKED))
        RETURNING e.name, e.number, e.era
    )
    SELECT count(*), array_agg(r.name), max(CASE WHEN r.era = s.era OR r.number = 0 THEN r.number
            ELSE greatest(r.number + 1 + ((s.era - r.era)::bigint << 16), s.floor) END)
        INTO elections, v_gone, v_highest FROM removed r, settings s;
    IF v_highest > 0 THEN
        INSERT INTO forgotten AS f (ns, number, era)
            SELECT p_ns, v_highest, s.era FROM settings s
            ON CONFLICT (ns) DO UPDATE SET era = excluded.era,
                number = greatest(excluded.number, CASE WHEN f.era = excluded.era THEN f.number
                    ELSE f.number + 1 + ((excluded.era - f.era)::bigint << 16) END);
    END IF;
    names := _drop_left(p_ns, v_gone);
END $$;

-- No member lives here: forgets which names were dropped, so many at most; or, if there are none
-- and nothing else is left either, the journal. The place of the journal and the revision of
-- the names stay.
CREATE FUNCTION {schema}._forget_the_rest(
    p_ns text, p_before timestamptz, p_most integer, OUT drops bigint, OUT journal boolean
) LANGUAGE plpgsql AS $$
DECLARE
    v_rev bigint;
BEGIN
    journal := false;
    SELECT a.rev INTO v_rev FROM names_at a WHERE a.ns = p_ns FOR UPDATE;
    UPDATE names_at a SET kept_from = a.rev WHERE a.ns = p_ns AND a.kept_from <> a.rev
        AND EXISTS (SELECT FROM names_gone g WHERE g.ns = p_ns);
    DELETE FROM names_gone g WHERE g.ns = p_ns AND g.rev = ANY (ARRAY(
        SELECT o.rev FROM names_gone o WHERE o.ns = p_ns AND o.rev <= v_rev
        ORDER BY o.rev LIMIT p_most));
    GET DIAGNOSTICS drops = ROW_COUNT;
    IF drops > 0 THEN RETURN; END IF;
    PERFORM 1 FROM elections e WHERE e.ns = p_ns LIMIT 1;
    IF FOUND THEN RETURN; END IF;
    PERFORM 1 FROM names n WHERE n.ns = p_ns LIMIT 1;
    IF FOUND THEN RETURN; END IF;
    PERFORM 1 FROM told t WHERE t.ns = p_ns AND t.at > p_before
        AND t.seq = (SELECT n.seq FROM namespaces n WHERE n.ns = p_ns);
    IF FOUND THEN RETURN; END IF;
    DELETE FROM told t WHERE t.ns = p_ns;
    journal := FOUND;
    IF journal THEN UPDATE namespaces n SET trimmed = n.seq WHERE n.ns = p_ns; END IF;
END $$;

-- Ends members whose ttl has run out; or clears away what one life left behind. Says how many
-- members and names that were, and whether there was anything to do.
CREATE FUNCTION {schema}._clear_the_dead(
    p_ns text, p_most integer, OUT members bigint, OUT names bigint, OUT busy boolean
) LANGUAGE plpgsql AS $$
DECLARE
    v_dead record;
    v_owned bigint;
BEGIN
    members := 0;
    names := 0;
    FOR v_dead IN SELECT m.id, m.life FROM members m
        WHERE m.ns = p_ns AND m.expires_at <= clock_timestamp() ORDER BY m.id LIMIT p_most
    LOOP
        -- Each end clears names away: a step has its fill of them, too.
        EXIT WHEN names >= p_most;
        -- As many as the end of a life clears away.
        SELECT count(*) INTO v_owned FROM (SELECT FROM names n
            WHERE n.life = v_dead.life AND n.ns = p_ns LIMIT 16) t;
        IF _expire(p_ns, v_dead.id) THEN
            members := members + 1;
            names := names + v_owned;
        END IF;
    END LOOP;
    busy := members > 0;
    IF busy THEN RETURN; END IF;
    SELECT r.member, r.life INTO v_dead FROM remains r WHERE r.ns = p_ns LIMIT 1;
    busy := FOUND;
    IF NOT busy THEN RETURN; END IF;
    SELECT count(*) INTO names FROM (SELECT FROM names n
        WHERE n.life = v_dead.life AND n.ns = p_ns LIMIT p_most) t;
    IF _sweep(p_ns, v_dead.member, v_dead.life, p_most) THEN
        DELETE FROM remains r WHERE r.ns = p_ns AND r.life = v_dead.life;
    END IF;
END $$;

-- One step of a purge. Repeat it, with p_after as the last answer's upto, while the answer
-- says more: each step is a transaction of its own, looks at p_most rows of a kind, and so
-- delays no other request for long. With p_dry_run it only counts.
CREATE FUNCTION {schema}.purge(
    p_ns text, p_older_us bigint, p_after text DEFAULT NULL, p_most integer DEFAULT 500,
    p_dry_run boolean DEFAULT false, p_by text DEFAULT '', p_wait_ms integer DEFAULT 0,
    OUT elections bigint, OUT members bigint, OUT names bigint, OUT drops bigint,
    OUT journal boolean, OUT upto text, OUT more boolean
) LANGUAGE plpgsql SECURITY DEFINER {planned} AS $$
#variable_conflict use_column
DECLARE
    v_ready boolean := (p_ns IS NOT NULL OR _refuse('a namespace is named'))
        AND (coalesce(p_older_us >= 0, false)
            OR _refuse('an age is a number of microseconds, and not negative'))
        AND (coalesce(p_most > 0, false) OR _refuse('a step looks at one row at least'))
        AND (p_dry_run IS NOT NULL OR _refuse('it is a dry run or not'))
        AND CASE WHEN p_dry_run THEN _prepare(p_wait_ms) ELSE _enter(p_ns, p_wait_ms) END;
    -- An age beyond the calendar is one that nothing has.
    v_before timestamptz := CASE WHEN p_older_us < 1000000::bigint * 1000000000
        THEN clock_timestamp() - p_older_us * interval '1 microsecond'
        ELSE '-infinity' END;
    v_dead record;
    v_rest record;
    v_names text[];
    v_empty boolean;
BEGIN
    SELECT 0, 0, 0, 0, false, p_after, true INTO elections, members, names, drops, journal,
        upto, more;
    IF NOT p_dry_run THEN
        v_dead := _clear_the_dead(p_ns, p_most);
        members := v_dead.members;
        names := v_dead.names;
        IF v_dead.busy THEN RETURN; END IF;
    END IF;
    v_names := ARRAY(SELECT e.name FROM elections e
        WHERE e.ns = p_ns AND e.name > coalesce(p_after, '') ORDER BY e.name LIMIT p_most);
    more := cardinality(v_names) = p_most;
    upto := coalesce(v_names[cardinality(v_names)], p_after);
    v_empty := NOT EXISTS (SELECT FROM members m WHERE m.ns = p_ns
        AND NOT (p_dry_run AND m.expires_at <= clock_timestamp()));
    IF p_dry_run THEN
        v_names := ARRAY(SELECT u.name FROM _unused(p_ns, coalesce(p_after, ''),
            coalesce(upto, ''), true) u
            WHERE u.since <= v_before OR p_older_us = 0 AND u.since IS NOT NULL);
        elections := cardinality(v_names);
        SELECT count(*) INTO names FROM _left_in(p_ns, v_names);
        -- Each will have been dropped, which is forgotten where no member lives.
        drops := CASE WHEN v_empty THEN names ELSE 0 END;
        IF p_after IS NULL THEN
            SELECT count(*) INTO members FROM members m
                WHERE m.ns = p_ns AND m.expires_at <= clock_timestamp();
            SELECT names + count(*) INTO names FROM names n
                LEFT JOIN members m ON m.ns = n.ns AND m.id = n.owner AND m.life = n.life
                WHERE n.ns = p_ns AND n.life IS NOT NULL
                  AND (m.expires_at > clock_timestamp()) IS NOT TRUE;
        END IF;
        IF NOT more AND v_empty THEN
            SELECT drops + count(DISTINCT g.name) INTO drops FROM names_gone g WHERE g.ns = p_ns;
        END IF;
        RETURN;
    END IF;
    SELECT r.elections, r.names INTO elections, names
        FROM _remove_unused(p_ns, coalesce(p_after, ''), coalesce(upto, ''), v_before) r;
    IF NOT more AND v_empty THEN
        v_rest := _forget_the_rest(p_ns, v_before, p_most);
        drops := v_rest.drops;
        journal := v_rest.journal;
        more := drops > 0;
    END IF;
END $$;
