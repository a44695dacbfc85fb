-- The operator's verbs: step down, pause, resume, evict. Each may be called
-- inside a transaction of the caller's own: it is delivered when that commits,
-- and rolls back with it (C41). Keep such a transaction short: until it ends,
-- nothing else changes in the namespace.
--
-- Outcomes: "done" with the term and member it went to, "unchanged", "vacant",
-- "superseded" with the present number, "no such candidate", "no such member".

CREATE FUNCTION {schema}._reign(p_ns text, p_election text)
RETURNS TABLE (outcome text, number bigint, member text, life uuid, left_us bigint)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY SELECT 'done', e.number, m.id, m.life,
        _us(m.expires_at - clock_timestamp())
    FROM (SELECT p_ns AS ns, p_election AS name) t
    LEFT JOIN (elections e JOIN members m ON m.ns = e.ns AND m.id = e.holder AND m.life = e.life
               AND least(m.expires_at, e.heir_until) > clock_timestamp())
        ON e.ns = t.ns AND e.name = t.name;
END $$;

-- E5: the request is kept beside the term it is meant for, and ends with it.
CREATE FUNCTION {schema}.ask_step_down(
    p_ns text, p_election text, p_number bigint DEFAULT NULL, p_to text DEFAULT NULL,
    p_reason text DEFAULT '', p_by text DEFAULT '', p_wait_ms integer DEFAULT 0
) RETURNS TABLE (outcome text, number bigint, member text, life uuid, left_us bigint)
LANGUAGE plpgsql SECURITY DEFINER {planned} AS $$
#variable_conflict use_column
DECLARE
    v_reign record;
    v_reason text := _note(p_reason);
    v_by text := _note(p_by);
    v_ready boolean := _enter(p_ns, p_wait_ms);
BEGIN
    SELECT * INTO v_reign FROM _reign(p_ns, p_election);
    IF v_reign.member IS NULL THEN
        v_reign.outcome := 'vacant';
    ELSIF p_number <> v_reign.number THEN
        v_reign.outcome := 'superseded';
    ELSIF p_to IS NOT NULL AND NOT EXISTS (
        SELECT FROM candidates c
        JOIN members m ON m.ns = c.ns AND m.id = c.member AND m.life = c.life
        WHERE c.ns = p_ns AND c.election = p_election AND c.member = p_to AND c.priority > 0
          AND c.member <> v_reign.member AND m.expires_at > clock_timestamp()
          AND NOT m.condemned) THEN
        v_reign.outcome := 'no such candidate';
    ELSE
        UPDATE elections e
            SET asked = true, asked_reason = v_reason, asked_by = v_by, asked_to = p_to
            WHERE e.ns = p_ns AND e.name = p_election
              AND (e.asked, e.asked_reason, e.asked_by, e.asked_to)
                  IS DISTINCT FROM (true, v_reason, v_by, p_to);
        IF FOUND THEN
            UPDATE members m SET attention = m.attention + 1
                WHERE m.ns = p_ns AND m.id = v_reign.member;
            PERFORM _tell(p_ns, clock_timestamp(), ARRAY[_new_entry('step-down asked',
                p_election, v_reign.number, heir => p_to,
                details => jsonb_build_object('reason', v_reason, 'by', v_by))]);
        ELSE
            v_reign.outcome := 'unchanged';
            PERFORM _wait_as_a_write();
        END IF;
    END IF;
    RETURN QUERY SELECT v_reign.outcome, v_reign.number, v_reign.member, v_reign.life,
        v_reign.left_us;
END $$;

-- E6: no member is newly elected; the incumbent stays.
CREATE FUNCTION {schema}.pause(
    p_ns text, p_election text, p_reason text DEFAULT '', p_by text DEFAULT '',
    p_wait_ms integer DEFAULT 0
) RETURNS TABLE (outcome text, number bigint, member text, life uuid, left_us bigint)
LANGUAGE plpgsql SECURITY DEFINER {planned} AS $$
#variable_conflict use_column
DECLARE
    v_reason text := _note(p_reason);
    v_by text := _note(p_by);
    v_ready boolean := _check_name('a namespace', p_ns)
        AND _check_name('an election''s name', p_election) AND _enter(p_ns, p_wait_ms);
BEGIN
    INSERT INTO elections (ns, name) VALUES (p_ns, p_election) ON CONFLICT DO NOTHING;
    UPDATE elections e SET paused = true, pause_reason = v_reason, pause_by = v_by
        WHERE e.ns = p_ns AND e.name = p_election AND NOT e.paused;
    IF NOT FOUND THEN
        PERFORM _wait_as_a_write();
        RETURN QUERY SELECT 'unchanged', NULL::bigint, NULL, NULL::uuid, NULL::bigint;
        RETURN;
    END IF;
    PERFORM _tell(p_ns, clock_timestamp(), ARRAY[_new_entry('paused', p_election,
        details => jsonb_build_object('reason', v_reason, 'by', v_by))]);
    RETURN QUERY SELECT * FROM _reign(p_ns, p_election);
END $$;

CREATE FUNCTION {schema}.resume(
    p_ns text, p_election text, p_by text DEFAULT '', p_wait_ms integer DEFAULT 0
) RETURNS TABLE (outcome text, number bigint, member text, life uuid, left_us bigint)
LANGUAGE plpgsql SECURITY DEFINER {planned} AS $$
#variable_conflict use_column
DECLARE
    v_ready boolean := _enter(p_ns, p_wait_ms);
BEGIN
    UPDATE elections e SET paused = false, pause_reason = NULL, pause_by = NULL
        WHERE e.ns = p_ns AND e.name = p_election AND e.paused;
    IF NOT FOUND THEN
        PERFORM _wait_as_a_write();
        RETURN QUERY SELECT 'unchanged', NULL::bigint, NULL, NULL::uuid, NULL::bigint;
        RETURN;
    END IF;
    PERFORM _tell(p_ns, clock_timestamp(), ARRAY[_new_entry('resumed', p_election,
        details => jsonb_build_object('by', _note(p_by)))]);
    RETURN QUERY SELECT * FROM _reign(p_ns, p_election);
    PERFORM _forget(p_ns, ARRAY[p_election]);
END $$;

-- Condemns a member: its heartbeats are answered "ended" from now on, and what
-- it holds is free when its ttl has run out. With p_now it is free at once,
-- although the member may believe in its terms for the rest of its ttl: two may
-- lead, and only the fence tells them apart.
CREATE FUNCTION {schema}.evict(
    p_ns text, p_member text, p_now boolean DEFAULT false, p_by text DEFAULT '',
    p_wait_ms integer DEFAULT 0
) RETURNS TABLE (outcome text, number bigint, member text, life uuid, left_us bigint)
LANGUAGE plpgsql SECURITY DEFINER {planned} AS $$
#variable_conflict use_column
DECLARE
    v_member members%ROWTYPE;
    v_ready boolean := _enter(p_ns, p_wait_ms);
    v_at timestamptz := clock_timestamp();
BEGIN
    -- A member whose ttl has run out may still be ended at once: it may hold terms for
    -- which no other has bid since.
    SELECT * INTO v_member FROM members m
        WHERE m.ns = p_ns AND m.id = p_member AND (p_now OR m.expires_at > v_at);
    IF NOT FOUND THEN
        PERFORM _wait_as_a_write();
        RETURN QUERY SELECT 'no such member', NULL::bigint, NULL, NULL::uuid, NULL::bigint;
        RETURN;
    END IF;
    IF p_now THEN
        DELETE FROM members m WHERE m.ns = p_ns AND m.id = p_member;
        PERFORM _end(p_ns, v_at, v_member.id, v_member.life, 'evicted');
    ELSIF v_member.condemned THEN
        PERFORM _wait_as_a_write();
        RETURN QUERY SELECT 'unchanged', NULL::bigint, NULL, NULL::uuid, NULL::bigint;
        RETURN;
    ELSE
        UPDATE members m SET condemned = true WHERE m.ns = p_ns AND m.id = p_member;
    END IF;
    RETURN QUERY SELECT 'done', NULL::bigint, v_member.id, v_member.life,
        _us(v_member.expires_at - v_at);
END $$;
