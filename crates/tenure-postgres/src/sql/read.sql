-- Looking: one snapshot, which never writes. STABLE functions see the snapshot
-- of the statement that called them, so all of an answer is of one moment.

-- Elections as they stand, in the order asked for; one that never had a
-- candidate is vacant with number 0. A holder that is not live is not shown, nor one
-- that did not take on in time what was handed over to it. Of those ahead of the
-- asker no more than eight are counted, so that losing costs the same in any crowd.
--
-- A vacancy is held up where a transaction that is open locks the row of its last term. Who
-- locked a row stands in the row (xmax), as long as it was one transaction alone; of several
-- there is only a number for all of them, which no view explains. So this is found out for
-- most, without taking a lock that bids would pass over. A transaction of less than a second
-- is most likely a bid.
CREATE FUNCTION {schema}._views(
    p_ns text, p_names text[], p_asker text, p_asker_life uuid, p_candidates boolean,
    p_at timestamptz
) RETURNS TABLE (ord bigint, view jsonb)
LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY SELECT t.ord, jsonb_build_object(
        'election', t.name,
        'number', coalesce(e.number, 0),
        'holder', CASE WHEN m.id IS NOT NULL THEN jsonb_build_object(
            'id', m.id, 'life', m.life, 'elected_ms', _ms(e.elected_at), 'ttl_us', m.ttl,
            'left_us', _us(least(m.expires_at, e.heir_until) - p_at),
            'unconfirmed', e.heir_until IS NOT NULL,
            'endpoints', p.endpoints, 'metadata', encode(p.metadata, 'hex')) END,
        'paused', CASE WHEN e.paused THEN
            jsonb_build_object('reason', e.pause_reason, 'by', e.pause_by) END,
        'step_down', CASE WHEN e.asked AND m.id IS NOT NULL THEN jsonb_build_object(
            'number', e.number, 'reason', e.asked_reason, 'by', e.asked_by, 'to', e.asked_to) END,
        'reserved', CASE WHEN h.id IS NOT NULL THEN
            jsonb_build_object('id', h.id, 'left_us', _us(e.heir_until - p_at)) END,
        'held_up', CASE WHEN m.id IS NULL AND e.xmax <> 0 THEN (
            SELECT jsonb_build_object('process', l.pid) FROM pg_locks l
            LEFT JOIN pg_stat_activity a ON a.pid = l.pid
            WHERE l.locktype = 'transactionid' AND l.transactionid = e.xmax AND l.granted
              AND l.pid <> pg_backend_pid()
              AND (a.xact_start > p_at - interval '1 second') IS NOT TRUE LIMIT 1) END,
        'ahead', CASE WHEN p_asker IS NULL OR e.life = p_asker_life THEN 0 ELSE (
            SELECT count(*) FROM candidates o CROSS JOIN LATERAL (
                SELECT FROM candidates c
                JOIN members w ON w.ns = c.ns AND w.id = c.member AND w.life = c.life
                     AND w.expires_at > p_at AND NOT w.condemned
                WHERE c.ns = p_ns AND c.election = t.name AND c.priority > 0
                  AND c.life IS DISTINCT FROM e.life
                  AND (-c.priority, c.since, c.member) < (-o.priority, o.since, o.member)
                ORDER BY -c.priority, c.since, c.member LIMIT 8) a
            WHERE o.ns = p_ns AND o.election = t.name AND o.member = p_asker
              AND o.life = p_asker_life) END,
        'candidates', CASE WHEN p_candidates THEN coalesce((
            SELECT jsonb_agg(jsonb_build_object('id', c.member, 'life', c.life,
                       'priority', c.priority, 'waiting_us', _us(p_at - c.since))
                       ORDER BY c.priority DESC, c.since, c.member)
            FROM (SELECT c.member, c.life, c.priority, c.since FROM candidates c
                  WHERE c.ns = p_ns AND c.election = t.name
                  UNION ALL
                  SELECT e.holder, e.life, e.priority, e.elected_at
                  WHERE e.priority IS NOT NULL) c
            JOIN members w ON w.ns = p_ns AND w.id = c.member AND w.life = c.life
                 AND w.expires_at > p_at AND NOT w.condemned), '[]') ELSE '[]' END)
    FROM _items(p_names) t
    LEFT JOIN LATERAL (
        SELECT e.*, e.xmax FROM elections e WHERE e.ns = p_ns AND e.name = t.name OFFSET 0
    ) e ON true
    LEFT JOIN members m ON m.ns = p_ns AND m.id = e.holder AND m.life = e.life
         AND least(m.expires_at, e.heir_until) > p_at
    LEFT JOIN profiles p ON p.ns = p_ns AND p.id = m.id
    LEFT JOIN members h ON h.ns = p_ns AND h.id = e.heir AND h.expires_at > p_at
         AND e.heir_until > p_at
    WHERE t.name IS NOT NULL
    ORDER BY t.ord;
END $$;

CREATE FUNCTION {schema}._entry(j {schema}.journal) RETURNS jsonb
LANGUAGE sql STABLE AS $$
    SELECT jsonb_strip_nulls(jsonb_build_object(
        'seq', j.seq, 'at_ms', _ms(j.at), 'kind', j.kind, 'election', j.election,
        'number', j.number, 'member', j.member, 'life', j.life, 'priority', j.priority,
        'cause', j.cause, 'heir', j.heir, 'endpoints', j.endpoints,
        'metadata', encode(j.metadata, 'hex'), 'details', j.details))
$$;

-- p_which: 'nothing', 'all', 'named' (p_names) or 'held' (by p_life).
CREATE FUNCTION {schema}.read(
    p_ns text, p_which text DEFAULT 'all', p_names text[] DEFAULT '{}', p_life uuid DEFAULT NULL,
    p_asker text DEFAULT NULL, p_asker_life uuid DEFAULT NULL,
    p_candidates boolean DEFAULT true, p_members boolean DEFAULT true, p_history bigint DEFAULT 0
) RETURNS jsonb
LANGUAGE plpgsql STABLE SECURITY DEFINER {planned} AS $$
DECLARE
    v_at timestamptz := clock_timestamp();
    v_names text[] := '{}';
    v_elections jsonb;
    v_members jsonb := '[]';
    v_history jsonb := '[]';
BEGIN
    IF p_which = 'named' THEN
        v_names := p_names;
    ELSIF p_which = 'all' THEN
        SELECT coalesce(array_agg(e.name ORDER BY e.name), '{}') INTO v_names
            FROM elections e WHERE e.ns = p_ns;
    ELSIF p_which = 'held' THEN
        SELECT coalesce(array_agg(e.name ORDER BY e.name), '{}') INTO v_names FROM elections e
            JOIN members m ON m.ns = e.ns AND m.id = e.holder AND m.life = e.life
            WHERE e.ns = p_ns AND e.life = p_life
              AND least(m.expires_at, e.heir_until) > v_at;
    END IF;
    SELECT coalesce(jsonb_agg(v.view ORDER BY v.ord), '[]') INTO v_elections
        FROM _views(p_ns, v_names, p_asker, p_asker_life, p_candidates, v_at) v;
    IF p_members THEN
        SELECT coalesce(jsonb_agg(jsonb_build_object('id', m.id, 'life', m.life,
                   'ttl_us', m.ttl, 'left_us', _us(m.expires_at - v_at),
                   'joined_ms', _ms(m.joined_at), 'holds', m.holds,
                   'endpoints', p.endpoints, 'metadata', encode(p.metadata, 'hex'))
                   ORDER BY m.id), '[]') INTO v_members
            FROM members m JOIN profiles p ON p.ns = m.ns AND p.id = m.id
            WHERE m.ns = p_ns AND m.expires_at > v_at;
    END IF;
    IF p_history > 0 AND p_which = 'all' THEN
        SELECT coalesce(jsonb_agg(_entry(j) ORDER BY j.seq), '[]') INTO v_history
            FROM namespaces n, _pages(p_ns, greatest(n.trimmed, n.seq - p_history), n.seq) j
            WHERE n.ns = p_ns;
    ELSIF p_history > 0 THEN
        -- With the end of each life that was elected there: its terms ended with it.
        SELECT coalesce(jsonb_agg(t.entry ORDER BY t.seq), '[]') INTO v_history FROM (
            SELECT j.seq, _entry(j) AS entry FROM journal j
            WHERE j.ns = p_ns AND (j.election = ANY (v_names)
               OR j.kind IN ('left', 'ended') AND j.life = ANY (ARRAY(SELECT o.life FROM journal o
                  WHERE o.ns = p_ns AND o.election = ANY (v_names) AND o.kind = 'elected')))
            ORDER BY j.seq DESC LIMIT p_history) t;
    END IF;
    RETURN jsonb_build_object(
        'seq', coalesce((SELECT n.seq FROM namespaces n WHERE n.ns = p_ns), 0),
        'elections', v_elections, 'members', v_members, 'history', v_history);
END $$;

-- What a candidate looks at: the election it names, without its candidates.
--
-- Whether it holds the one that it waits for is what an heir asks, while the election
-- waits for it. So that is looked up first, and told in a few figures: what this
-- life holds, if it is neither paused nor asked to give up. Of all else it gets in
-- "seen" what read() answers. The owner of the tables asks by the statement itself,
-- which spares the call.
CREATE FUNCTION {schema}.look(p_ns text, p_election text, p_asker text, p_asker_life uuid)
RETURNS TABLE (number bigint, elected_at timestamptz, ttl_us bigint, left_us bigint,
    unconfirmed boolean, seen text)
LANGUAGE plpgsql STABLE SECURITY DEFINER {planned} AS $$
BEGIN
    RETURN QUERY {look};
END $$;

-- The entries after one place, up to another: there are no gaps. What the view journal
-- tells, but what is told at once is found by its place before its entries are looked at.
CREATE FUNCTION {schema}._pages(p_ns text, p_after bigint, p_upto bigint)
RETURNS SETOF {schema}.journal
LANGUAGE sql STABLE AS $$
    SELECT t.ns, t.seq - t.count + e.ordinality, t.at, e.kind, e.election, e.number, e.member,
           e.life, e.priority, e.cause, e.heir, e.endpoints, e.metadata, e.details
    FROM told t CROSS JOIN LATERAL unnest(CASE WHEN t.elections IS NULL THEN t.entries
         ELSE _spread(t.entries, t.elections) END) WITH ORDINALITY AS e
    WHERE t.ns = p_ns AND t.seq > p_after AND t.seq - t.count < p_upto
      AND t.seq - t.count + e.ordinality > p_after AND t.seq - t.count + e.ordinality <= p_upto
$$;

-- The entries after a place, oldest first; "trimmed" is the newest place that
-- is no longer kept.
CREATE FUNCTION {schema}.journal(p_ns text, p_after bigint, p_limit bigint DEFAULT 500)
RETURNS jsonb
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = {schema}, pg_temp AS $$
    SELECT jsonb_build_object('seq', n.seq, 'trimmed', n.trimmed, 'entries', coalesce((
        SELECT jsonb_agg(t.entry ORDER BY t.seq) FROM (
            SELECT j.seq, _entry(j) AS entry
            FROM _pages(p_ns, n.place, n.place + least(p_limit, n.seq - n.place)) j
            ORDER BY j.seq LIMIT p_limit) t), '[]'))
    FROM (SELECT *, least(greatest(p_after, n.trimmed), n.seq) AS place FROM (
        SELECT coalesce(max(n.seq), 0) AS seq, coalesce(max(n.trimmed), 0) AS trimmed
        FROM namespaces n WHERE n.ns = p_ns) n) n
$$;

-- Where the journal and the names of each of these namespaces stand, for those who poll, and
-- whether they have to, because no notifications are sent. Who asks ends that when the queue of
-- notifications has room again, since there may be no transition that does so. A row that
-- is locked belongs to a transition, which sees to it itself.
CREATE FUNCTION {schema}.positions(p_namespaces text[])
RETURNS TABLE (ns text, seq bigint, quiet boolean, rev bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = {schema}, pg_temp AS $$
BEGIN
    PERFORM 1 FROM namespaces n
        WHERE n.ns = ANY (p_namespaces) AND n.quiet_from IS NOT NULL;
    IF FOUND AND _queue_usage() < 0.5 THEN
        UPDATE namespaces n SET quiet_from = NULL
            WHERE n.ns IN (SELECT f.ns FROM namespaces f
                WHERE f.ns = ANY (p_namespaces) AND f.quiet_from IS NOT NULL
                FOR UPDATE SKIP LOCKED);
    END IF;
    RETURN QUERY SELECT t.ns, coalesce(n.seq, 0), n.quiet_from IS NOT NULL, coalesce(a.rev, 0)
        FROM unnest(p_namespaces) AS t(ns)
        LEFT JOIN namespaces n ON n.ns = t.ns LEFT JOIN names_at a ON a.ns = t.ns
        WHERE n.ns IS NOT NULL OR a.ns IS NOT NULL;
END $$;

-- How full the server's queue of notifications is, from 0 to 1. Half full, no
-- notification is sent any more.
CREATE FUNCTION {schema}.queue_usage() RETURNS double precision
LANGUAGE sql SECURITY DEFINER SET search_path = {schema}, pg_temp AS $$
    SELECT _queue_usage()
$$;
