-- The verbs of a member's life: join, heartbeat, leave.

-- Whether a life owns no name, nor takes one while it is replaced: that needs its row.
CREATE FUNCTION {schema}._owns_nothing(p_ns text, p_member text, p_life uuid) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM members m WHERE m.ns = p_ns AND m.id = p_member FOR UPDATE;
    PERFORM 1 FROM names n WHERE n.life = p_life AND n.ns = p_ns AND n.owner = p_member LIMIT 1;
    RETURN NOT FOUND;
END $$;

-- Outcomes: "in"; "taken" by another life, or by this one if it is over.
CREATE FUNCTION {schema}.join(
    p_ns text, p_member text, p_life uuid, p_ttl_us bigint,
    p_endpoints text[] DEFAULT '{}', p_metadata bytea DEFAULT '',
    p_supersede boolean DEFAULT true, p_wait_ms integer DEFAULT 0,
    p_takes_over boolean DEFAULT false, p_seen bigint DEFAULT 0,
    p_told bigint DEFAULT 0
) RETURNS TABLE (outcome text, attention bigint, seq bigint, taken_by uuid, left_us bigint)
LANGUAGE plpgsql SECURITY DEFINER {planned} AS $$
#variable_conflict use_column
DECLARE
    v_old members%ROWTYPE;
    v_now timestamptz;
    v_lives boolean;
    v_waited boolean := false;
    v_ready boolean := _check_ttl(p_ttl_us) AND _check_name('a namespace', p_ns)
        AND _check_name('a member''s id', p_member) AND _enter(p_ns, p_wait_ms);
BEGIN
    IF p_seen > 0 THEN
        PERFORM 1 FROM namespaces n WHERE n.ns = p_ns AND n.seq >= p_seen;
        IF NOT FOUND THEN PERFORM _rolled_back(p_ns, p_seen, p_told); END IF;
    END IF;
    LOOP
        SELECT * INTO v_old FROM members m WHERE m.ns = p_ns AND m.id = p_member;
        v_now := clock_timestamp();
        v_lives := v_old.expires_at > v_now;
        IF v_old.life = p_life AND v_lives AND NOT v_old.condemned THEN
            UPDATE members m SET ttl = p_ttl_us, expires_at = _after(v_now, p_ttl_us),
                    takes_over = p_takes_over
                WHERE m.ns = p_ns AND m.id = p_member;
            UPDATE profiles p SET endpoints = p_endpoints, metadata = p_metadata
                WHERE p.ns = p_ns AND p.id = p_member
                  AND (p.endpoints, p.metadata) IS DISTINCT FROM (p_endpoints, p_metadata);
            RETURN QUERY SELECT 'in', v_old.attention, n.seq, NULL::uuid, NULL::bigint
                FROM namespaces n WHERE n.ns = p_ns;
            RETURN;
        END IF;
        -- A life that is over does not come back by a repeated request (M1).
        IF v_old.life = p_life OR EXISTS (
            SELECT FROM told t WHERE t.ns = p_ns AND t.over = p_life
               AND t.entries[1].member = p_member) THEN
            RETURN QUERY SELECT 'taken', NULL::bigint, NULL::bigint, p_life,
                CASE WHEN v_old.life = p_life THEN _us(v_old.expires_at - v_now) ELSE 0 END;
            RETURN;
        END IF;
        EXIT WHEN v_old.id IS NULL;
        IF v_lives AND NOT (p_supersede AND v_old.holds = 0
            AND _owns_nothing(p_ns, p_member, v_old.life)) THEN
            RETURN QUERY SELECT 'taken', NULL::bigint, NULL::bigint, v_old.life,
                _us(v_old.expires_at - v_now);
            RETURN;
        END IF;
        IF v_lives THEN
            DELETE FROM members m WHERE m.ns = p_ns AND m.id = p_member;
            PERFORM _end(p_ns, v_now, v_old.id, v_old.life, 'superseded');
            EXIT;
        END IF;
        EXIT WHEN _expire(p_ns, p_member);
        -- A heartbeat may have slipped in since we looked: then look again. But if it
        -- is in a transaction that stays open, the id is taken for as long.
        IF v_waited THEN
            RETURN QUERY SELECT 'taken', NULL::bigint, NULL::bigint, v_old.life, 0::bigint;
            RETURN;
        END IF;
        v_waited := true;
    END LOOP;

    -- Only a join adds members: sweeping here keeps the dead from piling up
    -- (H27). Those that hold terms stay until a member bids for them.
    PERFORM _expire(p_ns, d.id) FROM (
        SELECT m.id FROM members m
        WHERE m.ns = p_ns AND m.holds = 0 AND m.expires_at <= clock_timestamp() LIMIT 100) d;
    PERFORM _sweep_remains(p_ns, 256);

    -- Read again: what came before may have waited, and the ttl counts from here.
    v_now := clock_timestamp();
    INSERT INTO members (ns, id, life, handle, expires_at, ttl, joined_at, takes_over)
        VALUES (p_ns, p_member, p_life,
            hashtextextended(concat_ws(E'\t', p_ns, p_member, p_life), 0),
            _after(v_now, p_ttl_us), p_ttl_us, v_now, p_takes_over);
    INSERT INTO profiles (ns, id, endpoints, metadata)
        VALUES (p_ns, p_member, p_endpoints, p_metadata);
    PERFORM _tell(p_ns, v_now, ARRAY[_new_entry('joined', member => p_member, life => p_life,
        endpoints => p_endpoints, metadata => p_metadata)]);
    RETURN QUERY SELECT 'in', 0::bigint, n.seq, NULL::uuid, NULL::bigint
        FROM namespaces n WHERE n.ns = p_ns;
END $$;

-- Outcomes: "alive"; "ended"; "superseded" if another life took its place.
--
-- One update of one row, whatever the member holds. It renews only a member
-- that is live and not condemned at this moment (rule M1). A client that may
-- write the table can as well run the UPDATE itself, by the handle.
--
-- The terms named are taken on, if they were handed over to this life and their
-- time has not passed; "terms" says of each whether it is held, and what is asked
-- of it.
CREATE FUNCTION {schema}.heartbeat(
    p_ns text, p_member text, p_life uuid, p_ttl_us bigint, p_wait_ms integer DEFAULT 0,
    p_elections text[] DEFAULT NULL, p_numbers bigint[] DEFAULT NULL
) RETURNS TABLE (
    outcome text, attention bigint, holds integer, seq bigint, terms jsonb, handle bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = {schema}, pg_temp AS $$
#variable_conflict use_column
DECLARE
    v_ready boolean := _check_ttl(p_ttl_us) AND _prepare(p_wait_ms);
    v_terms jsonb;
BEGIN
    IF p_elections IS NOT NULL THEN
        v_ready := _enter(p_ns, p_wait_ms);
        v_terms := _take_on(p_ns, p_member, p_life, p_elections, p_numbers);
    END IF;
    -- By clock_timestamp(), not now(): a statement that waited for the row is judged by the
    -- moment at which it has it, so that no member renews after its ttl (M1).
    RETURN QUERY
        UPDATE members m
        SET ttl = p_ttl_us, expires_at = clock_timestamp() + p_ttl_us * interval '1 microsecond'
        WHERE m.ns = p_ns AND m.id = p_member AND m.life = p_life
          AND NOT m.condemned AND m.expires_at > clock_timestamp()
        RETURNING 'alive', m.attention, m.holds,
                  coalesce((SELECT n.seq FROM namespaces n WHERE n.ns = m.ns), 0), v_terms,
                  m.handle;
    IF NOT FOUND THEN
        RETURN QUERY SELECT CASE WHEN EXISTS (
                SELECT FROM members m WHERE m.ns = p_ns AND m.id = p_member AND m.life <> p_life)
            THEN 'superseded' ELSE 'ended' END, NULL::bigint, NULL::integer, NULL::bigint,
            NULL::jsonb, NULL::bigint;
    END IF;
END $$;

-- The same update for a role that may only call the verbs, and as lean: it renews a
-- member of which everything is as it was, known by its handle, or does nothing.
--
-- It runs with the owner's rights and pins no search_path, since pinning one takes as
-- long as the update. So that no role can put a function or an operator of its own in
-- the place of one that is used here, each is named with its schema.
CREATE FUNCTION {schema}._beat(
    p_handle bigint, p_ttl_us bigint, p_attention bigint, p_holds integer
) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    -- Asked first: to set it each time would cost the lean call a part of what it spares.
    IF pg_catalog.current_setting('synchronous_commit') OPERATOR(pg_catalog.<>) 'on'
       AND pg_catalog.current_setting('synchronous_commit') OPERATOR(pg_catalog.<>) 'remote_apply'
    THEN
        PERFORM pg_catalog.set_config('synchronous_commit', 'on', true);
    END IF;
    UPDATE {schema}.members m SET ttl = p_ttl_us,
        expires_at = pg_catalog.clock_timestamp() OPERATOR(pg_catalog.+)
            (p_ttl_us OPERATOR(pg_catalog.*) '1 microsecond'::pg_catalog.interval)
    WHERE m.handle OPERATOR(pg_catalog.=) p_handle
      AND m.attention OPERATOR(pg_catalog.=) p_attention
      AND m.holds OPERATOR(pg_catalog.=) p_holds
      AND NOT m.condemned AND m.expires_at OPERATOR(pg_catalog.>) pg_catalog.clock_timestamp()
      AND p_ttl_us OPERATOR(pg_catalog.>) 0::pg_catalog.int8;
    RETURN FOUND;
END $$;

-- Takes on what was handed over to a member that lives. The caller has entered.
CREATE FUNCTION {schema}._take_on(
    p_ns text, p_member text, p_life uuid, p_names text[], p_numbers bigint[]
) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    v_terms jsonb := '[]';
    v_e elections%ROWTYPE;
    v_at timestamptz := clock_timestamp();
BEGIN
    PERFORM 1 FROM members m WHERE m.ns = p_ns AND m.id = p_member AND m.life = p_life
        AND NOT m.condemned AND m.expires_at > v_at;
    IF NOT FOUND THEN RETURN NULL; END IF;
    FOR i IN 1 .. coalesce(cardinality(p_names), 0) LOOP
        SELECT * INTO v_e FROM elections e
            WHERE e.ns = p_ns AND e.name = p_names[i] AND e.number = p_numbers[i]
              AND (e.life = p_life) IS TRUE AND e.holder = p_member
              AND (e.heir_until > v_at) IS NOT FALSE;
        IF v_e.heir_until IS NOT NULL THEN
            UPDATE elections e SET heir_until = NULL WHERE e.ns = p_ns AND e.name = p_names[i];
        END IF;
        v_terms := v_terms || jsonb_build_object('renewed', v_e.name IS NOT NULL,
            'step_down', CASE WHEN v_e.asked THEN jsonb_build_object('number', v_e.number,
                'reason', v_e.asked_reason, 'by', v_e.asked_by, 'to', v_e.asked_to) END);
    END LOOP;
    RETURN v_terms;
END $$;

-- Ends the caller's own life. A member whose ttl has run out may still leave, as
-- long as it was not ended: that only frees what no other has taken yet.
CREATE FUNCTION {schema}.leave(
    p_ns text, p_member text, p_life uuid, p_wait_ms integer DEFAULT 0
) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER {planned} AS $$
DECLARE
    v_ready boolean;
BEGIN
    PERFORM 1 FROM members m WHERE m.ns = p_ns AND m.id = p_member AND m.life = p_life;
    IF NOT FOUND THEN
        v_ready := _prepare(p_wait_ms) AND _wait_as_a_write();
        RETURN;
    END IF;
    v_ready := _enter(p_ns, p_wait_ms);
    DELETE FROM members m WHERE m.ns = p_ns AND m.id = p_member AND m.life = p_life;
    IF FOUND THEN
        PERFORM _end(p_ns, clock_timestamp(), p_member, p_life, 'left');
    END IF;
END $$;
